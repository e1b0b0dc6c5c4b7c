"""Mistakes planted into the pacer and the protocol, which also run over zenoh: schedules of faults must find each."""

import pytest
from breadth import EVERYTHING

from laconic.protocol.accounts import Accounts
from laconic.protocol.conversation import Conversation
from laconic.protocol.handshake import Handshake
from laconic.protocol.pacer import Pacer
from laconic.protocol.paces import Lockstep
from laconic.protocol.session import Session
from laconic.protocol.wire import Wire
from laconic.testing.faults import check, draw_schedule, shrink

CONNECTED, BEGIN, TAKE, HEAR = Pacer.connected, Conversation.begin, Handshake.take, Accounts.hear


def remind_nobody(self, now):
    self._remind_at = now + self._remind_after


def stay_away_from_those_given_up(self, name, now):
    if name not in self.given_up:
        CONNECTED(self, name, now)


def give_up_at_once(self):
    return 0.0


def save_nothing(self):
    """Not even when a checkpoint is due."""


def use_a_tag_again(self, offer, decide):
    """All sessions of an edge have the same name: what was said in one is taken for what is said in another."""
    return 2


def stay_intact_whatever_is_said_without_me(self, *args, **more):
    intact = {name: end.intact for name, end in self.ends.items()}
    BEGIN(self, *args, **more)
    for name, end in self.ends.items():
        end.intact = intact[name]


def keep_the_own_share(self, end, offer, decide):
    share = self.book.share(end.index)
    TAKE(self, end, offer, decide)
    self.book.open(end.index, None, share)


def take_any_offer_for_an_answer(self, end, offer):
    return False


def forget_that_it_was_late(self, index, statement, late, digest_of):
    return HEAR(self, index, statement, 0, digest_of)


def go_on_though_refused(self, end, letter=None):
    """No fencing: a process that another has taken the place of."""


def void_nothing(self, always):
    """What was offered or decided before a round stays so."""


# Where to look first: schedules of these kinds, from this seed on.
MISTAKES = [
    (Pacer, "_remind", remind_nobody, "drop one-way", 0),
    (Pacer, "connected", stay_away_from_those_given_up, "partition freeze", 0),
    (Lockstep, "_grace", give_up_at_once, "crash partition", 0),
    (Pacer, "_save", save_nothing, "crash", 2),
    (Wire, "tag_of", use_a_tag_again, "replay wipe rollback crash", 13),
    (Conversation, "begin", stay_intact_whatever_is_said_without_me, "partition crash one-way freeze", 46),
    (Handshake, "take", keep_the_own_share, "rollback relink", 0),
    (Handshake, "echoes_no_call", take_any_offer_for_an_answer, "replay wipe", 0),
    (Accounts, "hear", forget_that_it_was_late, "delay freeze", 11),
    (Handshake, "shut_refused", go_on_though_refused, "twice", 141),
    (Session, "void", void_nothing, "drop replay one-way", 37),
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "place", "mistake", "faults", "first"), MISTAKES)
def test_a_mistake_is_found(kind, place, mistake, faults, first, monkeypatch):
    monkeypatch.setattr(kind, place, mistake)
    drawn = (draw_schedule(seed, faults.split()) for seed in range(first, first + 5))
    found = next((schedule for schedule in drawn if check(schedule)), None)
    assert found is not None
    monkeypatch.undo()
    assert not check(found)  # it was the mistake, and nothing else


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "place", "mistake", "faults", "first"), [MISTAKES[k] for k in ((0, 4, 6) if EVERYTHING else (6,))]
)
def test_its_schedule_is_shrunk(kind, place, mistake, faults, first, monkeypatch):
    monkeypatch.setattr(kind, place, mistake)
    found = next(s for s in (draw_schedule(seed, faults.split()) for seed in range(first, first + 20)) if check(s))
    smallest = shrink(found)
    assert check(smallest)
    assert len(smallest.faults) <= 2
    assert sum(f.stop - f.start for f in smallest.faults) < sum(f.stop - f.start for f in found.faults)
    monkeypatch.undo()
    assert not check(smallest)
