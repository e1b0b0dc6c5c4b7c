"""WaveRLS in the simulator: bits, resuming, missing labels, losses, forgetting, and what its trace tells."""

import dataclasses

import numpy as np
import pytest
from breadth import EVERYTHING, each
from conftest import NETWORKS, make_stream

import laconic as lc

ENGINES = ("reference", "compiled")


@pytest.fixture(params=ENGINES)
def engine(request):
    return request.param


def run(learner, features, network, X, y, engine="reference", **more):
    return lc.simulate(learner, features, network, X, y, engine=engine, **more)


@pytest.mark.parametrize("network", NETWORKS)
def test_every_message_counts_at_its_sender_and_at_each_relay(network, features, engine):
    graph = NETWORKS[network]
    X, y = make_stream(60, graph.n_agents)
    trace = run(lc.WaveRLS(), features, graph, X, y, engine)
    places = lc.waves.places(graph)
    finished = sum(wave["when"] + 2 * wave["depth"] <= 60 for wave in trace.waves)
    if graph.n_agents == 1:
        assert not trace.sent.any() and not trace.bits.any() and len(trace.waves) == 0
        return
    assert finished >= 5
    until = trace.waves[finished - 1]
    until = until["when"] + 2 * until["depth"]
    for place in places:  # a leaf one message a wave, an inner agent two, the root one
        each = 1 if place.parent is None or not place.children else 2
        assert trace.sent[:until, place.agent].sum() == each * finished
    assert (trace.bits[trace.sent] >= 64 + 1 + 8 + 3 + features.n_features).all() and not trace.bits[~trace.sent].any()
    assert trace.bits.sum() == trace.waves["bits"].sum() == trace.bits.sum(axis=0).sum()
    assert trace.about["message_bits"] is None
    up = [place.agent for place in places if place.parent is not None and not place.children]
    assert (trace.link_bits[:, up] == trace.bits[:, up]).all()


def test_waves_are_told(features, engine):
    X, y = make_stream(100, 6)
    trace = run(lc.WaveRLS(), features, lc.Network.path(6), X, y, engine)
    assert trace.waves["when"].tolist() == [1, 8, 15, 23, 35, 53, 80]
    assert trace.waves["number"].tolist() == list(range(1, 8))
    assert set(trace.waves["root"]) == {2} and set(trace.waves["depth"]) == {3}
    assert (trace.waves["trust"] >= 1).all() and trace.waves["terms"][0] > 5
    assert len(lc.simulate(lc.ODKLA(), features, lc.Network.path(6), X, y).waves) == 0


@pytest.mark.parametrize("graph", [lc.Network.random(6, p=0.4, seed=2), lc.Network.path(22)], ids=["random", "deep"])
def test_a_resumed_run_has_the_bits_of_an_uninterrupted_one(graph, features, engine, tmp_path):
    X, y = make_stream(70, graph.n_agents)
    y[12, 1] = y[40, 0] = np.nan
    learner = lc.WaveRLS(forgetting=0.99)
    whole = run(learner, features, graph, X, y, engine, collective=True)
    some = (3, 12, 14, 23)
    for cut in (1, 2, *some, 5, 9, 20, 40) if EVERYTHING or engine == "compiled" else some:
        first = run(learner, features, graph, X[:cut], y[:cut], engine, collective=True)
        kept = lc.Trace.load(first.save(tmp_path / "first.npz"))
        rest = run(learner, features, graph, X[cut:], y[cut:], engine, state=kept.state, collective=True)
        for name in ("predictions", "bits", "sent", "energy", "collective_square", "link_bits"):
            both = np.concatenate([getattr(first, name), getattr(rest, name)])
            assert np.array_equal(both, getattr(whole, name)), (cut, name)
        for name, part in rest.state.learner.items():
            assert np.array_equal(part, whole.state.learner[name], equal_nan=True), (cut, name)


class Long:
    """Features in the ten thousands: a model is shorter than labels are large."""

    n_inputs, n_features = 3, 4

    def __call__(self, X):
        return 1e4 * np.concatenate([1 + 0 * X[..., :1], X], axis=-1)


