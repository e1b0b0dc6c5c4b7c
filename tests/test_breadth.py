"""Fewer cases than there are, and still any two of their parts meet."""

import itertools

import breadth
import pytest


@pytest.mark.parametrize("sizes", [(8, 4, 6), (3, 3, 3), (2, 5), (4, 2, 2, 3), (1, 3, 1)])
def test_any_two_values_meet_in_few_cases(sizes, monkeypatch):
    monkeypatch.setattr(breadth, "EVERYTHING", False)
    dimensions = [[f"{place}{value}" for value in range(size)] for place, size in enumerate(sizes)]
    chosen = breadth.crossed(*dimensions)
    for one, other in itertools.combinations(range(len(sizes)), 2):
        met = {(case[one], case[other]) for case in chosen}
        assert met == set(itertools.product(dimensions[one], dimensions[other]))
    least = max(a * b for a, b in itertools.combinations(sizes, 2))
    assert least <= len(chosen) <= 1.5 * least
    assert chosen == breadth.crossed(*dimensions)


def test_everything_is_the_whole_product(monkeypatch):
    monkeypatch.setattr(breadth, "EVERYTHING", True)
    assert breadth.crossed("ab", (1, 2), [True]) == list(itertools.product("ab", (1, 2), [True]))
    assert breadth.each("ab", (1, 2, 3)) == list(itertools.product("ab", (1, 2, 3)))
    assert breadth.examples(300) == 300


def test_each_value_comes_once(monkeypatch):
    monkeypatch.setattr(breadth, "EVERYTHING", False)
    assert breadth.each("ab", (1, 2, 3)) == [("a", 1), ("b", 2), ("a", 3)]
    assert breadth.examples(300) == 75


def test_a_file_stays_together_on_several_processes(request):
    if not hasattr(request.config, "workerinput"):
        pytest.skip("there is one process only")
    assert request.node.nodeid.endswith("@tests/test_breadth.py")
