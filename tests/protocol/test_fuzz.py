"""Spoiled messages by the ten thousand; ``benchmarks/fuzz.py`` sends a million."""

import numpy as np
import pytest

from laconic.testing import fuzz
from laconic.testing.spoiler import Spoiler


@pytest.fixture(scope="module")
def targets():
    return {name: fuzz.Target(name) for name in (*fuzz.TARGETS, *fuzz.WAVING)}


def test_the_messages_are_worth_spoiling(targets):
    """All kinds are there, and those that say something new change something: a fault of the checks would show."""
    kinds, changed = set(), set()
    for target in targets.values():
        for data in target.messages:
            ben = target.receiver()
            before = fuzz.digest(ben)
            ben.receive(data)
            assert set(ben.counters["refusals"]) <= {"stranger"}  # of a session that is still to come
            kind = fuzz.KINDS[data[2] & 15]
            kinds.add(kind)
            if fuzz.digest(ben) != before:
                changed.add(kind)
    assert kinds == set(fuzz.KINDS.values()) - {"full"}
    assert changed >= {"difference", "dense", "silence", "hello", "call", "offer", "farewell"}


def test_the_digest_sees_every_change(targets):
    ben = next(iter(targets.values())).receiver()
    before = fuzz.digest(ben)
    assert fuzz.digest(ben) == before
    shares = ben._ledger.shares
    shares[1, 0] = np.nextafter(shares[1, 0], np.inf)
    assert fuzz.digest(ben) != before


@pytest.mark.parametrize("k", range(7))
def test_spoiled_messages_change_nothing(k, targets):
    """31,500 in all."""
    target = list(targets.values())[k]
    refusals = fuzz.fuzz_as_they_come(target, Spoiler(seed=k), 4500)
    assert refusals.total() == 4500
    assert set(refusals) >= {"truncated", "magic", "corrupt"}
    assert "oversized" in refusals or target.name in fuzz.WAVING  # whose messages may be as long as a whole state


@pytest.mark.parametrize("k", range(7))
def test_a_neighbour_out_of_its_mind(k, targets):
    """8,400 in all, with the right checksum: some are taken; nothing is raised, and all stays finite."""
    target = list(targets.values())[k]
    outcome = fuzz.fuzz_sealed(target, Spoiler(seed=k), 1200)
    assert outcome["taken"] > 50
    assert {"truncated", "malformed", "dimension", "misaddressed", "fingerprint", "another session"} <= set(outcome)
