"""What a neighbour can bring about, in numbers: rounds, models, answers, memory, alerts."""

import logging
import math

import numpy as np
import pytest
from agent_kit import carry, check_invariants, end_round, make_team, post, puppet, speak
from breadth import crossed
from conftest import CHANNELS

import laconic as lc
from laconic.protocol import dialogue as dialogue_module
from laconic.protocol.actions import Alert, Terms
from laconic.protocol.dialogue import ENOUGH, QUARANTINE, TOLD
from laconic.protocol.ends import ALLOWANCE, WHOLE
from laconic.protocol.handshake import FURTHEST, ROUND_LIMIT
from laconic.protocol.ledger import REACH
from laconic.protocol.messages import (
    Call,
    Confirm,
    Decide,
    Farewell,
    Hello,
    Kind,
    Offer,
    Refused,
    Request,
    Statement,
)
from laconic.protocol.paces import Slotted, make_pacer
from laconic.protocol.session import HELD, LOGGED
from laconic.testing import fuzz
from laconic.testing.liar import Liar, Scene, fuzz_hostile

STAR = ["ann-ben", "ben-cid", "ben-dan"]


def settle(agents, times=6):
    carry(agents)
    for _ in range(times):
        for agent in agents.values():
            agent.remind()
        carry(agents)


def put_at(agent, round):
    agent._dialogue.round = agent._dialogue.finished = round


# --------------------------------------------------------------------------------------------------------------------
# Rounds


def test_few_neighbours_move_a_round_by_a_bounded_amount_in_all(features):
    """(H4) Again and again, by as much as once is allowed: the second time it is refused."""
    agents = make_team(puppet(), features, STAR, clock="lockstep")
    ann, ben = agents["ann"], agents["ben"]
    for agent in agents.values():
        speak(agent, agent.weights + 1.0)
    carry(agents)
    for turn in range(5):
        ann.disconnected("ben")
        ben.disconnected("ann")
        speak(ann, ann.weights + 1.0)  # so that the session cannot go on
        put_at(ann, ben.round + FURTHEST - 100)
        ann.connected("ben")
        ben.connected("ann")
        settle(agents)
        assert ben.round == 1 + FURTHEST - 100
        assert ben.edges["ann"] in (("live",) if turn == 0 else ("opening", "gone"))  # gone in the end: quarantined
        assert agents["cid"].round == ben.round  # who is honest is believed, and has the same limit
    assert ben.counters["refusals"]["too far ahead"] > 0
    assert ben.edges["cid"] == ben.edges["dan"] == "live"


def test_a_partition_heals_though_most_neighbours_are_on_one_side(features):
    """One neighbour of three is ahead, as after a cut: within the limit that is enough."""
    agents = make_team(puppet(), features, STAR, clock="lockstep")
    ann, ben = agents["ann"], agents["ben"]
    ann.disconnected("ben")
    ben.disconnected("ann")
    for _ in range(200):
        speak(ann, ann.weights + 1.0)
    ann.connected("ben")
    ben.connected("ann")
    settle(agents)
    assert {agent.round for agent in agents.values()} == {200}
    end_round(agents)
    check_invariants(agents)


@pytest.mark.parametrize("leaf", ["ann", "dan"], ids=["leads", "follows"])
def test_who_was_led_far_away_by_its_only_neighbour_comes_back(leaf, features):
    """When that neighbour has been set up anew: nobody would follow it there, and it would be alone for ever."""
    agents = make_team(puppet(), features, STAR, clock="lockstep", meet=False)
    for name in agents:
        put_at(agents[name], (1 << 40) if name == leaf else 7)
    settle(agents)
    assert {agent.round for agent in agents.values()} == {7}
    assert all(set(agent.edges.values()) == {"live"} for agent in agents.values())
    for _ in range(3):
        for agent in agents.values():
            speak(agent, agent.weights + 1.0)
        carry(agents)
    end_round(agents)
    check_invariants(agents)


