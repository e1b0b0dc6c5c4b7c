"""The pacer by itself, with moments that each test chooses: what comes out, and when it wants to be called next."""

import math

import numpy as np
import pytest
from agent_kit import kind_of

import laconic as lc
from laconic.protocol.actions import Alert, Begin, Note, Predicted, Progress, Save, Terms
from laconic.protocol.paces import Lockstep, Slotted, make_pacer

FEATURES = lc.RandomFeatures.gaussian(2, 5, bandwidth=0.5, seed=0)
LEARNER = lc.ODKLA(rho=0.3, eta=1.0)
QUIET = {"predictions": 0.0, "progress": math.inf}
X = [0.2, 0.7]


def make(name="ann", neighbours=("ben",), clock="lockstep", slot=1.0, **terms):
    agent = lc.Agent(name, list(neighbours), FEATURES, LEARNER, n_agents=1 + len(neighbours), clock=clock)
    return make_pacer(agent, Terms(**{**QUIET, **terms}), slot)


def of(kind, actions):
    return [action for action in actions if isinstance(action, kind)]


def events(actions):
    return [action.event for action in of(Note, actions)]


def sent(actions):
    return [kind_of(message.data) for message in of(lc.protocol.Message, actions)]


def carry(pacers, now):
    """Carry messages between pacers until there are none; what else came out, by name."""
    rest = {name: [] for name in pacers}
    for _ in range(100):
        quiet = True
        for name, pacer in pacers.items():
            for action in pacer.actions():
                if not isinstance(action, lc.protocol.Message):
                    rest[name].append(action)
                    continue
                quiet = False
                for other in pacer.agent.neighbours if action.to is None else (action.to,):
                    if other in pacers:
                        pacers[other].received(action.data, name, now)
        if quiet:
            return rest
    raise AssertionError("the agents talk for ever")


def joined_pair(now=0.0, **options):
    pair = {name: make(name, [other], **options) for name, other in (("ann", "ben"), ("ben", "ann"))}
    for name, pacer in pair.items():
        pacer.start(now)
        pacer.connected("ben" if name == "ann" else "ann", now)
    return pair, carry(pair, now)


# Joining -------------------------------------------------------------------------------------------------------------


def test_an_agent_alone_joins_at_once():
    pacer = make(neighbours=())
    pacer.start(100.0)
    actions = pacer.actions()
    assert events(actions) == ["joined"] and of(Begin, actions) == [Begin(0)]
    assert pacer.wants_sample


def test_two_agents_ask_each_other_before_their_first_round():
    pair, rest = joined_pair()
    for actions in rest.values():
        assert events(actions)[-1] == "joined" and of(Begin, actions) == [Begin(0)]
    assert all(pacer.wants_sample for pacer in pair.values())


@pytest.mark.parametrize("clock", ["lockstep", "slotted"])
def test_a_file_goes_on_after_the_samples_that_the_checkpoint_counts(clock):
    """Rounds are not samples: some pass without one, and a sample may be refused."""
    before = make(neighbours=(), clock=clock)
    before.start(0.0)
    for t in range(7):
        before.learn(X, 0.5, float(t))
        if clock == "slotted":
            before.no_sample(t + 0.5)
    before.learn([math.inf, 0.7], 0.5, 8.0)
    assert before.agent.samples == 8
    pacer = make(neighbours=(), clock=clock)
    pacer.agent.restore(before.agent.state())
    pacer.start(50.0)
    assert of(Begin, pacer.actions()) == [Begin(8)]


def test_a_jump_to_the_round_of_the_others_is_told_of():
    pair = {name: make(name, [other], patience=1.0) for name, other in (("ann", "ben"), ("ben", "ann"))}
    for rounds, pacer in zip((3, 9), pair.values(), strict=True):
        pacer.start(0.0)
        pacer.handle_timer(1.0)  # gives the other up
        for t in range(rounds):
            pacer.learn(X, 0.5, 1.0 + t)
        pacer.connected("ben" if pacer.agent.name == "ann" else "ann", 20.0)
    rest = carry(pair, 20.0)
    told = [note for actions in rest.values() for note in of(Note, actions) if note.event == "jumped"]
    assert [note.fields for note in told] == [{"from": 3, "to": 9, "neighbour": "ben"}]
    assert (pair["ann"].agent.round, pair["ann"].agent.samples) == (9, 3)


