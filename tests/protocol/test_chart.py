"""Who hears whom, as every agent has it, and the tree that follows."""

from contextlib import suppress

import numpy as np
import pytest

import laconic as lc
from laconic.protocol.chart import Chart, Record, longest_survey
from laconic.protocol.messages import Refusal
from laconic.protocol.wire import identity
from laconic.waves import places


def records(network, number=1):
    """What the agents of a network say of themselves."""
    starts, flat = network.starts, network.neighbours
    for i, name in enumerate(network.names):
        others = flat[starts[i] : starts[i + 1]]
        yield Record(name, number, 0, tuple(sorted(identity(network.names[j]) for j in others)))


def charted(network, name):
    chart = Chart(name, network.n_agents)
    chart.merge([record for record in records(network) if record.name != name])
    chart.enter(next(record.hears for record in records(network) if record.name == name))
    return chart


@pytest.mark.parametrize("seed", range(4))
def test_the_tree_is_the_simulators(seed):
    network = lc.Network.random(12, p=0.25, seed=seed)
    numbers = [identity(name) for name in network.names]
    digests = set()
    for i, place in enumerate(places(network)):
        spot = charted(network, network.names[i]).spot
        parent = None if place.parent is None else numbers[place.parent]
        assert spot.place == place._replace(
            agent=numbers[i], parent=parent, children=tuple(numbers[j] for j in place.children)
        )
        assert sum(len(spot.members[numbers[j]]) for j in place.children) + 1 == len(spot.members[numbers[i]])
        digests.add(spot.digest)
    assert len(digests) == 1


def test_an_edge_counts_if_both_ends_have_entered_it_and_the_later_entry_counts():
    network = lc.Network.path(4)
    chart = charted(network, "0")
    assert chart.spot.place.n_agents == 4 and not chart.missing()
    chart.merge([Record("2", 2, 0, (identity("3"),))])  # it has lost 1, which does not know yet
    assert chart.spot.place.n_agents == 2
    chart.merge([Record("2", 1, 0, (identity("1"), identity("3")))])  # an old one
    assert chart.spot.place.n_agents == 2


def test_it_is_known_of_whom_nothing_is_known():
    chart = Chart("0", 4)
    assert chart.missing() == (identity("0"),)
    chart.enter([identity("1")])
    assert chart.missing() == (identity("1"),)
    chart.merge([Record("1", 1, 0, tuple(sorted((identity("0"), identity("2")))))])
    assert chart.missing() == (identity("2"),)


def test_who_has_lost_its_memory_writes_a_later_entry_than_the_one_that_is_remembered():
    chart = Chart("0", 3)
    assert chart.enter([identity("1")]).number == 1
    assert chart.enter([identity("1")]) is None
    assert chart.merge([Record("0", 7, 0, (identity("2"),))]) == []
    assert chart.enter([identity("1")]) == Record("0", 8, 0, (identity("1"),))
    assert chart.enter([identity("1")]) is None
    for number in ((1 << 45) + 7, (1 << 46) - 1, 5):  # however late somebody claims it to be, there is a later one
        chart.merge([Record("0", number, 0, ())])
        assert chart.enter([identity("1")]).number == (number + 1) % (1 << 46)


def test_in_another_term_there_is_another_root():
    network, roots = lc.Network.ring(5), []
    for term in range(6):
        chart = charted(network, "0")
        chart.enter(chart.records[chart.me].hears, term)
        place = chart.spot.place
        roots.append(place.parent is None)
    assert roots == [True, False, False, False, False, True]


def test_there_is_room_for_all_agents_and_no_more():
    chart = charted(lc.Network.path(3), "0")
    assert chart.merge([Record("stranger", 1, 0, ())]) == []
    chart.merge([Record("1", 2, 0, (identity("0"),))])  # so that 2 is out of reach
    assert len(chart.merge([Record("new", 1, 0, ())])) == 1
    assert len(chart.records) == 3


def test_a_survey_is_read_as_it_was_written_and_nothing_else_is_one():
    network = lc.Network.random(6, p=0.5, seed=0)
    chart = charted(network, "0")
    data = chart.encode(chart.records.values())
    assert len(data) <= longest_survey(6)
    assert chart.decode(data) == (chart.digest, list(chart.records.values()))
    rng = np.random.default_rng(0)
    for _ in range(400):
        spoiled = bytearray(data)
        for at in rng.integers(len(data), size=rng.integers(1, 4)):
            spoiled[at] ^= 1 << int(rng.integers(8))
        with suppress(Refusal):  # and nothing else
            chart.decode(bytes(spoiled[: rng.integers(len(data) + 1)]))