def test_one_neighbour_of_several_makes_nobody_go_back(features):
    """And of two who have nobody else, the one behind follows."""
    for edges, rounds in ((STAR, {"ann": 7}), (["ann-ben"], {"ann": 7}), (["ann-ben"], {"ben": 7})):
        agents = make_team(puppet(), features, edges, clock="lockstep", meet=False)
        for name in agents:
            put_at(agents[name], rounds.get(name, 1 << 40))
        settle(agents)
        assert {agent.round for agent in agents.values()} == {1 << 40}
        assert all(set(agent.edges.values()) == {"live"} for agent in agents.values())
    hub = make_team(puppet(), features, [*STAR, "ann-eve", "ann-fay"], clock="lockstep", meet=False)
    for name in ("ben", "cid", "dan"):
        put_at(hub[name], 1 << 40)
    settle(hub)
    assert {name: agent.round > 1 << 39 for name, agent in hub.items() if name in ("ben", "ann")} == {
        "ben": True,  # most of its neighbours are there
        "ann": False,
    }
    assert hub["ben"].counters["refusals"]["too far behind"] > 0


def test_who_comes_without_memory_believes_most_of_those_who_are_there(features):
    agents = make_team(puppet(), features, STAR, clock="lockstep", meet=False)
    for name in ("cid", "dan"):
        put_at(agents[name], 50_000_000)
    agents["ben"].disconnected("ann")
    agents.pop("ann")
    agents["ben"].rejoin()
    settle(agents)
    assert agents["ben"].round == 50_000_000
    assert set(agents["ben"].edges.values()) == {"gone", "live"}


@pytest.mark.parametrize("clock", ["lockstep", "slotted"])
def test_nobody_gets_a_round_to_the_end_of_counting(clock, features):
    agents = make_team(puppet(), features, ["ann-ben"], clock=clock, meet=False)
    ann, ben = agents.values()
    put_at(ann, ROUND_LIMIT + 1)
    ben.rejoin()
    settle(agents)
    assert ben.edges["ann"] == "opening" and ben.round == 0
    assert ben.counters["refusals"]["too far ahead"] > 0
    with pytest.raises(ValueError, match="round must be"):
        lc.Agent("x", [], features, ann.learner, n_agents=1, clock="slotted").skip_to(ROUND_LIMIT + 1)


def test_a_claim_in_a_call_does_not_set_the_round_of_a_newcomer_on_slots(features):
    """Neither does it get beyond the limit, nor does one of two neighbours decide."""
    agents = make_team(puppet(), features, ["ann-ben", "ben-cid"], meet=False)
    for name in ("ann", "cid"):
        put_at(agents[name], 1000)
    ben = agents["ben"]
    ben.rejoin()
    carry(agents)
    call = Call(agents["ann"]._dialogue.inc, 9, (1 << 47) - 1, 1, 2, False)
    ben.receive(agents["ann"]._wire.encode(call, ben._wire.sender, False), "ann")
    assert ben._dialogue.ends["ann"].claim == ROUND_LIMIT
    ben.idle()
    assert ben.round == 1001


# --------------------------------------------------------------------------------------------------------------------
# Models


def forged(liar, victim, kind, data):
    """What ``liar`` says next, with the digest that belongs to it."""
    end, to = liar._dialogue.ends[victim.name], victim._dialogue.ends[liar.name]
    said = Statement(end.tag, to.heard + 1, to.k + 1, 1, 0, kind, data)
    said = said._replace(digest=Liar(0)._digest(victim, to, said))
    return liar._wire.encode(said, 0, not end.leads)


LEARNERS = {
    "odkla": lc.ODKLA(rho=0.5, eta=1.0),
    "qc": lc.QCODKLA(rho=0.5, eta=1.0, alpha=0.5, beta=0.99, bits=3),
    "diffusion": lc.RFFDOKL(step=0.06),
}