def test_there_are_no_rounds_before_joining():
    for clock in ("lockstep", "slotted"):
        pacer = make(clock=clock)
        pacer.start(0.0)
        pacer.handle_timer(5.0)
        assert not pacer.wants_sample


# Reminders -----------------------------------------------------------------------------------------------------------


def test_reminders_come_after_twice_as_long_each_time_and_at_most_two_seconds():
    pacer = make(patience=100.0)
    pacer.start(10.0)
    assert sent(pacer.actions()) == ["call"]
    moments = []
    while len(moments) < 6:
        now = pacer.deadline
        pacer.handle_timer(now)
        assert sent(pacer.actions()) == ["call"]
        moments.append(now - 10.0)
    assert moments == [0.25, 0.75, 1.75, 3.75, 5.75, 7.75]


def test_a_round_makes_reminders_quick_again():
    pair, _ = joined_pair(patience=100.0)
    ann = pair["ann"]
    ann.learn(X, 0.5, 1.0)
    for now in (1.25, 1.75, 2.75):
        ann.handle_timer(ann.deadline)
        assert sent(ann.actions()).count("request") == 1, now
    assert ann.deadline == 4.75
    pair["ben"].learn(X, 0.5, 3.0)
    carry(pair, 3.0)
    ann.learn(X, 0.5, 3.5)
    assert ann.deadline == 3.75


def test_who_only_waits_for_a_sample_reminds_nobody():
    pair, _ = joined_pair(patience=100.0)
    for _ in range(10):
        pair["ann"].handle_timer(pair["ann"].deadline)
        assert sent(pair["ann"].actions()) == []


# Patience ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clock", ["lockstep", "slotted"])
def test_a_neighbour_that_never_comes_is_given_up(clock):
    pacer = make(clock=clock, patience=3.0)
    pacer.start(0.0)
    pacer.handle_timer(2.999)
    assert not of(Alert, pacer.actions())
    pacer.handle_timer(3.0)
    actions = pacer.actions()
    assert of(Alert, actions) == [Alert("neighbour is silent", {"neighbour": "ben"})]
    assert events(actions) == ["given up", "joined"]
    assert pacer.given_up == {"ben"} and pacer.agent.edges == {"ben": "gone"}
    pacer.handle_timer(60.0)
    assert not of(Alert, pacer.actions())  # once is enough


def test_in_lockstep_a_neighbour_that_went_may_come_back_in_time():
    pair, _ = joined_pair(patience=3.0)
    ann = pair["ann"]
    ann.disconnected("ben", 10.0)
    ann.disconnected("ben", 11.0)  # said twice, it is still gone since the first
    ann.handle_timer(12.9)
    ann.connected("ben", 12.95)
    ann.handle_timer(30.0)
    assert not of(Alert, ann.actions())
    assert ann.here == {"ben"} and ann.agent.edges == {"ben": "live"}


def test_on_slots_a_neighbour_that_went_is_given_up_at_once_and_met_again():
    pair, _ = joined_pair(clock="slotted", patience=3.0)
    ann = pair["ann"]
    ann.disconnected("ben", 10.0)
    assert ann.deadline <= 10.0
    ann.handle_timer(10.0)
    assert of(Alert, ann.actions()) == [Alert("neighbour is silent", {"neighbour": "ben"})]
    ann.disconnected("ben", 10.5)  # is no news
    ann.handle_timer(10.5)
    assert not of(Alert, ann.actions())
    ann.connected("ben", 11.0)
    actions = ann.actions()
    assert of(Alert, actions) == [Alert("neighbour is back", {"neighbour": "ben"})]
    assert "call" in sent(actions)
    assert ann.given_up == set() and ann.agent.edges == {"ben": "opening"}


def test_strangers_do_not_count():
    pacer = make()
    pacer.start(0.0)
    pacer.actions()
    pacer.connected("zoe", 0.1)
    pacer.disconnected("zoe", 0.2)
    assert pacer.actions() == [] and pacer.here == set()


# Rounds --------------------------------------------------------------------------------------------------------------