def test_a_resumed_run_knows_how_large_labels_were(engine):
    X, y = make_stream(60, 4)
    whole = run(lc.WaveRLS(), Long(), lc.Network.path(4), X, y + 3, engine)
    first = run(lc.WaveRLS(), Long(), lc.Network.path(4), X[:30], y[:30] + 3, engine)
    rest = run(lc.WaveRLS(), Long(), lc.Network.path(4), X[30:], y[30:] + 3, engine, state=first.state)
    assert np.array_equal(rest.predictions, whole.predictions[30:])


def test_blocks_give_the_bits_of_the_whole(features, engine):
    X, y = make_stream(60, 5)
    whole = run(lc.WaveRLS(), features, lc.Network.ring(5), X, y, engine)
    cuts = [(X[a:b], y[a:b]) for a, b in ((0, 7), (7, 8), (8, 60))]
    blocks = run(lc.WaveRLS(), features, lc.Network.ring(5), cuts, None, engine)
    assert np.array_equal(blocks.predictions, whole.predictions) and np.array_equal(blocks.bits, whole.bits)
    assert (blocks.waves == whole.waves).all()
    *_, last = lc.stream(lc.WaveRLS(), features, lc.Network.ring(5), iter(cuts), engine=engine)
    assert np.array_equal(last.weights, whole.weights)


