"""Networks drawn by arrays, as large ones are: here small ones are, too, so that every pair can be looked at."""

import networkx as nx
import numpy as np
import pytest

import laconic as lc
from laconic import _drawing, _graphs


@pytest.fixture
def by_arrays(monkeypatch):
    monkeypatch.setattr(_drawing, "DRAWN_SINGLY", 0)


@pytest.mark.usefixtures("by_arrays")
def test_every_pair_is_as_likely():
    counts = np.zeros((12, 12))
    for seed in range(4000):
        i, j = _drawing.random(12, 0.3, seed).edges.T
        assert (i < j).all()
        np.add.at(counts, (i, j), 1)
    shares = counts[np.triu_indices(12, 1)] / 4000
    assert counts[np.tril_indices(12)].sum() == 0
    np.testing.assert_allclose(shares, 0.3, atol=5 * np.sqrt(0.3 * 0.7 / 4000))


@pytest.mark.usefixtures("by_arrays")
@pytest.mark.parametrize(("p", "n_edges"), [(0.0, 0), (1.0, 66)])
def test_the_ends_of_the_scale(p, n_edges):
    drawn = _drawing.random(12, p, seed=0)
    assert len({tuple(edge) for edge in drawn.edges.tolist()}) == len(drawn.edges) == n_edges


def test_pairs_are_told_apart_where_their_numbers_are_large():
    drawn = _drawing.random(2**24, 1e-12, seed=3)
    assert (drawn.edges[:, 0] < drawn.edges[:, 1]).all()
    assert drawn.edges.min() >= 0 and 2**23 < drawn.edges.max() < 2**24
    assert len(drawn.edges) == pytest.approx(140, abs=60)


@pytest.mark.usefixtures("by_arrays")
def test_a_sensor_field_links_who_is_near_and_nobody_else():
    drawn = _drawing.geometric(80, 0.2, seed=1)
    apart = np.linalg.norm(drawn.positions[:, None] - drawn.positions[None], axis=2)
    expected = {(i, j) for i in range(80) for j in range(i + 1, 80) if apart[i, j] <= 0.2}
    assert {tuple(sorted(edge)) for edge in drawn.edges.tolist()} == expected


@pytest.mark.usefixtures("by_arrays")
@pytest.mark.parametrize("p", [0.0, 0.2, 1.0])
def test_a_small_world_keeps_its_edges_and_rewires_as_many_as_it_should(p):
    drawn = _drawing.small_world(500, 6, p, seed=2)
    graph = nx.Graph(drawn.edges.tolist())
    assert graph.number_of_edges() == len(drawn.edges) == 1500
    assert nx.number_of_selfloops(graph) == 0
    rewired = np.mean([min((b - a) % 500, (a - b) % 500) > 3 for a, b in drawn.edges.tolist()])
    assert rewired == pytest.approx(p, abs=4 * np.sqrt(p * (1 - p) / 1500) + 0.01)


@pytest.mark.parametrize("large", [False, True])
def test_parts_are_joined_by_as_few_and_as_short_edges_as_there_need_be(large, monkeypatch):
    monkeypatch.setattr(_drawing, "DRAWN_SINGLY", 0 if large else 5000)
    network = lc.Network.geometric(150, radius=0.06, seed=4, connect=True)
    lengths = np.linalg.norm(np.subtract(*network.positions[network.edges.T]), axis=1)
    before = network.to_networkx()
    before.remove_edges_from(network.edges[lengths > 0.06].tolist())
    parts = list(nx.connected_components(before))
    assert len(parts) > 20
    assert (lengths > 0.06).sum() == len(parts) - 1
    # The shortest tree over the parts is the best that anybody could do.
    apart = np.linalg.norm(network.positions[:, None] - network.positions[None], axis=2)
    between = nx.Graph()
    for a in range(len(parts)):
        for b in range(a):
            between.add_edge(a, b, weight=apart[np.ix_(sorted(parts[a]), sorted(parts[b]))].min())
    best = nx.minimum_spanning_tree(between).size(weight="weight")
    assert lengths[lengths > 0.06].sum() < 1.05 * best


def test_parts_without_places_are_joined_to_the_largest():
    network = lc.Network.random(200, p=0.008, seed=0, connect=True)
    assert nx.is_connected(network.to_networkx())
    assert network == lc.Network.random(200, p=0.008, seed=0, connect=True)
    assert len(network.edges) == pytest.approx(0.008 * 199 * 100 + 60, abs=40)


def test_whoever_is_connected_is_left_as_it_is():
    assert lc.Network.random(20, p=0.4, seed=3, connect=True) == lc.Network.random(20, p=0.4, seed=3)
    assert lc.Network.geometric(20, 0.5, seed=3, connect=True) == lc.Network.geometric(20, 0.5, seed=3)


@pytest.mark.slow
def test_a_hundred_thousand_agents_are_drawn_in_one_piece():
    for network in (
        lc.Network.random(10**5, p=7e-5, connect=True),
        lc.Network.geometric(10**5, radius=np.sqrt(7e-5 / np.pi), connect=True),
        lc.Network.small_world(10**5, 6, 0.1),
    ):
        assert 5.9 < network.degrees.mean() < 7.3
        assert network.degrees.min() >= 1


def test_parts_of_one_agent_each_are_joined_in_no_time_and_little_memory():
    network = lc.Network.geometric(20_000, radius=1e-9, connect=True)
    assert len(network.edges) == 19_999  # a tree, and the shortest there is
    apart = np.linalg.norm(np.subtract(*network.positions[network.edges.T]), axis=1)
    assert apart.max() < 0.03


@pytest.mark.usefixtures("by_arrays")
@pytest.mark.parametrize(("n_agents", "n_neighbours"), [(31, 30), (32, 30), (40, 25), (40, 21)])
@pytest.mark.parametrize("p", [0.3, 1.0])
def test_a_small_world_in_which_hardly_a_place_is_free_is_rewired_all_the_same(n_agents, n_neighbours, p):
    drawn = _drawing.small_world(n_agents, n_neighbours, p, seed=1)
    graph = nx.Graph(drawn.edges.tolist())
    assert graph.number_of_edges() == len(drawn.edges) == n_agents * (n_neighbours // 2)
    assert nx.number_of_selfloops(graph) == 0
    ring = nx.Graph(_drawing.small_world(n_agents, n_neighbours, 0.0, seed=1).edges.tolist())
    assert (nx.symmetric_difference(graph, ring).number_of_edges() > 0) == (n_neighbours < n_agents - 1)


@pytest.mark.parametrize(("n_agents", "radius"), [(30, 0.1), (400, 0.04), (2000, 0.018)])
def test_how_many_are_alone_in_the_square_is_known_before(n_agents, radius):
    counts = []
    for seed in range(200):
        drawn = _drawing.geometric(n_agents, radius, seed)
        counts.append(n_agents - len(np.unique(drawn.edges)))
    expected = _drawing.alone_in_square(n_agents, radius)
    assert 0.95 < np.mean(counts) / expected < 1.1  # a little more, since corners are left out


@pytest.mark.usefixtures("by_arrays")
def test_how_often_a_ring_of_single_edges_stays_in_one_piece_is_known_before():
    n_agents, p = 300, 1.0
    parts = [_graphs.parts(n_agents, _drawing.small_world(n_agents, 2, p, seed).edges)[0] for seed in range(2000)]
    expected = np.exp(-_drawing.alone_in_small_world(n_agents, 2, p))
    assert np.mean(np.array(parts) == 1) == pytest.approx(expected, rel=0.2)