@pytest.mark.parametrize(
    ("clock", "learner", "size"), crossed(["lockstep", "slotted"], LEARNERS.values(), [1e7, 9e13, 3e38]), ids=repr
)
def test_a_model_a_million_times_too_large_is_refused_and_nobody_follows(clock, learner, size, features):
    """(H3) The ring goes on without its author; before, it stood at 1e38."""
    ring = ["ann-ben", "ben-cid", "cid-dan", "dan-eve", "ann-eve"]
    agents = make_team(learner, features, ring, clock=clock)
    random = np.random.default_rng(0)

    def rounds(count, who):
        for _ in range(count):
            for agent in [agent for agent in who.values() if agent.ready]:
                x = random.uniform(size=features.n_inputs)
                agent.learn(x, float(np.sin(5 * x[0])))
            carry(who)

    rounds(20, agents)
    ann = agents.pop("ann")
    for victim in (agents["ben"], agents["eve"]):
        if clock == "lockstep":
            speak_all = victim.learn(np.full(features.n_inputs, 0.5), 0.0)
            assert speak_all.round == 21
        wire = ann._wire
        packed = np.full(wire.packed_size, 0xFF, dtype=np.uint8)
        if wire._bits * features.n_features % 8:
            packed[-1] = (1 << wire._bits * features.n_features % 8) - 1
        model = wire.model(np.full(features.n_features, min(size, 9e14)))
        data = wire.difference(packed, size) if wire.packed_size else model
        kind = Kind.DIFFERENCE if wire.packed_size else Kind.DENSE
        for _ in range(ENOUGH):
            victim.receive(forged(ann, victim, kind, data), "ann")
        assert set(victim.counters["refusals"]) <= {"too large", "not finite"}
        assert victim.edges["ann"] == "gone"
        assert ("quarantined", "ann") in victim.alerts()
    settle(agents)
    rounds(30, agents)
    assert max(np.abs(agent.weights).max() for agent in agents.values()) < 10


@pytest.mark.parametrize("learner", [lc.ODKLA(rho=0.5, eta=2.0), lc.WaveRLS()], ids=lambda learner: learner.name)
def test_who_is_quarantined_by_one_does_not_hold_up_the_others(learner, features):
    """In lockstep it would wait for the one that shut it out, and its other neighbours for it."""
    agents = make_team(learner, features, ["ann-ben", "ann-cid", "ben-cid"], clock="lockstep")
    learn(agents, 5)
    ben = agents["ben"]._dialogue
    ben.quarantine(ben.ends["ann"])
    before = {name: agent.round for name, agent in agents.items()}
    for _ in range(10):
        learn(agents, 1)
        settle(agents, 1)
    assert min(agents[name].round - before[name] for name in agents) >= 8
    assert agents["ann"].edges["ben"] == agents["ben"].edges["ann"] == "gone"
    for _ in range(QUARANTINE):
        settle(agents, 1)
    learn(agents, 5)
    assert agents["ann"].edges["ben"] == agents["ben"].edges["ann"] == "live"


def test_the_yardstick_is_the_agents_own(features):
    """One neighbour alone does not raise it, not even if it is the only one; most of them do."""
    for norms, own, expected in (
        ([], 1.0, 1.0),
        ([1e9], 1.0, 1.0),
        ([1e9], 0.0, 1e9),
        ([5.0, 1e9], 1.0, 5.0),
        ([5.0, 1e9], 0.0, 5.0),
        ([0.0, 1e9], 2.0, 2.0),
        ([5.0, 5.0, 1e9], 1e-3, 5.0),
        ([5.0, 6.0, 1e9, 1e9], 1.0, 6.0),
        ([0.0, 0.0], 0.0, 0.0),
    ):
        names = [f"n{k}" for k in range(len(norms))]
        agent = lc.Agent("me", names, features, lc.ODKLA(rho=0.5, eta=1.0), n_agents=9, clock="slotted")
        ledger = agent._ledger
        ledger.row.largest = own
        for index, norm in enumerate(norms, 1):
            ledger.said(index)[0] = norm
        ledger.listen_to(tuple(range(1, 1 + len(norms))), (0.1,) * len(norms))
        assert ledger._usual() == expected, (norms, own)
        assert ledger._raise_yardstick() == (expected > own)