def test_one_agent_alone_is_plain_recursive_least_squares(features, engine):
    X, y = make_stream(100, 1)
    y[30] = np.nan
    trace = run(lc.WaveRLS(ridge=0.02), features, lc.Network.from_edges(1, []), X, y, engine)
    alone = lc.offline.recursive_least_squares(features, X, y, centralised=False, regularization=0.02)
    np.testing.assert_allclose(trace.predictions, alone, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("network", ["path", "ring", "star", "random"])
def test_it_comes_near_the_centre(network, features, engine):
    graph = NETWORKS[network]
    X, y = make_stream(600, graph.n_agents)
    y = y + 0.1 * np.random.default_rng(1).standard_normal(y.shape)
    trace = run(lc.WaveRLS(), features, graph, X, y, engine, collective=True)
    centre = lc.offline.recursive_least_squares(features, X, y, centralised=True, regularization=0.05)
    alone = lc.offline.recursive_least_squares(features, X, y, centralised=False, regularization=0.05)
    late = slice(100, None)
    excess = ((trace.predictions - y)[late] ** 2).mean() - ((centre - y)[late] ** 2).mean()
    assert excess < 0.5 * (((alone - y)[late] ** 2).mean() - ((centre - y)[late] ** 2).mean())


@pytest.mark.parametrize("loss", ["logistic", "squared-hinge", "hinge"])
def test_classes(loss, features, engine):
    if (loss, engine) == ("hinge", "compiled"):
        pytest.skip("it has no kernel")
    X, y = make_stream(300, 5, binary=True)
    y[7, 2] = np.nan
    trace = run(lc.WaveRLS(loss=loss), features, lc.Network.ring(5), X, y, engine)
    alone = run(lc.WaveRLS(loss=loss, first=1000), features, lc.Network.ring(5), X, y, engine)
    assert trace.error_rate()[-1] < 0.95 * alone.error_rate()[-1]


def test_forgetting_follows_a_flip(features, engine):
    X, y = make_stream(600, 5)
    y[300:] *= -1
    late = {}
    for f in (1.0, 0.98):
        trace = run(lc.WaveRLS(forgetting=f), features, lc.Network.ring(5), X, y, engine)
        late[f] = trace.squared_errors()[500:].mean()
    assert late[0.98] < 0.2 * late[1.0]


@pytest.mark.parametrize("learner", [lc.WaveRLS, lambda **more: lc.Personal(lc.WaveRLS(**more))], ids=["wave", "own"])
@pytest.mark.parametrize("n_agents", [1, 3])
def test_who_forgets_and_hears_no_wave_stays_sound(learner, n_agents, engine):
    """P/f takes the ridge out of P, which grows without bounds where there is nothing to see, and is lost at last."""
    features = lc.RandomFeatures.gaussian(n_inputs=3, n_frequencies=11, bandwidth=1.5, seed=4)  # few directions count
    network = lc.Network.path(n_agents) if n_agents > 1 else lc.Network.from_edges(1, [])
    X, y = make_stream(500, n_agents)
    alone = learner(forgetting=0.8, first=1 if n_agents == 1 else 10**6)
    whole = run(alone, features, network, X, y, engine)
    assert not whole.bits.any() and whole.squared_errors()[100:].mean() < 0.2 * y.var()
    parts, state = [], None
    for first, stop in ((0, 79), (79, 80), (80, 161), (161, 500)):  # P is reminded when 40, 80, .. rounds are over
        trace = run(alone, features, network, X[first:stop], y[first:stop], engine, state=state)
        parts, state = [*parts, trace.predictions], trace.state
    assert np.array_equal(np.concatenate(parts), whole.predictions)
    other = run(alone, features, network, X, y, "compiled" if engine == "reference" else "reference")
    np.testing.assert_allclose(other.predictions, whole.predictions, rtol=1e-6, atol=1e-8)


def test_who_leaves_all_bounds_in_a_wave_is_told_so(features, engine):
    """Models of which the square overflows: no warning, no assertion, and the rounds before are there."""
    X, y = make_stream(40, 6)
    endings = set()
    for size in np.geomspace(1.6e153, 2.2e153, 12):
        try:
            run(lc.WaveRLS(ridge=0.001), features, lc.Network.star(6), X, size * y, engine)
        except lc.Diverged as error:
            endings.add(error.trace.n_rounds)
    assert endings


@pytest.mark.parametrize("outputs", [1, 2])
def test_small_labels_are_learned_as_well(features, engine, outputs):
    X, y = make_stream(80, 6)
    y = y + 0.05 * np.random.default_rng(0).standard_normal(y.shape)
    y = y if outputs == 1 else np.stack([y, -0.3 * y], axis=-1)
    plain = run(lc.WaveRLS(outputs=outputs), features, NETWORKS["random"], X, y, engine)
    size = 2.0**-23  # of two, so that nothing is rounded in another way
    small = run(lc.WaveRLS(outputs=outputs), features, NETWORKS["random"], X, size * y, engine)
    assert np.array_equal(small.predictions, size * plain.predictions) and np.array_equal(small.bits, plain.bits)


def test_missing_labels(features, engine):
    X, y = make_stream(120, 6)
    y[np.random.default_rng(3).uniform(size=y.shape) < 0.5] = np.nan
    y[:, 2] = np.nan
    y[:20] = np.nan
    trace = run(lc.WaveRLS(), features, NETWORKS["random"], X, y, engine)
    assert np.isfinite(trace.predictions).all() and trace.mse()[-1] < 0.6 * np.nanvar(y)


def test_single_precision_is_for_inputs_and_predictions(features, engine):
    X, y = make_stream(80, 6)
    double = run(lc.WaveRLS(), features, NETWORKS["ring"], X, y, engine)
    single = run(lc.WaveRLS(), features, NETWORKS["ring"], X, y, engine, dtype="float32")
    assert single.predictions.dtype == np.float32 and single.weights.dtype == np.float64
    np.testing.assert_allclose(single.predictions, double.predictions, atol=0.02)


def test_it_is_swept_with_others(features):
    X, y = make_stream(60, 5)
    for n_jobs in (1, 2):
        traces = lc.sweep([lc.WaveRLS(), lc.ODKLA()], features, lc.Network.ring(5), X, y, n_jobs=n_jobs)
        alone = lc.simulate(lc.WaveRLS(), features, lc.Network.ring(5), X, y)
        assert np.array_equal(traces[0].bits, alone.bits)
        np.testing.assert_allclose(traces[0].predictions, alone.predictions, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"ridge": 0}, "ridge must be larger than 0"),
        ({"growth": 1}, "growth must be larger than 1"),
        ({"forgetting": 1.5}, "forgetting must be at most 1"),
        ({"first": 0}, "first must be at least 1"),
        ({"nu": -1}, "nu must be larger than 0"),
    ],
)
def test_wrong_parameters(wrong, said):
    with pytest.raises(ValueError, match=said):
        lc.WaveRLS(**wrong)


