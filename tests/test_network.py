"""Networks: shapes by hand, weights that are doubly stochastic, files, and clear refusals."""

import networkx as nx
import numpy as np
import pytest

import laconic as lc


@pytest.mark.parametrize(
    ("network", "n_edges", "degrees"),
    [
        (lc.Network.path(4), 3, [1, 2, 2, 1]),
        (lc.Network.ring(4), 4, [2, 2, 2, 2]),
        (lc.Network.ring(2), 1, [1, 1]),
        (lc.Network.ring(1), 0, [0]),
        (lc.Network.star(5), 4, [4, 1, 1, 1, 1]),
        (lc.Network.complete(4), 6, [3, 3, 3, 3]),
        (lc.Network.complete(1), 0, [0]),
        (lc.Network.grid(2, 3), 7, [2, 3, 2, 2, 3, 2]),
        (lc.Network.from_edges(1, []), 0, [0]),
        (lc.Network.from_edges(3, [(2, 0), (0, 2), (1, 0)]), 2, [2, 1, 1]),
    ],
)
def test_shapes_by_hand(network, n_edges, degrees):
    assert len(network.edges) == n_edges
    assert network.degrees.tolist() == degrees
    for i in range(network.n_agents):
        mine = network.neighbours[network.starts[i] : network.starts[i + 1]]
        assert np.array_equal(mine, np.sort(mine))
        assert set(mine) == {int(b) for a, b in network.edges if a == i} | {int(a) for a, b in network.edges if b == i}


@pytest.mark.parametrize("seed", range(5))
def test_metropolis_weights_are_doubly_stochastic(seed):
    network = lc.Network.random(12, p=0.3, seed=seed)
    weights = network.metropolis_weights()
    np.testing.assert_allclose(weights.sum(axis=0), 1.0)
    np.testing.assert_allclose(weights, weights.T)
    assert (weights >= 0).all()
    i, j = network.edges[0]
    assert weights[i, j] == 1 / (1 + max(network.degrees[i], network.degrees[j]))
    theta = np.random.default_rng(0).normal(size=(12, 3))
    heard = network.listen(theta)
    np.testing.assert_allclose(theta + heard.mixture, weights @ theta, atol=1e-14)
    by_hand = [sum(theta[i] - theta[j] for j in range(12) if weights[i, j] and i != j) for i in range(12)]
    np.testing.assert_allclose(heard.disagreement, by_hand, atol=1e-13)


def test_random_networks_are_connected_and_repeatable():
    for make in (
        lambda seed: lc.Network.random(20, p=0.15, seed=seed),
        lambda seed: lc.Network.geometric(20, radius=0.35, seed=seed),
        lambda seed: lc.Network.small_world(20, 4, 0.3, seed=seed),
    ):
        assert make(1) == make(1)
        assert make(1) != make(2)
        assert nx.is_connected(make(3).to_networkx())


def test_names_come_from_the_graph():
    graph = nx.Graph([("kitchen", "hall"), ("hall", "cellar")])
    network = lc.Network.from_networkx(graph)
    assert network.names == ("kitchen", "hall", "cellar")
    assert network.edges.tolist() == [[0, 1], [1, 2]]