def test_reach_is_of_the_norm_and_of_the_dual(features):
    agent = lc.Agent("me", ["ann"], features, lc.ODKLA(rho=0.25, eta=1.0), n_agents=2)
    ledger, one = agent._ledger, np.zeros(features.n_features)
    one[2] = 1.0
    assert not ledger.is_too_large(9e14 * one, 1e30 * one)  # who has seen nothing has nothing to compare with
    ledger.row.largest = 2.0
    assert not ledger.is_too_large(2 * REACH * one, 8 * REACH * one)
    assert ledger.is_too_large(2.01 * REACH * one)
    assert ledger.is_too_large(one, 8.01 * REACH * one)
    assert ledger.is_too_large(np.full(features.n_features, 2 * REACH))
    assert ledger.is_too_large(math.nan * one)


def test_a_newcomer_without_memory_quarantines_who_is_far_from_the_others(features):
    """It has seen no label, and believes what it is told; when it begins, it compares."""
    agents = make_team(puppet(), features, STAR)
    for turn in range(30):
        for agent in agents.values():
            speak(agent, np.full(features.n_features, 1.0 + turn % 2))
        carry(agents)
    liar = agents["ann"]
    liar._ledger.said(0)[:] = 9e13
    agents["ben"] = ben = lc.Agent("ben", ["ann", "cid", "dan"], features, liar.learner, n_agents=4, clock="slotted")
    ben.rejoin()
    carry(agents)
    assert set(ben.edges.values()) == {"live"}
    ben.idle()
    assert ben.edges == {"ann": "gone", "cid": "live", "dan": "live"}
    assert ben.alerts() == [("quarantined", "ann")]
    assert np.abs(ben.weights).max() <= 2


def learn(agents, n_rounds, liar=None, says=None):
    """Rounds of honest agents; in each the liar says a model to all that it is a neighbour of."""
    random = np.random.default_rng(7)
    for _ in range(n_rounds):
        for agent in agents.values():
            if agent.ready:
                x = random.uniform(size=agent.features.n_inputs)
                agent.learn(x, float(np.sin(5 * x[0])))
        if liar is not None:
            for name in liar.neighbours:
                if agents[name].edges[liar.name] == "live":
                    model = np.full(agents[name].features.n_features, says / np.sqrt(agents[name].features.n_features))
                    data = forged(liar, agents[name], Kind.DENSE, liar._wire.model(model))
                    agents[name].receive(data, liar.name)
        carry(agents)


RING = ["ann-ben", "ben-cid", "cid-dan", "dan-eve", "ann-eve"]


@pytest.mark.parametrize(
    ("size", "clock", "engine"), crossed([2e4, 5e5], ["lockstep", "slotted"], ["compiled", "reference"])
)
def test_a_lie_within_reach_that_would_end_an_agent_is_taken_back(size, clock, engine, features):
    """The step is made again without its author before anybody hears of it."""
    agents = make_team(LEARNERS["odkla"], features, RING, clock=clock, engine=engine)
    learn(agents, 20)
    ann = agents.pop("ann")
    learn(agents, 3, ann, size)
    settle(agents)
    learn(agents, 30)
    for name in ("ben", "eve"):
        assert agents[name].edges["ann"] == "gone" and ("quarantined", "ann") in agents[name].alerts()
        assert "too large" not in agents[name].counters["refusals"]
    for name in ("cid", "dan"):
        assert set(agents[name].edges.values()) == {"live"} and agents[name].alerts() == []
    assert max(np.abs(agent.weights).max() for agent in agents.values()) < 10


