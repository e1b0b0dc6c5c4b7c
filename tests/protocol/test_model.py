"""The shipped conversation in all its states, with every old letter deliverable at any time; and planted faults found.

``python tests/protocol/model.py all 100000`` explores further, ``python tests/protocol/model.py walk 700`` deeper.
"""

from dataclasses import replace

import pytest
from breadth import EVERYTHING
from model import SCENARIOS, WALKS, Bounded, explore, walk

from laconic.protocol import handshake
from laconic.protocol.session import GONE, LIVE, OPENING
from laconic.protocol.table import TABLE

SMALL = [name for name in SCENARIOS if name.startswith("tiny/")]  # all of whose states are seen
SMALL += ["small/remove"] if EVERYTHING else []
MORE = [name for name in SCENARIOS if name not in SMALL]


@pytest.mark.parametrize("name", SMALL)
def test_small_worlds_are_seen_whole(name):
    result = explore(SCENARIOS[name], most=50_000, heal_every=20)
    assert not result.broken, result.path
    assert result.complete


@pytest.mark.parametrize("name", MORE)
def test_the_first_states_of_every_world(name):
    most = 1_200 if EVERYTHING else 400
    result = explore(SCENARIOS[name], most=most, heal_every=10)
    assert not result.broken, result.path
    assert result.states >= 400


@pytest.mark.parametrize("name", list(WALKS))
def test_walks_with_all_faults(name):
    result = walk(WALKS[name], walks=2, length=60, seed=1)
    assert not result.broken, result.path
    assert result.states > 50


@pytest.mark.slow
def test_every_row_of_the_table_is_met():
    """All rows but those that honest agents never need, which have tests of their own."""
    met = set()

    class Counting(Bounded):
        def handle(self, end, event):
            for row in TABLE:
                ends = "", "leader" if end.leads else "follower"
                fits = type(event) is row.event and end.stage in row.stages and row.end in ends
                if fits and (not row.condition or getattr(self, row.condition)(end, event)):
                    met.add(row)
                    break
            super().handle(end, event)

    for name in ("small/remove", "pair/cut", "warm/newest x2", "warm/slots old x2"):
        explore(replace(SCENARIOS[name], rules=Counting), most=400, heal_every=8)
    for name in ("pair", "slots", "path"):
        walk(replace(WALKS[name], rules=Counting), walks=3, length=50, seed=2, heal_every=3)
    never = {row.action for row in TABLE} - {row.action for row in met}
    far = {"refuse_far", "go_back", "call_back", "refuse_to_go_back"}
    assert never <= far | {"fence", "shut_refused", "report_another", "hold", "request", "seek_again"}


# --------------------------------------------------------------------------------------------------------------------
# Planted faults: each breaks one rule, and the check has to see it.


class PositionReuse(Bounded):
    """A session is used again after a restart."""

    @staticmethod
    def restore(end):
        stage = end.stage
        end.restart()
        end.stage = stage


class OwnShare(Bounded):
    """An end keeps its own share instead of the record's."""

    def take(self, end, offer, decide):
        share = self.book.share(end.index)
        super().take(end, offer, decide)
        self.book.shares[end.index] = share


class TwoWay(Bounded):
    """The leader does not wait for the confirmation."""

    def decide(self, end, offer):
        before = end.pend
        super().decide(end, offer)
        if end.pend is not None and end.pend is not before:
            self.install(end, *end.pend)


class IntactIgnored(Bounded):
    """What was said while the edge was closed is not missed."""

    def begin(self, *args, **options):
        intact = {name: end.intact for name, end in self.ends.items()}
        super().begin(*args, **options)
        for name, end in self.ends.items():
            end.intact = intact[name]


class StaleOffer(Bounded):
    """An offer stays valid though a round has begun."""

    def begin(self, *args, **options):
        under_way = {name: (end.out, end.pend) for name, end in self.ends.items()}
        super().begin(*args, **options)
        for name, end in self.ends.items():
            end.out, end.pend = under_way[name]


class NotFrozen(Bounded):
    """The leader hears on after it has decided to continue."""

    def is_frozen(self, end, statement):
        return False

    def hear(self, end, statement):
        under_way = end.out, end.pend
        super().hear(end, statement)
        if end.stage is LIVE:
            end.out, end.pend = under_way


class OfferNotCalledFor(Bounded):
    """Any offer will do."""

    def echoes_no_call(self, end, offer):
        return False


class ConfirmToAnother(Bounded):
    """A confirmation of what an earlier process decided counts."""

    def is_of_the_decision(self, end, letter):
        return self.is_pending(end, letter)


FAULTS = {
    "position reuse": (PositionReuse, "pair/newest+old", 8000),
    "position reuse on slots": (PositionReuse, "warm/slots old x2", 2000),
    "own share": (OwnShare, "warm/slots cut+old", 2000),
    "two-way": (TwoWay, "pair/newest x2", 2000),
    "intact ignored": (IntactIgnored, "pair/cut", 3000),
    "stale offer": (StaleOffer, "pair/cut", 3000),
    "not frozen": (NotFrozen, "warm/slots old x2", 4000, 0),
    "offer not called for": (OfferNotCalledFor, "pair/newest x2", 6000, 8),
    "confirm to another incarnation": (ConfirmToAnother, "pair/newest+old", 4000),
}


@pytest.mark.parametrize("name", list(FAULTS))
def test_a_planted_fault_is_found(name):
    rules, scenario, most, *heal_every = FAULTS[name]
    result = explore(replace(SCENARIOS[scenario], rules=rules), most, *(heal_every or [2]))
    assert result.broken, result.states


@pytest.mark.slow
def test_a_share_counted_twice_is_found(monkeypatch):
    def both(end, offer, book):
        return book.share(end.index) - offer.share

    monkeypatch.setattr(handshake, "decided_share", both)
    result = explore(SCENARIOS["warm/slots cut+old"], 12_000, heal_every=0)
    assert "neither end held" in result.broken


def test_a_session_that_is_not_saved_is_found():
    result = explore(replace(SCENARIOS["pair/newest x2"], saves_installs=False), 6_000, heal_every=2)
    assert result.broken


def test_stages_have_names():
    assert [stage.value for stage in (GONE, OPENING, LIVE)] == ["gone", "opening", "live"]
