"""``listen="spoken"``: agents mix with those who have just spoken, and with nobody else."""

import numpy as np
import pytest
from agent_kit import carry, make_team, puppet
from breadth import each
from conftest import NETWORKS, make_stream

import laconic as lc

ATC = {"order": "adapt-then-combine", "listen": "spoken"}


def diffuse(step, regularization, phi, y, network, censor):
    """The rule, agent by agent and neighbour by neighbour, with models that travel as they are."""
    n_rounds, n_agents, n = phi.shape
    theta, hat = np.zeros((n_agents, n)), np.zeros((n_agents, n))
    sent = np.zeros((n_rounds, n_agents), dtype=bool)
    metropolis = network.metropolis_weights()
    for t in range(n_rounds):
        for i in range(n_agents):
            error = theta[i] @ phi[t, i] - y[t, i]
            theta[i] -= step * (2 * error * phi[t, i] + 2 * regularization / n_agents * theta[i])
            if np.linalg.norm(theta[i] - hat[i]) >= censor.threshold(t + 1):
                hat[i], sent[t, i] = theta[i], True
        before = theta.copy()
        for i in range(n_agents):
            for j in range(n_agents):
                if i != j and metropolis[i, j] > 0 and sent[t, j]:
                    theta[i] += metropolis[i, j] * (hat[j] - before[i])
    return theta, sent


@pytest.mark.parametrize(
    ("network", "engine"), each([name for name in NETWORKS if name != "alone"], ["compiled", "reference"])
)
def test_it_is_the_rule(network, engine, features):
    X, y = make_stream(80, 6)
    censor = lc.Censor(0.6, 0.99)
    learner = lc.RFFDOKL(0.3, **ATC, regularization=1e-3, channel=lc.Channel(censor))
    trace = lc.simulate(learner, features, NETWORKS[network], X, y, engine=engine)
    theta, sent = diffuse(0.3, 1e-3, features(X), y, NETWORKS[network], censor)
    assert np.array_equal(trace.sent, sent) and 0.05 < sent.mean() < 0.95
    np.testing.assert_allclose(trace.weights, theta, rtol=1e-12, atol=1e-12)


def test_where_all_speak_it_is_adapt_then_combine(features):
    X, y = make_stream(60, 6)
    one, other = (
        lc.simulate(lc.RFFDOKL(0.3, "adapt-then-combine", listen=listen), features, NETWORKS["random"], X, y)
        for listen in ("all", "spoken")
    )
    np.testing.assert_allclose(one.weights, other.weights, rtol=0, atol=1e-13)


def test_few_words_wind_nothing_up(features):
    """At one round in twenty: what acts on silent replicas diverges, what waits for words does not."""
    X, y = make_stream(1500, 6)
    quiet = lc.Channel(lc.Budget(0.05, burst=5))
    spoken = lc.simulate(lc.RFFDOKL(0.4, **ATC, channel=quiet), features, NETWORKS["ring"], X, y)
    dense = lc.simulate(lc.RFFDOKL(0.4, "adapt-then-combine"), features, NETWORKS["ring"], X, y)
    assert spoken.windowed_mse(300)[-1] < 1.5 * dense.windowed_mse(300)[-1]
    for learner in (lc.RFFDOKL(0.4, "adapt-then-combine", channel=quiet), lc.ODKLA(0.5, 2.0, channel=quiet)):
        with pytest.raises(lc.Diverged):
            lc.simulate(learner, features, NETWORKS["ring"], X, y)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"listen": "spoken"}, "listen must be 'all' unless order is 'adapt-then-combine'"),
        ({**ATC, "robust": "clip"}, "listen must be 'all' with robust='clip'"),
        ({"listen": "some"}, "listen must be one of 'all', 'spoken'"),
    ],
)
def test_what_it_does_not_go_with(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        lc.RFFDOKL(0.3, **arguments)


class Leaning(lc.Learner):
    """A learner of one's own that hears by the same rule."""

    listen = "spoken"

    def __init__(self, channel=None):
        super().__init__(channel=channel or lc.Channel())

    def init(self, n_agents, n_features):
        return lc.RFFDOKL(0.3).init(n_agents, n_features)

    def step(self, state, sample, heard):
        slope = self.loss.slope((state.weights * sample.phi).sum(axis=1), sample.label)
        return state._replace(weights=state.weights - 0.3 * slope[:, None] * sample.phi), {}

    def hear(self, state, heard):
        return state._replace(weights=state.weights + heard.mixture)


class HearsOnce(Leaning):
    def step(self, state, sample, heard):
        assert not heard.mixture.any()  # what was said has been heard
        return super().step(state, sample, heard)


def test_a_learner_of_ones_own_hears_so_too(features):
    lc.checks.check_learner(Leaning())
    X, y = make_stream(60, 6)
    channel = lc.Channel(lc.Budget(0.3, burst=2), lc.Quantizer(4))
    own = lc.simulate(HearsOnce(channel), features, NETWORKS["star"], X, y)
    ours = lc.simulate(lc.RFFDOKL(0.3, **ATC, regularization=0.0, channel=channel), features, NETWORKS["star"], X, y)
    assert own.about["engine"] == "reference" and np.array_equal(own.sent, ours.sent)
    np.testing.assert_allclose(own.weights, ours.weights, rtol=0, atol=1e-12)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_on_slots_who_was_not_heard_is_not_mixed_with(engine, features):
    """Ben's word is lost in one slot and mixed with in the next, when it is repeated; in silence nothing moves."""
    learner = lc.RFFDOKL(1e-300, **ATC, regularization=0.0, channel=lc.Channel(lc.Censor(3.0, 1.0)))
    agents = make_team(learner, features, ["ann-ben"], engine=engine)
    ann, ben = agents["ann"], agents["ben"]
    word = np.full(features.n_features, 1.0)
    ben._ledger.weights, ben._ledger.row.largest = word, 1e6
    ben.idle(), ann.idle()
    carry(agents, lost=lambda letter: letter[0] == "ben")
    ann.end_round()
    assert not ann.weights.any()
    heard = 0
    for _ in range(20):  # until it is noticed that a word was missed
        ben.idle(), ann.idle()
        carry(agents)
        ann.end_round()
        if ann.weights.any():
            heard += 1
            np.testing.assert_allclose(ann.weights, word / 2, rtol=1e-12)
    assert heard and np.array_equal(ann.replica("ben"), ben.broadcast)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_restart_between_word_and_round_forgets_nothing(engine, features):
    learner = lc.RFFDOKL(0.3, **ATC, channel=lc.Channel(lc.Budget(0.5, burst=2), lc.Quantizer(3)))
    agents = make_team(learner, features, ["ann-ben", "ben-cid"], clock="lockstep", engine=engine)
    random = np.random.default_rng(0)
    for _ in range(30):
        for agent in agents.values():
            agent.learn(random.uniform(size=3), random.normal())
        carry(agents)
        ben = agents["ben"]
        again = lc.Agent("ben", ["ann", "cid"], features, learner, n_agents=3, engine=engine)
        again.restore(ben.state())
        assert again.state().arrays.keys() >= {"memory", "spoken"}
        twin = again.state().arrays
        for name, array in ben.state().arrays.items():
            assert np.array_equal(array, twin[name]), name
    assert ben.counters["sends"] > 5 and ben.counters["censored"] > 5
    with pytest.raises(ValueError, match="other features, learner, channel"):
        make_team(puppet(), features, ["ann-ben"])["ben"].restore(ben.state())