def test_a_lie_that_is_not_worth_a_quarantine_drags_nobody_out_of_bounds(features):
    """For hundreds of rounds: models stay at a thousand yardsticks at most, and the honest ones together."""
    agents = make_team(LEARNERS["odkla"], features, RING, heartbeat=2)
    learn(agents, 20)
    ann = agents.pop("ann")
    for _ in range(60):
        learn(agents, 5, ann, 6000.0)
        for agent in agents.values():
            assert np.linalg.norm(agent.weights) <= 1001
    assert np.linalg.norm(agents["ben"].weights) > 900  # or it was no lie
    for name in ("cid", "dan"):
        assert set(agents[name].edges.values()) == {"live"}


def test_an_imposed_share_is_taken_back(features):
    agents = make_team(LEARNERS["odkla"], features, STAR)
    learn(agents, 20)
    ann, ben = agents["ann"], agents["ben"]
    agents.pop("ann")
    before = ben.duals
    ben.disconnected("ann")
    ben.connected("ann")
    call = Call(ann._dialogue.inc, 1, ann.round, 1, 0, False)
    ben.receive(ann._wire.encode(call, ben._wire.sender, False), "ann")
    offer = ben._dialogue.ends["ann"].out
    share = np.full(features.n_features, 1e5)
    decide = Decide(
        (offer.inc, offer.ctr), ann._dialogue.inc, 9, ann.round, 1, offer.g + 1, False, ann.broadcast, share
    )
    ben.receive(ann._wire.encode(decide, ben._wire.sender, False), "ann")
    assert ben.edges["ann"] == "live" and np.abs(ben.duals).max() > 1e4
    learn(agents, 5)
    assert ben.edges["ann"] == "gone" and ("quarantined", "ann") in ben.alerts()
    assert np.abs(ben.duals).max() < 10 * (1 + np.abs(before).max())
    assert np.abs(ben.weights).max() < 10


def test_a_run_that_diverges_by_itself_still_ends(features):
    learner = lc.ODKLA(rho=0.5, eta=1e-3)
    agents = make_team(learner, features, STAR)
    with pytest.raises(lc.Diverged):
        learn(agents, 500)


# --------------------------------------------------------------------------------------------------------------------
# Answers and memory


def flood_of(kind, liar, victim, k):
    """A message that costs the victim as much as it can, different each time."""
    end, to = liar._dialogue.ends[victim.name], victim._dialogue.ends[liar.name]
    origin = to.origin or (0, 0, 0, 0)
    n = np.zeros(liar.features.n_features)
    out = (to.out.inc, to.out.ctr) if to.out is not None else (victim._dialogue.inc, k)
    letter = {
        "hello": Hello(k, end.tag),
        "call": Call(k, k, liar.round, 1, 2, False),
        "offer": Offer((victim._dialogue.inc, to.call), k, k, liar.round, 1, 0, 0, 0, 0, 0, 0, True, False, n, n),
        "decide": Decide(out, k, k, liar.round, 1, to.g + 1, False, n, n),
        "decide again": Decide(origin[2:], *origin[:2], liar.round, 1, to.g + 1, False, n, n),
        "confirm": Confirm(end.tag),
        "early": Statement(to.tag, to.heard + 2 + k, 1, 1, 0, Kind.DENSE, liar._wire.model(n)),
        "silence": Statement(to.tag, to.heard + 1, to.k + 1, k, 0, Kind.SILENCE, b""),
        "another session": Statement(2 * k, 1, 1, 1, 0, Kind.SILENCE, b""),
        "request": Request(to.tag, max(0, to.spoken - LOGGED)),
        "request of nothing": Request(to.tag, to.spoken),
        "request of too much": Request(to.tag, to.spoken + 9),
        "farewell": Farewell(end.tag),
        "refused": Refused(k),
    }[kind]
    return liar._wire.encode(letter, victim._wire.sender, not end.leads)