@pytest.mark.parametrize(
    ("numbers", "waves"), [({"growth": 1e30}, 1), ({"growth": 1e308}, 1), ({"first": 10**30}, 0), ({"most": 10**30}, 3)]
)
def test_numbers_may_be_beyond_all_bounds(features, engine, numbers, waves, tmp_path):
    X, y = make_stream(20, 6)
    learner = lc.WaveRLS(**numbers)
    trace = run(learner, features, NETWORKS["ring"], X, y, engine)
    assert len(trace.waves) == waves
    kept = lc.Trace.load(trace.save(tmp_path / "kept.npz"))
    assert run(learner, features, NETWORKS["ring"], X, y, engine, state=kept.state).n_rounds == 20


@pytest.mark.parametrize("learner", [lc.WaveRLS(), lc.Personal()])
@pytest.mark.parametrize("n_rounds", ["many", 2.5, -1])
def test_alone_takes_a_number_of_rounds(learner, n_rounds):
    with pytest.raises(ValueError, match="^n_rounds must be"):
        learner.alone(n_rounds)


def test_a_state_of_another_run_is_refused(features):
    X, y = make_stream(5, 6)
    other = lc.simulate(lc.ODKLA(), features, NETWORKS["ring"], X, y)
    with pytest.raises(ValueError, match="state comes from another learner"):
        lc.simulate(lc.WaveRLS(), features, NETWORKS["ring"], X, y, state=other.state)
    waved = lc.simulate(lc.WaveRLS(), features, NETWORKS["ring"], X, y)
    with pytest.raises(ValueError, match="state comes from another network"):
        lc.simulate(lc.WaveRLS(), features, lc.Network.ring(4), X[:, :4], y[:, :4], state=waved.state)
    edges = [(i, (i + 1) % 6) for i in range(6)]  # the same graph, but the tree is another if names have another order
    assert run(lc.WaveRLS(), features, lc.Network.from_edges(6, edges, list("abcdef")), X, y, state=waved.state)
    with pytest.raises(ValueError, match="state comes from another network"):
        run(lc.WaveRLS(), features, lc.Network.from_edges(6, edges, list("fedcba")), X, y, state=waved.state)


@pytest.mark.parametrize(("network", "loss"), each(NETWORKS, ["squared", "logistic", "squared-hinge"]))
def test_the_engines_agree(network, loss, features):
    graph = NETWORKS[network]
    X, y = make_stream(150, graph.n_agents, binary=lc.losses.get(loss).binary)
    y[5, 0] = y[17, -1] = np.nan
    for forgetting in (1.0, 0.98):
        learner = lc.WaveRLS(loss=loss, forgetting=forgetting)
        slow, fast = (run(learner, features, graph, X, y, engine, collective=True) for engine in ENGINES)
        assert (slow.about["engine"], fast.about["engine"]) == ENGINES
        for name in ("bits", "sent", "link_bits"):
            assert np.array_equal(getattr(slow, name), getattr(fast, name)), name
        assert (slow.waves["terms"] == fast.waves["terms"]).all()
        for name in ("theta", "information", "step", "energy", "link", "link_n", "wave", "mail"):
            assert np.array_equal(slow.state.learner[name], fast.state.learner[name]), name
        for name in ("predictions", "energy", "consensus_error", "replica_error", "collective_square"):
            np.testing.assert_allclose(getattr(slow, name), getattr(fast, name), rtol=1e-9, atol=1e-9, err_msg=name)
        for name in ("weights", "own", "moments", "count", "square"):
            one, other = slow.state.learner[name], fast.state.learner[name]
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("seed", range(4))
def test_the_engines_agree_on_a_half(features, seed):
    """Who has seen no label passes a child's only sample on in steps twice as long: every odd number is then a half."""
    network = lc.Network.from_edges(9, [(0, 1), (1, 2), *((0, k) for k in range(3, 9))])
    X, y = make_stream(6, 9, seed=seed)
    y[:, 1] = np.nan
    slow, fast = (run(lc.WaveRLS(), features, network, X, y, engine) for engine in ENGINES)
    assert np.array_equal(slow.bits, fast.bits)
    for name in ("theta", "information", "link"):
        assert np.array_equal(slow.state.learner[name], fast.state.learner[name]), name