def test_in_lockstep_a_neighbour_that_is_there_and_does_not_agree_is_given_up_and_met_again():
    """It does not know of the edge, say: its site is set up otherwise."""
    ann, ben = make("ann", patience=4.0), make("ben", ["cid"], patience=4.0)
    ann.start(0.0)
    ann.connected("ben", 0.1)
    now, ready, told = 0.1, [], []
    while now < 60.0:
        now = max(now + 0.01, ann.deadline)
        ann.handle_timer(now)
        told += [(now, alert.event) for alert in of(Alert, ann.actions())]
        ready.append((now, ann.wants_sample))
        if ann.wants_sample:
            ann.learn(X, 0.5, now)
    waited = [now for now, is_ready in ready if not is_ready]
    assert 12.0 < min(now for now, is_ready in ready if is_ready) < 15.0
    assert max(waited) > 25.0 and len([now for now in waited if now > 15.0]) < 20  # for a moment, now and then
    assert [event for _, event in told] == ["neighbour is silent"]
    ben.start(now)
    ben.remove("cid")
    ben.add("ann", now)  # somebody puts it right
    ben.connected("ann", now)
    rest = carry({"ann": ann, "ben": ben}, now)
    assert ann.agent.edges == {"ben": "live"} and not ann.given_up
    assert "neighbour is back" in [alert.event for alert in of(Alert, rest["ann"])]


def wait_for_ben(answers, until, doubled=False):
    """Ann has learned and waits for ben, whom the transport says to be there; what she told, and when she was ready."""
    pair, _ = joined_pair(patience=4.0)
    ann, ben = pair.values()
    ann.agent._dialogue.ends["ben"].doubled = doubled
    ann.learn(X, 0.5, 0.0)
    carry(pair, 0.0)
    told, ready, now = [], math.inf, 0.0
    while now < until and ready == math.inf:
        now = min(pacer.deadline for pacer in (pair.values() if answers else [ann]))
        ann.handle_timer(now)
        if answers:
            ben.handle_timer(now)
            told += carry(pair, now)["ann"]
        else:
            told += ann.actions()
        ready = now if ann.wants_sample else math.inf
    return ready, [alert.event for alert in of(Alert, told)]


def test_in_lockstep_a_session_that_nobody_answers_in_is_given_up():
    """Its process is gone, and another of its name gives the sign of life; before, it was waited for for ever."""
    for doubled, patience in ((False, 12.0), (True, 4.0)):
        ready, told = wait_for_ben(False, 60.0, doubled)
        assert patience <= ready < patience + 3.0 and told == ["neighbour is silent"]


def test_in_lockstep_a_neighbour_that_waits_for_its_sample_answers_and_is_waited_for():
    assert wait_for_ben(True, 300.0) == (math.inf, [])


def test_a_round_ends_the_patience_with_a_neighbour_that_was_silent_before_it():
    pair, _ = joined_pair(patience=4.0)
    ann, ben = pair.values()
    for start in (0.0, 20.0, 40.0):  # each time ben is silent for less than he may be
        ann.learn(X, 0.5, start)
        carry(pair, start)
        for now in (start + 0.25, start + 1.0, start + 3.0, start + 6.0):
            ann.handle_timer(now)
            assert sent(ann.actions()) == ["request"]  # and lost
        ben.learn(X, 0.5, start + 6.5)
        carry(pair, start + 6.5)
        assert ann.wants_sample and not ann.given_up


def test_in_lockstep_who_only_waits_for_a_sample_answers_again_after_a_while():
    """The first answer was lost; no round begins here, and whoever asks cannot go on without an answer."""
    pair, _ = joined_pair()
    ann, ben = pair.values()
    ben.agent.disconnected("ann")
    ben.agent.connected("ann")
    answers = []
    for turn in range(4):
        now = 1.0 + turn
        ann.handle_timer(now)
        ben.handle_timer(now)
        for message in of(lc.protocol.Message, ben.actions()):
            ann.received(message.data, "ben", now)
        answers += [(turn, kind) for kind in sent(ann.actions())]
    assert {turn for turn, kind in answers if kind == "call"} >= {0, 1, 2}


