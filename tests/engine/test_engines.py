"""The compiled engine gives the reference's numbers: every learner, channel, loss and network, to 1e-12."""

import numpy as np
import pytest
from breadth import crossed
from conftest import CHANNELS, LEARNERS, LOSSES, NETWORKS, make_learner, make_stream

import laconic as lc


def assert_same_run(one, other, rtol=1e-12):
    assert np.array_equal(one.sent, other.sent)
    assert np.array_equal(one.bits, other.bits)
    assert np.array_equal(one.saturated, other.saturated)
    for name in ("predictions", "consensus_error", "energy", "replica_error"):
        a, b = getattr(one, name), getattr(other, name)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * np.abs(a).max(initial=1.0), err_msg=name)
    assert set(one.state.learner) == set(other.state.learner)
    for name, array in one.state.learner.items():
        np.testing.assert_allclose(
            array, other.state.learner[name], rtol=rtol, atol=rtol * np.abs(array).max(initial=0)
        )
    np.testing.assert_allclose(
        one.state.broadcast, other.state.broadcast, rtol=rtol, atol=rtol * np.abs(one.state.broadcast).max()
    )


@pytest.mark.parametrize(("kind", "loss", "network"), crossed(LEARNERS, LOSSES, NETWORKS))
def test_engines_agree(kind, loss, network, features):
    graph = NETWORKS[network]
    X, y = make_stream(40, graph.n_agents, binary=lc.losses.get(loss).binary)
    y[5, 0] = y[17, -1] = np.nan
    # Every channel on one graph, and on the others one that censors and one whose messages vary in length.
    channels = CHANNELS if network == "random" else {name: CHANNELS[name] for name in ("both", "entropy")}
    for channel in channels.values() if kind != "local" else [None]:
        learner = make_learner(kind, loss, channel)
        slow = lc.simulate(learner, features, graph, X, y, engine="reference", collective=True)
        fast = lc.simulate(learner, features, graph, X, y, engine="compiled", collective=True)
        assert_same_run(slow, fast)
        np.testing.assert_allclose(slow.collective_square, fast.collective_square, rtol=1e-11)
        np.testing.assert_allclose(slow.collective_loss, fast.collective_loss, rtol=1e-11, atol=1e-12)
        assert slow.sent.any() == (kind != "local" and graph.n_agents > 1)


@pytest.mark.parametrize(
    ("n_inputs", "n_frequencies"), [(1, 1), (2, 2), (7, 3), (1, 4), (2, 5), (7, 12), (1, 13), (2, 50), (7, 50)]
)
def test_engines_agree_for_any_length(n_frequencies, n_inputs):
    features = lc.RandomFeatures.gaussian(n_inputs, n_frequencies, seed=1)
    X, y = make_stream(30, 5, n_inputs)
    for channel in (lc.Channel(), CHANNELS["both"]):
        learner = make_learner("odkla", channel=channel)
        assert_same_run(
            lc.simulate(learner, features, lc.Network.ring(5), X, y, engine="reference"),
            lc.simulate(learner, features, lc.Network.ring(5), X, y, engine="compiled"),
        )


@pytest.mark.parametrize("n_agents", [2, 127, 128, 129, 300])
def test_engines_agree_for_any_number_of_agents(n_agents, features):
    X, y = make_stream(6, n_agents)
    network = lc.Network.small_world(n_agents, 4, seed=1) if n_agents > 4 else lc.Network.path(n_agents)
    learner = make_learner("odkla", channel=CHANNELS["both"])
    for collective in (False, True):
        assert_same_run(
            lc.simulate(learner, features, network, X, y, engine="reference", collective=collective),
            lc.simulate(learner, features, network, X, y, engine="compiled", collective=collective),
        )


