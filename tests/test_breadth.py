"""Fewer cases than there are, and still any two of their parts meet."""

import itertools

import breadth
import pytest
from conftest import group_of


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


def test_files_stay_together_and_parts_do_not():
    assert group_of("tests/test_trace.py::test_one") == group_of("tests/test_trace.py::test_other[0-part 1]")
    assert group_of("tests/test_trace.py::test_one") != group_of("tests/test_house.py::test_one")
    assert group_of("tests/deploy/test_runner.py::test") == group_of("tests/transport/test_zenoh.py::test") == "sockets"
    first, second = (f"tests/testing/test_faults.py::test_schedules_of_faults[part {k}]" for k in (1, 2))
    assert group_of(first) != group_of(second)
