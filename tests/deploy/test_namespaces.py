"""Agents on hosts of their own, network namespaces on one switch, whose network is cut and healed."""

import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
NAMES = ("attic", "hall", "kitchen")
SLOT = 0.05
LONG = 120.0  # seconds after which something is broken


@pytest.fixture(scope="module")
def kit():
    """The hosts of the benchmark, which shows the same at length."""
    pytest.importorskip("zenoh")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield importlib.import_module("partition")


@pytest.fixture(scope="module")
def hosts(kit):
    from hosts import Hosts, Unavailable, run

    try:
        made = Hosts(NAMES)
    except Unavailable as error:
        pytest.skip(str(error))
    yield made
    made.close()
    assert not [name for name in NAMES if made.space(name) in run("ip", "netns", "list")]


def test_agents_on_separate_hosts_go_on_through_a_partition_and_are_exact_after_it(kit, hosts, tmp_path):
    site = kit.write_site(tmp_path, hosts, slot=SLOT)
    watch = kit.Watch(tmp_path / "checkpoints", NAMES)
    with kit.agents(hosts, site) as processes:
        assert watch.until_exact(LONG) < LONG, "the agents do not meet"
        hosts.cut(["attic"])
        assert watch.until(lambda: watch.apart(["attic"]), LONG) < LONG, "nobody notices the cut"
        before = watch.rounds()
        watch.wait(2.0)
        # Both sides go on, slot after slot, and neither hears of the other.
        assert watch.until(lambda: all(at >= before[name] + 40 for name, at in watch.rounds().items()), LONG) < LONG
        during, stages = watch.rounds(), watch.stages()
        hosts.heal()
        # The benchmark shows how soon; a busy machine may take its time.
        assert watch.until_exact(LONG, during) < LONG, f"not healed: {watch.stages()}"
        ended = {name: process.poll() for name, process in processes.items()}

    assert ended == dict.fromkeys(NAMES, None)
    assert stages == {(a, b): "live" if "attic" not in (a, b) else "gone" for a in NAMES for b in NAMES if a != b}
    assert watch.compared > 0
    assert watch.wrong == 0


def test_agents_mend_what_random_loss_did(kit, hosts, tmp_path):
    site = kit.write_site(tmp_path, hosts, slot=SLOT)
    watch = kit.Watch(tmp_path / "checkpoints", NAMES)
    with kit.agents(hosts, site) as processes:
        assert watch.until_exact(LONG) < LONG, "the agents do not meet"
        hosts.lose(0.2)
        watch.wait(2.0)
        hosts.heal()
        watch.look()
        assert watch.until_exact(LONG, watch.rounds()) < LONG, f"not mended: {watch.stages()}"
        ended = {name: process.poll() for name, process in processes.items()}

    assert ended == dict.fromkeys(NAMES, None)
    assert watch.compared > 0
    assert watch.wrong == 0