@pytest.mark.parametrize("kappa", [0.1, 0.2, 0.45])
def test_the_engines_agree_where_many_eigenvalues_are_raised_to_a_half(features, kappa):
    X, y = make_stream(60, 6)
    slow, fast = (
        run(lc.WaveRLS(kappa=kappa, forgetting=0.9), features, NETWORKS["random"], X, y, engine) for engine in ENGINES
    )
    assert np.array_equal(slow.bits, fast.bits) and (slow.waves["terms"] == fast.waves["terms"]).all()
    assert np.array_equal(slow.state.learner["information"], fast.state.learner["information"])


def test_a_state_goes_on_in_the_other_engine(features):
    X, y = make_stream(80, 6)
    whole = run(lc.WaveRLS(), features, NETWORKS["random"], X, y)
    for first, second in (ENGINES, ENGINES[::-1]):
        half = run(lc.WaveRLS(), features, NETWORKS["random"], X[:24], y[:24], first)
        rest = run(lc.WaveRLS(), features, NETWORKS["random"], X[24:], y[24:], second, state=half.state)
        assert np.array_equal(rest.bits, whole.bits[24:])
        np.testing.assert_allclose(rest.predictions, whole.predictions[24:], rtol=1e-9, atol=1e-10)


SPOILED = {
    "shorter": (("moments", "count", "since", "probe", "step", "told"), lambda row: row[..., :-1]),
    "not finite": (("weights", "own", "information", "square", "thin", "asked"), lambda row: row * np.nan),
    "too large": (("weights", "spread", "link"), lambda row: row + 1e200),
    "negative": (("count", "energy", "trust", "square"), lambda row: -1.0 - np.abs(row)),
    "in words": (("wave", "mail", "link_number"), lambda row: row.astype(str)),
    "none": (("wave", "mail"), lambda row: row * 0),
    "more": (("mail_sizes", "marked"), lambda row: row + 1),
}


@pytest.mark.parametrize("how", SPOILED)
def test_a_spoiled_state_is_refused_in_one_sentence(features, engine, how):
    X, y = make_stream(25, 6)
    state = run(lc.WaveRLS(), features, NETWORKS["path"], X, y, engine).state  # amid a wave
    names, spoil = SPOILED[how]
    assert state.learner["mail"].size and (state.learner["marked"] >= 0).any()
    for name in names:
        spoiled = dataclasses.replace(state, learner={**state.learner, name: spoil(state.learner[name])})
        with pytest.raises(ValueError, match=r"^state (holds|comes from) [^.]*\.?[^.]*\.$"):
            run(lc.WaveRLS(), features, NETWORKS["path"], X, y, engine, state=spoiled)
    with pytest.raises(ValueError, match="state must have a whole number of rounds"):
        run(lc.WaveRLS(), features, NETWORKS["path"], X, y, engine, state=dataclasses.replace(state, round=-1))


def test_a_state_with_fronts_of_another_form_is_refused(features):
    network = lc.Network.ring(22)  # a deep tree: what fronts told is kept with its edges
    X, y = make_stream(9, 22)
    state = run(lc.WaveRLS(), features, network, X, y).state
    assert state.learner["fronts"].shape[1] > 0
    foreign = dataclasses.replace(state, learner={**state.learner, "fronts": np.zeros((22, 5))})
    with pytest.raises(ValueError, match="state comes from another version: its fronts are"):
        run(lc.WaveRLS(), features, network, X, y, state=foreign)


def test_who_is_too_large_for_the_memory_is_told_before_it_is_taken(features, monkeypatch):
    def tried(learner, network):
        X, y = make_stream(2, network.n_agents)
        return lc.simulate(learner, features, network, X, y)

    monkeypatch.setattr("laconic.engine.room.available", lambda: 3e7)
    star = lc.Network.from_edges(600, [(0, k) for k in range(1, 600)])
    for learner, network, matrices in (
        (lc.WaveRLS(), lc.Network.ring(600), 14),  # in a deep tree neighbours remember what they told each other
        (lc.Personal(), lc.Network.ring(600), 19),
        (lc.Experts(drift=True), lc.Network.ring(1100), 8),
    ):
        with pytest.raises(ValueError, match=rf"must be smaller for \w+, which keeps {matrices} x 22 x 22 numbers"):
            tried(learner, network)
    assert tried(lc.WaveRLS(), star).n_rounds == 2