@pytest.mark.parametrize("kind", LEARNERS)
def test_single_precision_follows_double(kind, features):
    X, y = make_stream(200, 6)
    learner = make_learner(kind)
    double = lc.simulate(learner, features, NETWORKS["ring"], X, y)
    for engine in ("reference", "compiled"):
        single = lc.simulate(learner, features, NETWORKS["ring"], X, y, dtype="float32", engine=engine)
        assert single.predictions.dtype == single.weights.dtype == np.float32
        np.testing.assert_allclose(single.predictions, double.predictions, atol=2e-5)
    quantized = make_learner(kind, channel=CHANNELS["both"])
    trace = lc.simulate(quantized, features, NETWORKS["ring"], X, y, dtype="float32")
    assert trace.mse()[-1] < 1.5 * double.mse()[-1]


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_eta_may_be_any_function_of_the_round(loss, features):
    X, y = make_stream(60, 6, binary=loss != "squared")
    for eta in (lc.schedules.SqrtGrowth(0.5), lc.schedules.Constant(2.0), lambda t: 1.0 + 0.1 * t):
        for make in (lc.ODKLA, lc.DOKL):
            learner = make(rho=0.2, eta=eta, loss=loss)
            assert_same_run(
                lc.simulate(learner, features, NETWORKS["ring"], X, y, engine="reference"),
                lc.simulate(learner, features, NETWORKS["ring"], X, y, engine="compiled"),
            )


class Stepwise(lc.Censor):
    """A censoring rule of one's own: two thresholds."""

    def threshold(self, t):
        return 0.8 if t < 20 else 0.05


class Coarse(lc.Quantizer):
    """A quantizer of one's own: the larger half of the entries, as they are."""

    def __call__(self, innovation):
        return np.where(np.abs(innovation) >= np.median(np.abs(innovation), axis=1, keepdims=True), innovation, 0.0)


class Huber(lc.losses.Loss):
    """A loss of one's own, without a closed form of its prox."""

    name = "huber"

    def value(self, margin, label):
        error = np.abs(margin - label)
        return np.where(error < 0.5, error**2, error - 0.25)

    def derivative(self, margin, label):
        return np.clip(2 * (margin - label), -1, 1)


def test_own_parts_work_with_everything(features):
    X, y = make_stream(60, 6)
    network = NETWORKS["ring"]
    learner = lc.ODKLA(channel=lc.Channel(Stepwise(1, 0.5), lc.Quantizer(3)))
    fast, slow = (lc.simulate(learner, features, network, X, y, engine=e) for e in ("compiled", "reference"))
    assert_same_run(slow, fast)
    assert fast.sent[:19].mean() < 0.5 < fast.sent[20:].mean()
    for own in (
        lc.ODKLA(channel=lc.Channel(quantizer=Coarse(1))),
        lc.DOKL(loss=Huber()),
        lc.RFFDOKL(loss=Huber(), channel=lc.Channel(quantizer=Coarse(1))),
    ):
        trace = lc.simulate(own, features, network, X, y)
        assert trace.about["engine"] == "reference"
        assert trace.windowed_mse(10)[-1] < 0.5 * trace.mse()[5]


def test_sweep_is_simulate_many_times(features):
    X, y = make_stream(300, 6)
    learners = {kind: make_learner(kind, channel=CHANNELS["both"]) for kind in LEARNERS}
    swept = lc.sweep(learners, features, NETWORKS["random"], X, y, n_jobs=2, collective=True)
    assert list(swept) == list(learners)
    for kind, learner in learners.items():
        alone = lc.simulate(learner, features, NETWORKS["random"], X, y, collective=True)
        for name in ("predictions", "sent", "consensus_error", "collective_square"):
            assert np.array_equal(getattr(swept[kind], name), getattr(alone, name)), (kind, name)
        assert np.array_equal(swept[kind].weights, alone.weights)
    in_order = lc.sweep(list(learners.values()), features, NETWORKS["random"], X, y, n_jobs=1)
    assert [trace.about["name"] for trace in in_order] == [learner.name for learner in learners.values()]


