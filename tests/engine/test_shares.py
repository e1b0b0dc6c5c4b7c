"""However rows are numbered and shared out among threads: the bits are those that they always were."""

import hashlib

import numpy as np
import pytest

import laconic as lc
from laconic import _numbering
from laconic.engine import graphs
from laconic.native import run as native_run

LEARNERS = {
    "odkla": lc.ODKLA(rho=0.3, eta=1.0),
    "qc-odkla": lc.QCODKLA(rho=0.3, eta=1.0, alpha=0.5, beta=0.9, bits=3),
    "wide": lc.ODKLA(rho=0.3, eta=1.0, channel=lc.Channel(lc.Censor(0.2, 0.9), lc.Quantizer(11))),
    "dokl": lc.DOKL(rho=0.3, eta=1.0, channel=lc.Channel(lc.Budget(0.6, burst=2), lc.Quantizer(4, rounding="tread"))),
    "diffusion": lc.RFFDOKL(step=0.4, channel=lc.Channel(quantizer=lc.Quantizer(5, range=(-0.6, 0.5)))),
    "combine-last": lc.RFFDOKL(step=0.4, order="adapt-then-combine", channel=lc.Channel(lc.Censor(0.3, 0.9))),
    "spoken": lc.RFFDOKL(
        step=0.4,
        order="adapt-then-combine",
        listen="spoken",
        channel=lc.Channel(lc.Budget(bits_per_round=70.0, burst=500), lc.EntropyQuantizer(0.4)),
    ),
    "robust": lc.ODKLA(rho=0.3, eta=1.0, robust="clip", channel=lc.Channel(quantizer=lc.Quantizer(3))),
}
FEATURES = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=7, bandwidth=0.5, seed=3)


def labelled(n_agents, rounds=12):
    X = np.random.default_rng(0).uniform(size=(rounds, n_agents, 2))
    y = X[..., 0] * X[..., 1] - 0.25 * X[..., 1]  # nothing that a library might round in its own way
    y[3, 5] = np.nan
    return X, y


def run(learner, network=None, rounds=12, **options):
    network = network or lc.Network.small_world(140, 6, 0.2, seed=1)
    X, y = labelled(network.n_agents, rounds)
    return lc.simulate(learner, FEATURES, network, X, y, engine="compiled", **options)


def parts(trace):
    state = trace.state
    kept = {**state.learner, "broadcast": state.broadcast, **state.channel}
    columns = ("predictions", "sent", "saturated", "bits", "consensus_error", "energy", "replica_error")
    return kept | {name: getattr(trace, name) for name in columns}


@pytest.mark.parametrize("kind", LEARNERS)
def test_neither_numbering_nor_threads_change_a_bit(kind):
    plain = parts(run(LEARNERS[kind]))
    shuffled = lc.Network.small_world(140, 6, 0.2, seed=1)
    shuffled.numbering = np.random.default_rng(7).permutation(140)
    for other in (run(LEARNERS[kind], shuffled), run(LEARNERS[kind], shuffled, threads=3)):
        for name, array in parts(other).items():
            assert np.array_equal(array, plain[name]), name


@pytest.mark.parametrize(("dtype", "n_frequencies"), [("float32", 2), ("float32", 10), ("float64", 1), ("float64", 5)])
@pytest.mark.parametrize("kind", ["odkla", "qc-odkla", "wide"])
def test_rows_that_end_with_half_a_vector_have_the_same_bits(kind, dtype, n_frequencies, monkeypatch):
    features = lc.RandomFeatures.gaussian(2, n_frequencies, 0.5, seed=3)
    network, (X, y) = lc.Network.small_world(61, 6, 0.2, seed=1), labelled(61)

    def both():
        first = lc.simulate(LEARNERS[kind], features, network, X[:5], y[:5], dtype=dtype)
        rest = lc.simulate(LEARNERS[kind], features, network, X[5:], y[5:], dtype=dtype, state=first.state, threads=2)
        return [rest.about["energy_before"], *parts(first).values(), *parts(rest).values()]

    whole = both()
    monkeypatch.setattr(native_run, "_CACHED", 0)  # to Python; in the core it says when to ask in advance
    assert native_run.halved(61, 2 * n_frequencies, dtype)
    for array, other in zip(whole, both(), strict=True):
        np.testing.assert_array_equal(array, other)


# Of predictions, messages and states, by the engine that had a pass for every step and no numbering of its own.
DIGESTS = {
    ("odkla", "float64"): "a389cf9dd8c76283",
    ("qc-odkla", "float64"): "72083250a7106daf",
    ("wide", "float64"): "37ef5751403b0dd5",
    ("dokl", "float64"): "f1c743eded6098c7",
    ("diffusion", "float64"): "59d740cacb74de9e",
    ("combine-last", "float64"): "bfcda37845a4f770",
    ("spoken", "float64"): "ba9bc621fce1d64e",
    ("robust", "float64"): "610547385a0fb66a",
    ("qc-odkla", "float32"): "2d071262de609c01",
    ("combine-last", "float32"): "4830f611be462686",
}


@pytest.mark.parametrize(("kind", "dtype"), DIGESTS)
def test_the_bits_are_those_of_the_engine_before(kind, dtype):
    assert digest(run(LEARNERS[kind], dtype=dtype)) == DIGESTS[kind, dtype]