FLOODS = (
    "hello call offer decide confirm early silence request farewell refused",
    "decide again,another session,request of nothing,request of too much",
)
FLOODS = [*FLOODS[0].split(), *FLOODS[1].split(",")]


@pytest.mark.parametrize(("kind", "victim", "clock"), crossed(FLOODS, ["ann", "ben"], ["lockstep", "slotted"]))
def test_a_flood_of_any_kind_buys_a_bounded_answer(clock, kind, victim, features):
    """(H5) Between two rounds, however much comes in, and though nobody takes away what is to be sent."""
    agents = make_team(puppet(), features, ["ann-ben"], clock=clock)
    for turn in range(12):
        for agent in agents.values():
            speak(agent, np.full(features.n_features, float(turn)))
        carry(agents)
    liar = agents.pop("ben" if victim == "ann" else "ann")
    (victim,) = agents.values()
    dialogue, most = victim._dialogue, ALLOWANCE * (8 * features.n_features + 50)
    for k in range(1000):
        victim.receive(flood_of(kind, liar, victim, k), liar.name)
    end = dialogue.ends[liar.name]
    assert len(end.held) <= HELD and len(dialogue.letters) <= 4 * ALLOWANCE
    assert len(dialogue.news) <= 4 and len(dialogue.told) <= 4 and len(end.superseded) <= 8
    answers = [len(data) for _, _, data in post(agents)]
    # Sixteen statements, or four whole answers; what else is said is small.
    assert sum(size for size in answers if size > 100) <= most
    assert len(answers) <= 4 * ALLOWANCE
    for _ in range(20):  # with every round it can buy one more
        for k in range(60):
            victim.receive(flood_of(kind, liar, victim, k), liar.name)
        victim.idle() if victim.ready else victim.remind()
        assert sum(len(data) for _, _, data in post(agents)) <= most + 16 * 60


def test_tokens_come_back_with_rounds_and_reminders(features):
    agents = make_team(puppet(), features, ["ann-ben"])
    ann, ben = agents.values()

    def answers():
        for k in range(40):
            call = Call(ann._dialogue.inc, 100 + k, ann.round, 1, 2, False)
            ben.receive(ann._wire.encode(call, ben._wire.sender, False), "ann")
        return sum(data[2] & 15 == Kind.OFFER for _, _, data in post({"ben": ben}))

    answers()
    ben.remind()
    assert answers() == ALLOWANCE // WHOLE
    assert answers() == 0
    ben.idle()
    assert answers() == 1
    ben.remind()
    assert answers() == ALLOWANCE // WHOLE


def test_who_waits_for_a_sample_in_lockstep_still_answers(features):
    """Time fills the bucket, though no round passes and there is nothing to be reminded of."""
    agents = make_team(puppet(), features, ["ann-ben"], clock="lockstep")
    ann, ben = agents.values()
    pacer = make_pacer(ben, Terms())
    pacer.start(0.0)
    pacer.connected("ann", 0.0)
    pacer.actions()
    carry(agents)
    assert ben.ready
    answered = 0
    for k in range(200):
        call = Call(ann._dialogue.inc, 100 + k, ann.round, 1, 2, False)
        pacer.received(ann._wire.encode(call, ben._wire.sender, False), "ann", 0.1 * k)
        pacer.handle_timer(0.1 * k)
        sent = [action.data for action in pacer.actions() if hasattr(action, "to")]
        answered += sum(data[2] & 15 == Kind.OFFER for data in sent)
    assert answered > 100


# --------------------------------------------------------------------------------------------------------------------
# Alerts


