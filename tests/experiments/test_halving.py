"""Successive halving: who is tried on what, and what is kept when time is over."""

import pytest

from laconic.experiments.halving import halve


def test_shares_double_while_candidates_halve():
    calls = []
    found = halve(range(8), lambda k, share: calls.append((k, share)) or abs(k - 5) + 1 / share)
    assert [sum(share == s for _, share in calls) for s in (1 / 8, 1 / 4, 1 / 2, 1)] == [8, 4, 2, 1]
    assert (found.best, found.share, found.score) == (5, 1.0, 1.0) and len(found.tried) == 15


def test_one_candidate_sees_everything_at_once():
    assert halve(["only"], lambda one, share: share).tried == [("only", 1.0, 1.0)]


def test_many_candidates_begin_on_less():
    found = halve(range(20), lambda k, share: k)
    assert found.tried[0][1] == 1 / 32 and found.best == 0 and found.share == 1.0


@pytest.mark.parametrize(
    ("seconds", "best", "share"), [(0, 3, 1 / 8), (3.5, 1, 1 / 8), (4.5, 1, 1 / 8), (5.5, 2, 1 / 4)]
)
def test_nothing_is_begun_when_time_is_over(seconds, best, share):
    now = [0.0]

    def score(k, part):
        now[0] += 1  # every run takes a second
        return (k - 1) ** 2 if part < 1 / 4 else (k - 2) ** 2

    found = halve([3, 2, 1, 0], score, seconds=seconds, clock=lambda: now[0])
    assert (found.best, found.share) == (best, share)


def test_nothing_to_choose_from_is_refused():
    with pytest.raises(ValueError, match="candidates must not be empty"):
        halve([], lambda k, share: 0.0)