def test_a_sweep_of_several_maps_is_one_of_each():
    X, y = make_stream(60, 6)
    maps = {
        "narrow": lc.RandomFeatures.gaussian(X.shape[2], 8, 0.1),
        "matern": lc.RandomFeatures.matern(X.shape[2], 12, 1.0),
    }
    learners = [lc.ODKLA(), lc.Local(0.3)]
    swept = lc.sweep(learners, maps, NETWORKS["ring"], X, y)
    assert list(swept) == [("narrow", 0), ("narrow", 1), ("matern", 0), ("matern", 1)]
    for (name, place), trace in swept.items():
        alone = lc.simulate(learners[place], maps[name], NETWORKS["ring"], X, y)
        assert np.array_equal(trace.predictions, alone.predictions)
    with pytest.raises(ValueError, match="y must be an array of labels where there are several maps"):
        lc.sweep(learners, maps, NETWORKS["ring"], iter([(X, y)]))
    with pytest.raises(ValueError, match="features must be a map, or at least one"):
        lc.sweep(learners, {}, NETWORKS["ring"], X, y)


@pytest.mark.parametrize("every", [2, 7, 24, 26, 1000])
def test_no_message_goes_uncounted_however_few_rounds_are_kept(features, every):
    X, y = make_stream(25, 6)
    learner = make_learner("odkla", channel=lc.Channel(lc.Censor(0.3, 0.99), lc.Quantizer(3, range=(-0.05, 0.05))))
    whole = lc.simulate(learner, features, NETWORKS["ring"], X, y)
    thin = lc.simulate(learner, features, NETWORKS["ring"], X, y, every=every)
    assert 0 < whole.sent.sum() == thin.sent.sum() and whole.bits.sum() == thin.bits.sum()
    spans = np.diff(thin.info["rounds"], prepend=0)
    np.testing.assert_allclose((thin.saturated.T * spans).sum(), whole.saturated.sum(), rtol=1e-6)
    first = lc.simulate(learner, features, NETWORKS["ring"], X[:10], y[:10], every=every)
    rest = lc.simulate(learner, features, NETWORKS["ring"], X[10:], y[10:], every=every, state=first.state)
    assert first.sent.sum() + rest.sent.sum() == whole.sent.sum()
    assert rest.info["rounds"][-1] == 25 and np.array_equal(rest.predictions[-1], whole.predictions[-1])


def test_every_so_many_rounds_are_kept_and_what_was_sent_in_between_is_counted(features, tmp_path):
    X, y = make_stream(25, 6)
    learner = make_learner("odkla", channel=CHANNELS["both"])
    whole = lc.simulate(learner, features, NETWORKS["ring"], X, y)
    blocks = [(X[a:b], y[a:b]) for a, b in ((0, 3), (3, 14), (14, 25))]  # which need not fit
    thin = lc.simulate(learner, features, NETWORKS["ring"], blocks, every=4)
    kept = [3, 7, 11, 15, 19, 23, 24]  # the last one, too
    assert np.array_equal(thin.predictions, whole.predictions[kept])
    assert np.array_equal(thin.energy, whole.energy[kept])
    assert np.array_equal(thin.sent[:6], whole.sent[:24].reshape(6, 4, 6).sum(axis=1))
    assert np.array_equal(thin.sent[6], whole.sent[24])
    assert np.array_equal(thin.bits.sum(axis=0), whole.bits.sum(axis=0))
    assert thin.to_frame()["round"].unique().to_list() == [k + 1 for k in kept]
    assert np.array_equal(thin.weights, whole.weights) and thin.state.round == 25
    assert np.array_equal(lc.Trace.load(thin.save(tmp_path / "thin.npz")).sent, thin.sent)
    with pytest.raises(ValueError, match="every must be 1 with WaveRLS"):
        lc.simulate(lc.WaveRLS(), features, NETWORKS["ring"], X, y, every=4)
