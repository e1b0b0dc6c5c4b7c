"""The tree is one of shortest paths from a centre, and the same however it is found; times and sums by hand."""

import math

import networkx as nx
import numpy as np
import pytest

import laconic as lc
from laconic.waves import Rule, places, tree

NETWORKS = {
    "ring": lc.Network.ring(7),
    "path": lc.Network.path(8),
    "star": lc.Network.star(5),
    "grid": lc.Network.from_networkx(nx.grid_2d_graph(4, 5)),
    "random": lc.Network.random(30, p=0.1, seed=2),
    "alone": lc.Network.from_edges(1, []),
}


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_the_tree_is_one_of_shortest_paths_from_a_centre(network):
    found = places(network)
    graph = nx.Graph(network.edges.tolist())
    graph.add_nodes_from(range(network.n_agents))
    reach = nx.eccentricity(graph)
    root = min(reach, key=lambda i: (reach[i], i))
    distances = nx.shortest_path_length(graph, root)
    assert [place.parent for place in found].index(None) == root
    for place in found:
        assert place.depth == distances[place.agent]
        assert place.height == reach[root] and place.n_agents == network.n_agents
        assert list(place.children) == sorted(i for i, other in enumerate(found) if other.parent == place.agent)
        if place.parent is not None:
            nearer = [j for j in graph[place.agent] if distances[j] == place.depth - 1]
            assert place.parent == min(nearer)
    assert found[0].census == tuple(np.bincount(list(distances.values())).tolist())
    assert found[0].inner == sum(bool(p.children) and p.parent is not None for p in found)


def test_the_root_of_many_is_found_by_few_searches(monkeypatch):
    """Beside 900 eccentricities, all of them looked at: whoever is the k-th best."""
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(30, 30), ordering="sorted")
    graph.remove_nodes_from([k for k in range(0, 900, 7) if k not in nx.articulation_points(graph) and k % 5])
    graph = nx.convert_node_labels_to_integers(graph.subgraph(max(nx.connected_components(graph), key=len)))
    near = [sorted(graph[i]) for i in range(len(graph))]
    reach, searches, search = nx.eccentricity(graph), [], tree._depths

    def counted(neighbours, root):
        searches.append(root)
        return search(neighbours, root)

    monkeypatch.setattr(tree, "_depths", counted)
    best = sorted(reach, key=lambda i: (reach[i], i))
    for term, most in ((0, 50), (3, 80)):
        searches.clear()
        found = tree.grow(near, [str(i) for i in range(len(graph))], term)
        assert [place.parent for place in found].index(None) == best[term]
        assert len(searches) < most < len(graph) / 5


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_an_echo_from_the_root_builds_the_same_tree(network):
    """One hop a round; of those heard in the same round, the smallest index becomes the parent."""
    found = places(network)
    parents = {next(place.agent for place in found if place.parent is None): None}
    speaking = list(parents)
    while speaking:
        heard = {}
        for i in speaking:
            for j in network.neighbours[network.starts[i] : network.starts[i + 1]].tolist():
                if j not in parents:
                    heard[j] = min(i, heard.get(j, i))
        parents |= heard
        speaking = list(heard)
    assert [parents[i] for i in range(network.n_agents)] == [place.parent for place in found]


def test_when_waves_start():
    def starts(rule, height, n):
        found = [rule.first]
        while len(found) < n:
            found.append(rule.following(found[-1], height))
        return found

    assert starts(Rule(), 2, 8) == [1, 6, 11, 17, 26, 39, 59, 89]
    assert starts(Rule(growth=2.0, first=4), 1, 5) == [4, 8, 16, 32, 64]
    assert np.diff(starts(Rule(forgetting=0.9375), 1, 9))[-2:].tolist() == [8, 8]  # (growth - 1) / (1 - f)
    assert starts(Rule(), 50, 3) == [1, 102, 203]


def test_what_a_wave_will_carry():
    # Depths 0, 1, 1, 2: the leaf's snapshot is taken after s rounds, those at depth 1 a round later, the root's two.
    assert Rule().carried(10, (1, 2, 1)) == 12 + 2 * 11 + 10
    assert Rule(forgetting=0.9).carried(100, (1, 2, 1)) == pytest.approx(4 * 10)
    assert Rule().thick(1000) == pytest.approx(0.15)
    assert math.isclose(Rule().looseness(10, 3) ** 2, 10 / 3) and Rule().looseness(100, 2) == 2
    assert Rule().fineness(100) == (0.1, math.inf)
    assert Rule().fineness(100, matched=True) == (0.2, 1.0)