def test_doubts_in_a_row_end_in_a_quarantine_and_it_may_come_back(features):
    """A neighbour that agrees on sessions and then says what is not true in any of them."""
    agents = make_team(puppet(), features, ["ann-ben", "ben-cid"], clock="lockstep")
    ann, ben = agents["ann"], agents["ben"]
    for _ in range(ENOUGH):
        assert ben.edges["ann"] == "live"
        for agent in agents.values():
            if agent.ready:
                speak(agent, agent.weights + 1.0)
        post({"ann": ann})
        end = ben._dialogue.ends["ann"]
        lie = Statement(end.tag, end.heard + 1, 0, 1, 12345, Kind.SILENCE, b"")
        ben.receive(ann._wire.encode(lie, 0, False), "ann")
        settle(agents, 2)
    assert ben.edges == {"ann": "gone", "cid": "live"} and ben.ready
    assert ("quarantined", "ann") in ben.alerts()
    there = {name: agents[name] for name in ("ben", "cid")}
    for _ in range(QUARANTINE + 1):
        if ben.edges["ann"] != "gone":
            break
        assert ben.ready
        for agent in there.values():
            speak(agent, agent.weights)
        carry(there)
    settle(agents)
    assert ben.edges["ann"] == "live"


@pytest.mark.parametrize("clock", ["lockstep", "slotted"])
def test_a_quarantine_that_ends_opens_no_edge_to_who_has_left(clock, features):
    """Before, lockstep waited for it from then on, until its patience was at an end."""
    agents = make_team(puppet(), features, ["ann-ben", "ben-cid"], clock=clock)
    ben, there = agents["ben"], {name: agents[name] for name in ("ben", "cid")}
    ben._dialogue.quarantine(ben._dialogue.ends["ann"])
    ben.disconnected("ann")
    for _ in range(QUARANTINE + 2):
        assert ben.ready and ben.edges["ann"] == "gone"
        for agent in there.values():
            speak(agent, agent.weights)
        carry(there)
    agents["ann"].disconnected("ben")
    agents["ann"].connected("ben")  # whoever is back asks, and is heard again
    settle(agents)
    assert ben.edges["ann"] == agents["ann"].edges["ben"] == "live"


def test_both_processes_of_a_name_and_their_neighbour_are_told(features):
    """(M1)"""
    agents = make_team(puppet(), features, ["ann-ben"])
    ann, older = agents.values()
    newer = lc.Agent("ben", ["ann"], features, older.learner, n_agents=2, clock="slotted")
    newer.rejoin()
    heard = {"ann": [], "older": [], "newer": []}
    for _ in range(8):
        ann.remind()
        for process in (newer, older):
            if process.ready:
                speak(process, process.weights + 1.0)
        for _ in range(6):
            for process in (newer, older):
                for message in process.outgoing():
                    ann.receive(message.data, "ben")
            for message in ann.outgoing():
                older.receive(message.data, "ann")
                newer.receive(message.data, "ann")
    for name, process in (("ann", ann), ("older", older), ("newer", newer)):
        heard[name] = [alert.what for alert in process.alerts()]
    assert heard["ann"] == ["two of one name"]
    assert heard["older"] == heard["newer"] == ["another has this name"]


def test_the_same_is_told_again_after_a_while_only(features, caplog):
    agents = make_team(puppet(), features, ["ann-ben"])
    ben = agents["ben"]._dialogue
    with caplog.at_level(logging.WARNING, "laconic.protocol"):
        for _ in range(100):
            ben.tell(ben.ends["ann"], "disagreement")
    assert ben.news == [("disagreement", "ann")]
    assert [(record.getMessage(), record.neighbour) for record in caplog.records] == [("disagreement", "ann")]
    ben.moment += TOLD
    ben.tell(ben.ends["ann"], "disagreement")
    assert len(ben.news) == 2


