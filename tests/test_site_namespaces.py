"""Agents on hosts of their own, network namespaces on one switch, whose network is cut and healed."""

import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
NAMES = ("attic", "hall", "kitchen")
CUT = 4.0
SLOT = 0.05


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


def test_agents_on_separate_hosts_go_on_through_a_partition_and_are_exact_soon_after(kit, hosts, tmp_path):
    site = kit.write_site(tmp_path, hosts, slot=SLOT)
    watch = kit.Watch(tmp_path / "checkpoints", NAMES)
    with kit.agents(hosts, site) as processes:
        assert watch.until_exact(60) < 60, "the agents do not meet"
        hosts.cut(["attic"])
        watch.look()
        before = watch.rounds()
        watch.wait(CUT)
        during, stages = watch.rounds(), watch.stages()
        hosts.heal()
        # 3 seconds on a quiet machine; ten tells repair from none on a busy one.
        assert watch.until_exact(10, during) < 10, f"not healed: {watch.stages()}"
        ended = {name: process.poll() for name, process in processes.items()}

    assert ended == dict.fromkeys(NAMES, None)
    assert stages == {(a, b): "live" if "attic" not in (a, b) else "gone" for a in NAMES for b in NAMES if a != b}
    # Both sides went on, slot after slot.
    slots = CUT / SLOT
    for name in NAMES:
        assert 0.5 * slots < during[name] - before[name] < 1.2 * slots, name
    assert watch.compared > 0
    assert watch.wrong == 0


def test_agents_take_out_what_random_loss_did(kit, hosts, tmp_path):
    site = kit.write_site(tmp_path, hosts, slot=SLOT)
    watch = kit.Watch(tmp_path / "checkpoints", NAMES)
    with kit.agents(hosts, site) as processes:
        assert watch.until_exact(60) < 60, "the agents do not meet"
        hosts.lose(0.2)
        watch.wait(2.0)
        watch.look()
        hosts.heal()
        assert watch.until_exact(10, watch.rounds()) < 10, f"not mended: {watch.stages()}"
        ended = {name: process.poll() for name, process in processes.items()}

    assert ended == dict.fromkeys(NAMES, None)
    assert watch.wrong == 0