def digest(trace):
    found = hashlib.blake2b(digest_size=8)
    for name, array in sorted(parts(trace).items()):
        if name not in ("consensus_error", "energy", "replica_error"):  # sums over agents, now in no order
            found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def test_a_run_in_another_order_goes_on_from_its_state():
    network = lc.Network.ring(40)
    whole = run(LEARNERS["qc-odkla"], network)
    X, y = labelled(40)
    half = lc.simulate(LEARNERS["qc-odkla"], FEATURES, network, X[:5], y[:5])
    network.numbering = np.arange(40)[::-1].copy()
    rest = lc.simulate(LEARNERS["qc-odkla"], FEATURES, network, X[5:], y[5:], state=half.state, threads=2)
    assert np.array_equal(rest.predictions, whole.predictions[5:])
    assert np.array_equal(rest.energy, whole.energy[5:])
    assert np.array_equal(rest.state.duals, whole.state.duals)


@pytest.mark.parametrize("by", ["by_parts", "by_walking"])
def test_a_numbering_brings_neighbours_together(by):
    if by == "by_parts":
        pytest.importorskip("pymetis")
    network = lc.Network.geometric(6000, 0.03, connect=True)
    assert _numbering.locality(network.starts, network.neighbours) < 0.3
    order = getattr(_numbering, by)(network.starts, network.neighbours)
    assert np.array_equal(np.sort(order), np.arange(6000))
    rank = np.argsort(order)
    moved = lc.Network(6000, rank[network.edges])
    assert _numbering.locality(moved.starts, moved.neighbours) > 0.7
    assert moved.numbering is None or by == "by_parts"


def test_in_a_part_agents_with_as_many_neighbours_follow_each_other():
    pytest.importorskip("pymetis")
    network = lc.Network.geometric(6000, 0.03, connect=True)
    degrees = network.degrees[_numbering.by_parts(network.starts, network.neighbours)]
    assert (np.diff(degrees) == 0).mean() > 0.9


@pytest.mark.parametrize(
    ("network", "close"),
    [
        (lc.Network.geometric(6000, 0.02, seed=1, connect=True), True),
        (lc.Network.random(6000, p=7 / 6000, seed=1, connect=True), False),
        (lc.Network.from_edges(6000, [(i, (i - 1) // 2) for i in range(1, 6000)]), True),  # a tree
        (lc.Network.star(6000), True),
    ],
    ids=["geometric", "random", "tree", "star"],
)
def test_only_networks_of_close_parts_are_cut_into_parts(network, close, monkeypatch):
    """METIS takes half a minute for a random network of 10^6 agents, and rounds are not shorter for it."""
    pytest.importorskip("pymetis")
    share = _numbering.closeness(network.starts, network.neighbours)
    assert share > 0.6 if close else share < 0.4
    cut = []
    monkeypatch.setattr(_numbering, "by_parts", lambda *lists: cut.append(True) or np.arange(6000)[::-1])
    order = _numbering.numbering(network.starts, network.neighbours)
    assert bool(cut) == close and np.array_equal(np.sort(order), np.arange(6000))


def test_what_is_small_or_near_already_keeps_its_numbers():
    assert lc.Network.random(50, p=0.2).numbering is None
    assert lc.Network.ring(5000).numbering is None


def test_distant_neighbours_are_listed_by_groups_of_rows():
    network = lc.Network.small_world(3001, 6, 0.05, seed=3)
    starts, neighbours = network.starts, network.neighbours.astype(np.int32)
    distant_starts, distant = graphs.listed_distant(starts, neighbours)
    for group, first in enumerate(range(0, 3001, graphs.GROUP)):
        expected = []
        for i in range(first, min(3001, first + graphs.GROUP)):
            heard = neighbours[starts[i] : starts[i + 1]].tolist()
            expected += [j for j in heard if abs(i - j) > graphs.NEAR]
        assert distant[distant_starts[group] : distant_starts[group + 1]].tolist() == expected
    assert len(distant_starts) == 377 and distant_starts[-1] == len(distant)


@pytest.mark.parametrize(
    ("kind", "network"),
    [
        ("qc-odkla", lc.Network.random(6001, p=1e-3, seed=0, connect=True)),
        ("qc-odkla", lc.Network.grid(60, 100)),
        ("dokl", lc.Network.grid(60, 100)),
        ("combine-last", lc.Network.random(6001, p=1e-3, seed=0, connect=True)),
    ],
)
def test_who_is_asked_for_in_advance_changes_no_bit(kind, network, monkeypatch):
    n = network.n_agents
    X = np.random.default_rng(0).uniform(size=(3, n, 2))
    traces = []
    for least in (0, 1 << 40):
        monkeypatch.setattr(graphs, "DISTANT", least)
        features = lc.RandomFeatures.gaussian(2, 50, bandwidth=0.5)
        traces.append(lc.simulate(LEARNERS[kind], features, network, X, X[..., 0], dtype="float32"))
    assert np.array_equal(traces[0].predictions, traces[1].predictions)
    assert np.array_equal(traces[0].state.weights, traces[1].state.weights)
