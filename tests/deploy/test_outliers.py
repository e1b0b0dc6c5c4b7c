"""No single sample stops or ruins a site: whole sites on the virtual network, with one sample that cannot be."""

import json
import logging
import math

import numpy as np
import pytest
from breadth import crossed, each
from test_virtual_site import NAMES, VirtualSite, check_replicas

from laconic.deploy.running.forgetting import set_checkpoint_aside
from laconic.deploy.running.metrics import Tally, make_registry
from laconic.deploy.running.outliers import EVENT, Sentry
from laconic.guard import Guard
from laconic.protocol.actions import Alert, Note
from laconic.transport.faults import Crash

N_ROUNDS = 400
CLOCKS = {"lockstep": "", "slotted": 'clock = "slotted"\nslot = 1.0'}


def spoil(house, folder, name="ada", at=100, **values):
    """Write a sample that cannot be into an agent's file; ``values`` are those of its columns a, b and y."""
    path = folder / f"{name}.csv"
    lines = path.read_text().splitlines()
    row = dict(zip("aby", lines[1 + at].split(","), strict=True)) | {key: repr(v) for key, v in values.items()}
    lines[1 + at] = ",".join(row.values())
    path.write_text("\n".join(lines) + "\n")


def last_error(house):
    return float(np.nanmean((house.predictions() - house.y)[-100:] ** 2))


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """The mean square error of the last rounds without an outlier, by clock."""
    errors = {}
    for clock, site in CLOCKS.items():
        house = VirtualSite(tmp_path_factory.mktemp(clock), N_ROUNDS, site=site)
        house.run(until=2 * N_ROUNDS)
        assert np.array_equal(house.predictions(), house.simulate().predictions)  # guarded, and untouched
        assert not any(driver.outlet.tally.beyond for driver in house.drivers.values())
        errors[clock] = last_error(house)
    return errors


def check_whole(house, clean, clock):
    """Nobody stands still, all know what the others said, and they learn as well as without the outlier."""
    assert all(len(rounds) == N_ROUNDS for rounds in house.rounds.values())
    assert not any("not finite" in agent.counters["refusals"] for agent in house.agents.values())
    check_replicas(house.agents)
    assert last_error(house) < 1.1 * clean[clock]


SPOILED = [({"y": 30.0}, "label"), ({"y": 1e17}, "label"), ({"y": -1e6}, "label"), ({"b": 1e12}, "input b")]


@pytest.mark.parametrize(("clock", "spoiled", "beyond"), crossed(CLOCKS, SPOILED, ["clip", "drop"]), ids=str)
def test_one_sample_that_cannot_be_neither_stops_nor_ruins_a_site(tmp_path, clean, clock, spoiled, beyond):
    """(H1) Before, a lockstep site stood still at 1e17, and was off by 5e4 a thousand rounds after 1e6."""
    values, what = spoiled
    house = VirtualSite(tmp_path, N_ROUNDS, site=f"{CLOCKS[clock]}\n[limits]\nbeyond = '{beyond}'")
    spoil(house, tmp_path, **values)
    house.run(until=2 * N_ROUNDS)
    check_whole(house, clean, clock)
    (alert,) = house.said("ada", "alert")
    outcome = "clipped" if beyond == "clip" and values == {"y": 30.0} else "dropped"
    assert (alert["event"], alert["what"], alert["round"], alert["outcome"]) == (EVENT, what, 101, outcome)
    assert alert["value"] == next(iter(values.values())) and alert["count"] == 1
    assert alert["limits"][0] < 0.5 < alert["limits"][1] < 200
    assert not any(house.said(name, "alert") for name in NAMES[1:])


@pytest.mark.parametrize(("at", "y"), each([0, 1, 5, 7, 8, 9, 20, 199], [1e17, 1e6]))
def test_it_may_be_the_first_sample_or_any_other(tmp_path, clean, at, y):
    house = VirtualSite(tmp_path, N_ROUNDS)
    spoil(house, tmp_path, name="cyd", at=at, y=y)
    house.run(until=2 * N_ROUNDS)
    check_whole(house, clean, "lockstep")
    assert [alert["outcome"] for alert in house.said("cyd", "alert")] == ["held back" if at < 8 else "dropped"]