def test_a_neighbour_that_was_taken_away_is_neither_waited_for_nor_given_up():
    pair, _ = joined_pair(patience=4.0)
    ann = pair["ann"]
    ann.disconnected("ben", 1.0)
    ann.remove("ben")
    ann.handle_timer(20.0)
    assert not ann.given_up and not ann.here and ann.wants_sample
    assert not of(Alert, ann.actions())
    ann.add("ben", 20.0)
    assert not ann.wants_sample and ann.agent.waiting == ("ben",)
    ann.handle_timer(24.0)
    assert ann.given_up == {"ben"} and ann.wants_sample
    assert [alert.event for alert in of(Alert, ann.actions())] == ["neighbour is silent"]
    ann.connected("ben", 25.0)
    carry(pair, 25.0)
    assert ann.agent.edges == {"ben": "live"} and ann.here == {"ben"}


def test_lockstep_wants_a_sample_once_all_have_been_heard():
    pair, _ = joined_pair()
    ann, ben = pair.values()
    info = ann.learn(X, 0.5, 1.0)
    assert info.round == 1 and not ann.wants_sample
    assert ben.no_sample(1.0) is None and ben.wants_sample  # it waits, and goes on waiting
    ben.learn(X, 0.5, 2.0)
    carry(pair, 2.0)
    assert ann.wants_sample and ben.wants_sample
    ann.learn(X, 0.5, 2.5)
    assert ann.took == 1.5


def test_a_sample_that_is_refused_is_noted_and_costs_no_round():
    pacer = make(neighbours=())
    pacer.start(0.0)
    pacer.actions()
    assert pacer.learn([math.inf, 0.0], 0.5, 1.0) is None
    assert events(pacer.actions()) == ["sample refused"]
    assert pacer.agent.round == 0 and pacer.wants_sample and not pacer.over


def test_slots_begin_at_whole_multiples_by_the_time_of_day():
    pacer = make(neighbours=(), clock="slotted", slot=2.0)
    pacer.start(100.0, offset=0.5)  # the time of day is 100.5: the next slot begins at 102
    pacer.handle_timer(101.4)
    assert not pacer.wants_sample
    pacer.handle_timer(101.5)
    assert pacer.wants_sample
    assert math.isnan(pacer.no_sample(101.5).prediction)  # a tick without a sample is a round, too
    assert not pacer.wants_sample
    pacer.handle_timer(103.49)
    assert not pacer.wants_sample
    pacer.handle_timer(103.5)
    assert pacer.learn(X, 0.5, 103.5).round == 2


def test_a_late_tick_does_not_make_the_next_one_late():
    pacer = make(neighbours=(), clock="slotted")
    pacer.start(0.0)
    pacer.handle_timer(1.9)
    assert pacer.no_sample(1.9).round == 1
    pacer.handle_timer(2.0)
    assert pacer.no_sample(2.0).round == 2


def test_slots_that_were_missed_are_gone():
    pacer = make(neighbours=(), clock="slotted")
    pacer.start(0.0)
    pacer.handle_timer(1.0)
    pacer.no_sample(1.0)
    pacer.actions()
    pacer.handle_timer(5.5)  # the ticks of seconds 2, 3 and 4 have passed, that of 5 is late
    assert events(pacer.actions()) == []
    assert pacer.no_sample(5.5).round == 5
    pacer.handle_timer(12.0)
    assert [a.fields for a in of(Note, pacer.actions()) if a.event == "was away"] == [{"rounds": 6}]
    assert pacer.no_sample(12.0).round == 12


def test_the_first_tick_is_the_first_round_however_late_it_is():
    pacer = make(neighbours=(), clock="slotted", slot=0.25)
    pacer.start(0.0)
    pacer.handle_timer(1.1)
    assert pacer.no_sample(1.1).round == 1
    assert pacer.deadline == 1.25
    pacer.handle_timer(1.25)
    assert pacer.no_sample(1.25).round == 2


def test_a_tick_without_an_answer_is_still_one_round():
    pacer = make(neighbours=(), clock="slotted")
    pacer.start(0.0)
    for now in (1.0, 2.0, 3.0):
        pacer.handle_timer(now)
    assert pacer.no_sample(3.0).round == 1
    assert not pacer.wants_sample


# Checkpoints, predictions, progress ----------------------------------------------------------------------------------