def test_alerts_reach_whoever_drives_the_agent(features, tmp_path):
    agents = make_team(puppet(CHANNELS["adaptive"]), features, ["ann-ben"])
    ben = agents["ben"]
    path = tmp_path / "ben.state"
    path.write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="no good checkpoint"):
        ben.load(path)
    pacer = make_pacer(ben, Terms())
    pacer.start(0.0)
    ben._dialogue.quarantine(ben._dialogue.ends["ann"])
    alerts = [action for action in pacer.actions() if isinstance(action, Alert)]
    assert alerts == [Alert("checkpoint refused", {}), Alert("quarantined", {"neighbour": "ann"})]


def test_what_is_harmless_is_part_of_every_repair():
    assert not set(dialogue_module._HARMLESS) & set(dialogue_module._DELIBERATE)


# --------------------------------------------------------------------------------------------------------------------
# A long sleep


@pytest.mark.parametrize("learner", [LEARNERS["odkla"], LEARNERS["qc"]], ids=["odkla", "qc"])
def test_an_agent_suspended_for_two_million_slots_comes_back(learner, features):
    """(H6) As its pacer sees it: the clock has jumped. Its neighbours' duals stay what they were, about."""
    agents = make_team(learner, features, ["ann-ben", "ben-cid", "ann-cid"], heartbeat=3)
    random, now = np.random.default_rng(1), 0.0
    pacers = {name: Slotted(agent, Terms(predictions=0), 0.1) for name, agent in agents.items()}
    for name, pacer in pacers.items():
        pacer.start(now)
        for other in agents:
            pacer.connected(other, now)
        assert name not in pacer.here

    def slots(count, names):
        nonlocal now
        for _ in range(count):
            now += 0.1
            for name in names:
                pacer = pacers[name]
                pacer.handle_timer(now)
                if pacer.wants_sample:
                    x = random.uniform(size=features.n_inputs)
                    pacer.learn(x, float(np.sin(5 * x[0])), now)
            for _ in range(12):
                letters = [(name, a) for name in names for a in pacers[name].actions() if hasattr(a, "to")]
                for name, message in letters:
                    if message.to in names:
                        pacers[message.to].received(message.data, name, now)

    slots(60, agents)
    assert all(set(agent.edges.values()) == {"live"} for agent in agents.values())
    size = max(np.abs(agent.duals).max() for agent in agents.values())
    slots(400, ["ann", "cid"])  # ben hangs, and no notice is given
    assert agents["ann"].edges == {"ben": "opening", "cid": "live"}
    assert max(np.abs(agents[name].duals).max() for name in ("ann", "cid")) < 10 * size
    now += 0.1 * (1 << 21)  # and so do the others for most of the time, which is the same to them
    slots(60, agents)
    assert agents["ben"].round > 1 << 21
    assert all(set(agent.edges.values()) == {"live"} for agent in agents.values())
    assert all("too far ahead" not in agent.counters["refusals"] for agent in agents.values())
    assert max(np.abs(agent.duals).max() for agent in agents.values()) < 10 * size


# --------------------------------------------------------------------------------------------------------------------
# Lies by the thousand


@pytest.mark.parametrize("target", list(fuzz.TARGETS))
def test_lies_with_a_right_checksum_change_nothing_but_their_own_edge(target):
    """10,000 in all; ``benchmarks/fuzz.py`` tells a million."""
    outcome = fuzz_hostile(Scene(target), Liar(seed=3), 2000)
    assert outcome["taken"] > 300
    assert {"malformed", "dimension", "another session", "too large", "not finite", "replayed"} <= set(outcome)


def test_a_lie_that_reaches_the_model_would_be_seen(monkeypatch):
    from laconic.protocol.accounts import Accounts

    honest = Accounts.open

    def opened(self, index, replica, share):
        honest(self, index, replica, share)
        if replica is not None:
            self.ledger.weights[:] = replica

    scene = Scene("dense, lockstep")
    monkeypatch.setattr(Accounts, "open", opened)
    with pytest.raises(AssertionError, match="has changed what is not its own"):
        fuzz_hostile(scene, Liar(seed=3), 2000)
