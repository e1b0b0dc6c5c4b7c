"""Agents on hosts of their own, network namespaces on one switch, whose network is cut and healed."""

import pytest

from laconic.testing.hosted import agents, write_site
from laconic.testing.hosts import Hosts, Unavailable, run
from laconic.testing.watch import Watch

pytestmark = [
    pytest.mark.namespaces,
    pytest.mark.sockets,
    pytest.mark.slow,
]

NAMES = ("attic", "hall", "kitchen")
SLOT = 0.05
LONG = 300.0  # seconds after which something is broken


@pytest.fixture(scope="module")
def hosts():
    pytest.importorskip("zenoh")
    try:
        made = Hosts(NAMES)
    except Unavailable as error:
        pytest.skip(str(error))
    yield made
    made.close()
    assert not [name for name in NAMES if made.space(name) in run("ip", "netns", "list")]


def run_on(watch, slots):
    """Wait until every agent is so many slots further."""
    watch.look()
    before = watch.rounds()
    further = watch.until(lambda: all(at >= before[name] + slots for name, at in watch.rounds().items()), LONG)
    assert further < LONG, f"the agents do not go on: {before}, {watch.rounds()}"


def test_agents_on_separate_hosts_go_on_through_a_partition_and_are_exact_after_it(hosts, tmp_path):
    site = write_site(tmp_path, hosts, slot=SLOT)
    watch = Watch(tmp_path / "checkpoints", NAMES)
    with agents(hosts, site) as processes:
        assert watch.until_exact(LONG) < LONG, "the agents do not meet"
        hosts.cut(["attic"])
        assert watch.until(lambda: watch.apart(["attic"]), LONG) < LONG, "nobody notices the cut"
        run_on(watch, slots=80)  # both sides, and neither hears of the other
        during, stages = watch.rounds(), watch.stages()
        hosts.heal()
        # The benchmark shows how soon; a busy machine may take its time.
        assert watch.until_exact(LONG, during) < LONG, f"not healed: {watch.stages()}"
        ended = {name: process.poll() for name, process in processes.items()}

    assert ended == dict.fromkeys(NAMES, None)
    assert stages == {(a, b): "live" if "attic" not in (a, b) else "gone" for a in NAMES for b in NAMES if a != b}
    assert watch.compared > 0
    assert watch.wrong == 0


def test_agents_mend_what_random_loss_did(hosts, tmp_path):
    site = write_site(tmp_path, hosts, slot=SLOT)
    watch = Watch(tmp_path / "checkpoints", NAMES)
    with agents(hosts, site) as processes:
        assert watch.until_exact(LONG) < LONG, "the agents do not meet"
        hosts.lose(0.2)
        run_on(watch, slots=40)
        hosts.heal()
        watch.look()
        assert watch.until_exact(LONG, watch.rounds()) < LONG, f"not mended: {watch.stages()}"
        ended = {name: process.poll() for name, process in processes.items()}

    assert ended == dict.fromkeys(NAMES, None)
    assert watch.compared > 0
    assert watch.wrong == 0