def test_a_checkpoint_is_due_every_so_many_rounds_and_at_the_end():
    pacer = make(neighbours=(), checkpoint_every=3, patience=1.0)
    pacer.start(0.0)
    saved = []
    for t in range(1, 8):
        pacer.learn(X, 0.5, float(t))
        saved += of(Save, pacer.actions())
    assert saved == [Save(3), Save(6)]
    pacer.stop(9.0)
    assert pacer.over and of(Save, pacer.actions()) == [Save(7)]


def test_a_checkpoint_is_not_put_off_when_the_round_goes_back():
    pacer = make(neighbours=(), checkpoint_every=3, patience=1.0)
    pacer.agent._dialogue.round = pacer.agent._dialogue.finished = 1 << 40
    pacer.start(0.0)
    pacer.agent._dialogue.round = pacer.agent._dialogue.finished = 10  # where most neighbours are, say
    saved = []
    for t in range(1, 6):
        pacer.learn(X, 0.5, float(t))
        saved += of(Save, pacer.actions())
    assert saved == [Save(14)]


def test_without_a_disk_nothing_is_saved():
    pacer = make(neighbours=())
    pacer.start(0.0)
    pacer.learn(X, 0.5, 1.0)
    pacer.stop(2.0)
    assert not of(Save, pacer.actions())


def test_a_checkpoint_comes_before_what_the_round_says():
    pair, _ = joined_pair(checkpoint_every=1)
    pair["ann"].learn(X, 0.5, 1.0)
    actions = pair["ann"].actions()
    assert isinstance(actions[0], Save) and sent(actions[1:]) == ["dense"]
    assert not pair["ann"].agent.must_save or len(of(Save, actions)) == 1


def test_what_was_agreed_on_is_saved_before_it_is_said():
    """Whether or not a round is due for a checkpoint: a decision, and a session that begins."""
    for name, other in (("ann", "ben"), ("ben", "ann")):
        pair = {one: make(one, [two], checkpoint_every=100) for one, two in (("ann", "ben"), ("ben", "ann"))}
        for pacer in pair.values():
            pacer.start(0.0)
        saved = False
        for _ in range(5):
            for sender, receiver in ((other, name), (name, other)):
                actions = pair[sender].actions()
                kinds = sent(actions)
                if {"decide", "confirm"} & set(kinds):
                    assert isinstance(actions[0], Save)
                    saved |= sender == name
                for message in of(lc.protocol.Message, actions):
                    pair[sender].agent.state()
                    pair[receiver].received(message.data, sender, 0.0)
        assert saved


def test_predictions_are_published_no_faster_than_asked():
    pacer = make(neighbours=(), predictions=2.0)
    pacer.start(0.0)
    published = []
    for k in range(21):
        pacer.learn(X, 0.5, 1.0 + k / 8, measured=float(k))
        published += of(Predicted, pacer.actions())
    assert [p.round for p in published] == [1, 5, 9, 13, 17, 21]
    assert published[1].measured == 4.0
    assert published[1].prediction != published[0].prediction == 0.0


def test_progress_is_told_every_so_many_seconds_with_those_who_are_waited_for():
    pacer = make(progress=5.0, patience=100.0)
    pacer.start(0.0)
    told = []
    for now in (4.9, 5.0, 9.9, 10.5, 15.4, 15.5):
        pacer.handle_timer(now)
        told += [(now, *action) for action in of(Progress, pacer.actions())]
    assert told == [(now, 0, ("ben",)) for now in (5.0, 10.5, 15.5)]


# The end -------------------------------------------------------------------------------------------------------------


def test_lockstep_lingers_until_it_is_quiet():
    pair, _ = joined_pair(rounds=1)
    ann, ben = pair.values()
    ann.learn(X, 0.5, 1.0)
    assert not ann.wants_sample and not ann.over
    ann.handle_timer(1.4)  # nothing was heard for long, but ben's round is still to come
    assert not ann.over
    ben.learn(X, 0.5, 2.0)
    carry(pair, 2.0)
    ann.handle_timer(2.25)
    assert not ann.over
    ann.received(b"nonsense", "ben", 2.25)  # somebody still speaks
    ann.handle_timer(2.5)
    assert not ann.over
    ann.handle_timer(2.55)
    assert ann.over
    assert ann.agent.state().about["finished"] == 1  # it has taken in the others' last round