def test_read(tmp_path):
    graph = nx.Graph([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")])
    nx.write_graphml(graph, tmp_path / "g.graphml")
    nx.write_gml(graph, tmp_path / "g.gml")
    (tmp_path / "g.txt").write_text("# rooms\na b\nb c  # a door\nc,a\n\nc d\n")
    for name in ("g.graphml", "g.gml", "g.txt"):
        network = lc.Network.read(tmp_path / name)
        assert network.names == ("a", "b", "c", "d")
        assert network.edges.tolist() == [[0, 1], [0, 2], [1, 2], [2, 3]]
    (tmp_path / "numbers.txt").write_text("0 10\n10 2\n")
    assert lc.Network.read(tmp_path / "numbers.txt").names == ("0", "2", "10")
    for text, message in {"": "found 'nothing'", "a b c": "found 'a b c'", "a\n": "found 'a'"}.items():
        (tmp_path / "bad.txt").write_text(text)
        with pytest.raises(ValueError, match=message):
            lc.Network.read(tmp_path / "bad.txt")
    for name in ("bad.graphml", "bad.gml"):
        (tmp_path / name).write_bytes(b"\x00\xff not a graph")
        with pytest.raises(ValueError, match="is not a readable"):
            lc.Network.read(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        lc.Network.read(tmp_path / "absent.txt")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lc.Network.from_edges(4, [(0, 1), (2, 3)]), "must be connected, but it falls into 2 parts"),
        (lambda: lc.Network.from_edges(2, []), "must be connected"),
        (lambda: lc.Network.from_edges(3, [(0, 3)]), "must join agents 0 to 2"),
        (lambda: lc.Network.from_edges(3, [(0, 0)]), "two different agents"),
        (lambda: lc.Network.from_edges(3, [(0, 1, 2)]), "edges must be pairs"),
        (lambda: lc.Network.from_edges(3, [(0.5, 1)]), "edges must be pairs"),
        (lambda: lc.Network.from_edges(0, []), "n_agents must be at least 1"),
        (lambda: lc.Network.random(5, p=1.5), "p must be at most 1"),
        (lambda: lc.Network.random(50, p=0.001), "no connected network is to be had with p=0.001"),
        (lambda: lc.Network.geometric(5, radius=0), "radius must be larger than 0"),
        (lambda: lc.Network.small_world(5, 9), "n_neighbours must be from 1 to 4"),
        (lambda: lc.Network(2, [(0, 1)], names=["a", "a"]), "2 different names"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("n_agents", [1, 2, 3, 4, 7, 2001])
def test_plain_graphs_are_those_of_networkx(n_agents):
    import networkx as nx

    graphs = {"path": nx.path_graph(n_agents), "star": nx.star_graph(n_agents - 1)}
    if n_agents > 2:
        graphs["ring"] = nx.cycle_graph(n_agents)
    if n_agents < 100:
        graphs["complete"] = nx.complete_graph(n_agents)
    for kind, graph in graphs.items():
        network = getattr(lc.Network, kind)(n_agents)
        assert {tuple(edge) for edge in network.edges.tolist()} == {tuple(sorted(edge)) for edge in graph.edges}
        assert network.degrees.tolist() == [graph.degree[k] for k in range(n_agents)]
        for k in (0, n_agents // 2, n_agents - 1):
            heard = network.neighbours[network.starts[k] : network.starts[k + 1]].tolist()
            assert heard == sorted(graph.neighbors(k))
    assert lc.Network.ring(2) == lc.Network.path(2)


def test_edges_are_sorted_and_counted_once():
    rng = np.random.default_rng(0)
    edges = rng.integers(0, 50, size=(400, 2))
    edges = np.concatenate([edges[edges[:, 0] != edges[:, 1]], lc.Network.ring(50).edges[:, ::-1]])
    network = lc.Network.from_edges(50, edges)
    expected = sorted({(min(a, b), max(a, b)) for a, b in edges.tolist()})
    assert [tuple(edge) for edge in network.edges.tolist()] == expected


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lc.Network.star(10**12), "n_agents must be at most 16777216, got 1000000000000"),
        (lambda: lc.Network.ring(10**30), "n_agents must be at most 16777216"),
        (lambda: lc.Network.grid(10**6, 10**6), "rows times columns must be at most 16777216"),
        (lambda: lc.Network.complete(10**6), "n_agents must be smaller for so dense a network"),
        (lambda: lc.Network.random(10**6, p=0.5), "n_agents must be smaller for so dense a network"),
        (lambda: lc.Network.random(10**6, p=1e-7), "no connected network is to be had with p=1e-07"),
        (lambda: lc.Network.geometric(10**6, radius=1e-5), "no connected network is to be had with radius=1e-05"),
        (lambda: lc.Network.geometric(20, radius=0.5, connect="yes"), "connect must be True or False, got 'yes'"),
        (lambda: lc.Network.geometric(10**6, radius=0.5), "n_agents must be smaller for so dense a network"),
        (lambda: lc.Network.geometric(5000, radius=0.02), "no connected network is to be had with radius=0.02"),
        (lambda: lc.Network.random(5000, p=0.00125), "no connected network is to be had with p=0.00125"),
        (lambda: lc.Network.small_world(10**6, 2, p=1.0), "no connected network is to be had with p=1"),
        (lambda: lc.Network.within(np.zeros((20_000, 2)), radius=1), "radius must be smaller for so dense a network"),
        (lambda: lc.Network(3, [(0.0, 1.0)]), r"edges must be pairs .* got an array of float64 of shape \(1, 2\)"),
        (lambda: lc.Network(3, [(1, 1)]), r"edges must join two different agents, found \(1, 1\)"),
        (lambda: lc.Network.small_world(20, 1), "n_neighbours must be at least 2"),
        (lambda: lc.Network.small_world(20, 4, p=1.5), "p must be at most 1"),
        (lambda: lc.Network.from_networkx("ring"), "graph must be a networkx graph, got 'ring'"),
        (lambda: lc.Network.from_networkx(lc.Network.ring(3)), "graph must be a networkx graph"),
        (lambda: lc.Network(3, None), "edges must be pairs"),
        (lambda: lc.Network(3, [(0, 1), (1, 2, 0)]), "edges must be pairs"),
        (lambda: lc.Network(3, [(0, 1), (1, 2)], names=5), "names must be a list of 3 different names"),
        (lambda: lc.Network(3, [(0, 1), (1, 2)], names=["a", "b", "c", "c"]), "names must be 3 different names"),
    ],
)
def test_networks_that_cannot_be_made_are_refused_at_once(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_large_list_of_numbers_is_read_as_one_word_by_word_would_be(tmp_path, monkeypatch):
    path = tmp_path / "edges.txt"
    path.write_text("10 2\n2 7\n\n7 10\n10 11\n11 11\n")
    slow = lc.Network.read(path)
    for written in ("07 10\n10 2\n", "2 ten\nten 7\n"):  # names after all
        (tmp_path / "names.txt").write_text(written)
        named = lc.Network.read(tmp_path / "names.txt")
        monkeypatch.setattr("laconic._graphs._READ_AT_ONCE", 0)
        assert lc.Network.read(tmp_path / "names.txt") == named
        monkeypatch.undo()
    monkeypatch.setattr("laconic._graphs._READ_AT_ONCE", 0)
    assert lc.Network.read(path) == slow
    assert slow.names == ("2", "7", "10", "11")
    path.write_text("1 2 3\n")
    with pytest.raises(ValueError, match="two names a line"):
        lc.Network.read(path)


def test_a_radius_beyond_all_bounds_reaches_everybody():
    assert lc.Network.geometric(5, radius=1e308) == lc.Network.complete(5)


def test_files_of_windows_and_names_that_are_alike_as_numbers(tmp_path):
    path = tmp_path / "edges.txt"
    path.write_bytes("\ufeffa b\r\nb \u00e9\r\n\u00e9 a\r\n".encode())
    assert lc.Network.read(path).names == ("a", "b", "\u00e9")
    path.write_text("07 7\n7 1\n1 007\n")
    assert lc.Network.read(path).names == ("1", "7", "07", "007")  # whatever the order of sets is
    long = "1" * 5000
    path.write_text(f"2 {long}\n")
    assert lc.Network.read(path).names == (long, "2")


def test_a_large_file_of_nothing_is_told_without_a_warning(tmp_path):
    path = tmp_path / "blank.txt"
    path.write_text(" \n" * 2**20)
    with pytest.raises(ValueError, match="must hold two names a line"):
        lc.Network.read(path)
