"""Mistakes planted into the pacer, which also runs over zenoh: schedules of faults must find each of them."""

import pytest

from laconic.protocol.pacer import Pacer
from laconic.protocol.paces import Lockstep
from laconic.testing.faults import check, draw_schedule, shrink

START, CONNECTED = Pacer.start, Pacer.connected


def remind_nobody(self, now):
    self._remind_at = now + self._remind_after


def stay_away_from_those_given_up(self, name, now):
    if name not in self.given_up:
        CONNECTED(self, name, now)


def give_up_at_once(self):
    return 0.0


def start_without_asking(self, now, offset=0.0):
    self.agent.rejoin = lambda: None
    START(self, now, offset)


def save_nothing(self):
    """Not even when a checkpoint is due."""


# Ten or twenty schedules are enough for each; of the last two not the first ones, of which it would take 41 and 71.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "place", "mistake", "seeds"),
    [
        (Pacer, "_remind", remind_nobody, range(10)),
        (Pacer, "connected", stay_away_from_those_given_up, range(10)),
        (Lockstep, "_grace", give_up_at_once, range(20, 30)),
        (Pacer, "start", start_without_asking, range(60, 70)),
        (Pacer, "_save", save_nothing, range(60, 80)),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_mistake_in_the_pacer_is_found_and_its_schedule_shrunk(kind, place, mistake, seeds, monkeypatch):
    monkeypatch.setattr(kind, place, mistake)
    found = next((schedule for schedule in map(draw_schedule, seeds) if check(schedule)), None)
    assert found is not None
    smallest = shrink(found)
    assert check(smallest)
    assert len(smallest.faults) <= 2
    assert sum(f.stop - f.start for f in smallest.faults) < sum(f.stop - f.start for f in found.faults)
    monkeypatch.undo()
    assert not check(smallest)  # it was the mistake, and nothing else