def test_lockstep_lingers_no_longer_than_its_patience():
    pair, _ = joined_pair(patience=3.0)
    ann = pair["ann"]
    ann.learn(X, 0.5, 1.0)
    ann.samples_ended(1.0)
    while not ann.over:
        now = ann.deadline
        ann.handle_timer(now)
    assert now == 4.0


def test_an_agent_that_comes_back_after_its_last_round_has_nothing_to_learn():
    pacer = make(neighbours=(), rounds=2)
    pacer.start(0.0)
    for t in (1.0, 2.0):
        pacer.learn(X, 0.5, t)
    again = make(neighbours=(), rounds=2)
    again.agent.restore(pacer.agent.state())
    again.start(10.0)
    assert not again.wants_sample
    again.handle_timer(10.29)
    assert not again.over
    again.handle_timer(10.3)
    assert again.over


def test_on_slots_the_end_is_the_end():
    for finish in (lambda p: p.samples_ended(2.0), lambda p: (p.handle_timer(2.0), p.no_sample(2.0))):
        pacer = make(neighbours=(), clock="slotted", rounds=2, checkpoint_every=100)
        pacer.start(0.0)
        pacer.handle_timer(1.0)
        pacer.no_sample(1.0)
        finish(pacer)
        assert pacer.over and len(of(Save, pacer.actions())) == 1


@pytest.mark.parametrize("clock", ["lockstep", "slotted"])
def test_after_a_stop_nothing_happens_any_more(clock):
    pacer = make(clock=clock, checkpoint_every=5)
    pacer.start(0.0)
    pacer.stop(0.1)  # before it has joined
    assert of(Save, pacer.actions()) == [Save(0)]
    assert pacer.over and pacer.failure is None
    pacer.stop(0.2)
    pacer.handle_timer(100.0)
    assert pacer.deadline == math.inf and pacer.actions() == [] and not pacer.wants_sample


def test_a_model_that_left_all_bounds_ends_it_without_a_checkpoint():
    learner = lc.ODKLA(rho=0.01, eta=0.01)
    agent = lc.Agent("ann", [], FEATURES, learner, n_agents=1)
    pacer = make_pacer(agent, Terms(**QUIET, checkpoint_every=1000))
    pacer.start(0.0)
    pacer.actions()
    for t in range(1000):
        if pacer.learn(X, 0.5, float(t)) is None:
            break
    actions = pacer.actions()
    assert pacer.over and isinstance(pacer.failure, lc.Diverged)
    assert [a.event for a in of(Alert, actions)] == events(actions) == ["diverged"]
    assert not of(Save, actions)


# Deadlines -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clock", ["lockstep", "slotted"])
@pytest.mark.parametrize("late", [0.0, 1e-9, 0.7, 7.0])
def test_to_be_called_at_the_deadline_is_always_enough(clock, late):
    """Each call moves the deadline on: no driver spins, whatever its clock does, and an agent left alone gets going."""
    pacer = make(clock=clock, patience=2.0, progress=3.0, slot=0.3)
    pacer.start(1e6)
    now, rounds = 1e6, 0
    for _ in range(200):
        deadline = pacer.deadline
        assert deadline > now or pacer.wants_sample
        now = max(now, deadline) + late
        pacer.handle_timer(now)
        if pacer.wants_sample:
            pacer.learn(X, 0.5, now)
            rounds += 1
        pacer.actions()
        assert pacer.deadline > now
    assert rounds > 50


def test_to_be_called_too_early_does_nothing():
    pair, _ = joined_pair(patience=5.0, progress=50.0)
    ann = pair["ann"]
    ann.learn(X, 0.5, 1.0)
    ann.actions()
    deadline = ann.deadline
    for now in np.linspace(1.0, deadline, 20)[:-1]:
        ann.handle_timer(float(now))
        assert ann.actions() == [] and ann.deadline == deadline


def test_the_pacer_fits_the_agents_clock():
    assert type(make(clock="lockstep")) is Lockstep
    slotted = make(clock="slotted", slot=0.5)
    assert type(slotted) is Slotted and slotted.slot == 0.5