def test_many_of_them_are_counted_and_told_of_at_powers_of_two(tmp_path, caplog, clean):
    caplog.set_level(logging.INFO, "laconic")
    house = VirtualSite(tmp_path, N_ROUNDS, progress=5.0)
    for at in range(50, 350, 25):
        spoil(house, tmp_path, at=at, y=1e17)
    house.run()
    assert [alert["count"] for alert in house.said("ada", "alert")] == [1, 2, 4, 8]
    assert [record.count for record in caplog.records if record.msg == EVENT] == [1, 2, 4, 8]
    told = {record.agent: record for record in caplog.records if record.msg == "progress"}
    assert told["ada"].beyond_limits == 12 and not hasattr(told["bob"], "beyond_limits")
    tally = house.drivers["ada"].outlet.tally
    registry = make_registry("ada", tally, lambda: house.agents["ada"].counters)
    labels = {"agent": "ada", "what": "label", "outcome": "dropped"}
    assert registry.get_sample_value("laconic_samples_beyond_limits_total", labels) == 12
    check_whole(house, clean, "lockstep")


def test_without_limits_a_label_that_no_agent_takes_still_costs_no_round(tmp_path):
    house = VirtualSite(tmp_path, 60, site="[limits]\nbeyond = 'off'")
    spoil(house, tmp_path, at=20, y=1e17)
    house.run()
    assert all(len(rounds) == 60 for rounds in house.rounds.values())
    check_replicas(house.agents)
    assert [alert["outcome"] for alert in house.said("ada", "alert")] == ["dropped"]


def test_limits_are_known_again_after_a_restart_to_the_bit(tmp_path):
    """The agent comes back to its checkpoint, and clips the very samples that it clipped before by the same limits."""
    site = 'checkpoint = "disk"\ncheckpoint_every = 1'
    runs = []
    for k, faults in enumerate([(), [Crash(2.0, 4.0, "bob", disk=True)]]):
        folder = tmp_path / str(k)
        folder.mkdir()
        house = VirtualSite(folder, site=site, faults=faults)
        spoil(house, folder, name="bob", at=10, y=1e6)
        spoil(house, folder, name="bob", at=45, y=1e6)
        house.run()
        runs.append(house.predictions())
    assert house.started["bob"] == 2
    np.testing.assert_array_equal(*runs)
    moved = set_checkpoint_aside(house.site, "bob")
    assert [path.name for path in moved if "limits" in path.name] == ["bob.limits.old"]


@pytest.mark.parametrize("content", [b"", b"nonsense", Guard(5).to_bytes()])
def test_limits_that_cannot_be_read_are_learned_anew(tmp_path, caplog, content):
    (tmp_path / "ada.limits").write_bytes(content)
    sentry = Sentry(Guard(2), Tally(), file=tmp_path / "ada.limits")
    sentry.restore("ada")
    assert [record.msg for record in caplog.records] == ["limits learned anew"]
    for _ in range(20):
        sentry.look(np.array([0.1, 0.2]), 0.5, 1, 0.0)
    sentry.save()
    again = Sentry(Guard(2), Tally(), file=tmp_path / "ada.limits")
    again.restore("ada")
    np.testing.assert_array_equal(again.guard.limits, sentry.guard.limits)


def test_a_rare_outlier_is_told_of_although_there_were_many():
    sentry = Sentry(Guard(1, label=[0, 1]), Tally(), ["warmth"])
    told = [bool(sentry.look(np.zeros(1), 7.0, t, float(t))[2]) for t in range(20)]
    assert [1 + t for t, said in enumerate(told) if said] == [1, 2, 4, 8, 16]
    x, y, actions = sentry.look(np.zeros(1), 7.0, 21, 3700.0)
    assert (x.tolist(), y) == ([0.0], 1.0)
    assert [type(action) for action in actions] == [Alert, Note]
    assert json.loads(json.dumps(actions[0].fields))["count"] == 21


def test_a_missing_label_is_no_outlier():
    sentry = Sentry(Guard(1), Tally())
    for _ in range(100):
        _, y, actions = sentry.look(np.zeros(1), math.nan, 1, 0.0)
        assert math.isnan(y) and not actions
    assert not sentry.tally.beyond
