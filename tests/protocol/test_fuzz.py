"""Spoiled messages by the ten thousand; ``benchmarks/fuzz.py`` sends a million."""

import numpy as np
import pytest

from laconic.testing import fuzz
from laconic.testing.spoiler import Spoiler


@pytest.fixture(scope="module")
def targets():
    return {name: fuzz.Target(name) for name in fuzz.TARGETS}


def test_the_messages_are_worth_spoiling(targets):
    """All kinds are there, and each would be taken as it is: a fault of the checks below would show."""
    kinds = set()
    for target in targets.values():
        for data in target.messages:
            ben = target.receiver()
            before = fuzz.digest(ben)
            ben.receive(data, "ann")
            if ben.counters["refusals"] == {"misaddressed": 1}:  # a farewell to cid
                continue
            assert ben.counters["refusals"] == {}
            kind = fuzz.KINDS[data[2] & 15]
            assert fuzz.digest(ben) != before or kind in ("request", "silence")
            kinds.add(kind)
    assert kinds == set(fuzz.KINDS.values())


def test_the_digest_sees_every_change(targets):
    ben = next(iter(targets.values())).receiver()
    before = fuzz.digest(ben)
    assert fuzz.digest(ben) == before
    ben._ledger.sums[1, 0] = np.nextafter(ben._ledger.sums[1, 0], np.inf)
    assert fuzz.digest(ben) != before


@pytest.mark.parametrize("k", range(5))
def test_spoiled_messages_change_nothing(k, targets):
    """40,000 in all."""
    target = list(targets.values())[k]
    refusals = fuzz.fuzz_as_they_come(target, Spoiler(seed=k), 8000)
    assert refusals.total() == 8000
    assert set(refusals) >= {"truncated", "oversized", "magic", "version", "corrupt"}


@pytest.mark.parametrize("k", range(5))
def test_a_neighbour_out_of_its_mind(k, targets):
    """10,000 in all, with the right checksum: some are taken; nothing is raised, and all stays finite."""
    target = list(targets.values())[k]
    outcome = fuzz.fuzz_sealed(target, Spoiler(seed=k), 2000)
    assert outcome["taken"] > 50
    assert {"truncated", "malformed", "dimension", "misaddressed", "stranger", "fingerprint"} <= set(outcome)
