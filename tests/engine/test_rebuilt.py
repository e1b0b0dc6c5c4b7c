"""A model that is lost, to rounding or whatever else, is rebuilt from the sums of the agent; no run ends by it."""

import logging

import numpy as np
import pytest
from agent_kit import carry, make_team
from conftest import make_stream

import laconic as lc
from laconic.engine import make_engine

FEATURES = lc.RandomFeatures.gaussian(n_inputs=3, n_frequencies=7, bandwidth=1.0, seed=4)
LEARNERS = {"waves": lc.WaveRLS(), "personal": lc.Personal(), "forgets": lc.Personal(lc.WaveRLS(forgetting=0.97))}


def spoil(own, how):
    """Replace P, or the model, by what no samples can have made."""
    n = FEATURES.n_features
    if how == "negative":
        own.replace(-1e4 * np.eye(n), own.weights.copy())
    elif how == "huge":
        own.replace(own.spread if "spread" in vars(own) else np.eye(n), np.full(n, 1e12))
    else:
        own.replace(np.full((n, n), np.nan), own.weights.copy())


@pytest.mark.parametrize("how", ["negative", "huge", "none"])
@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_lost_model_is_rebuilt_and_told(engine, name, how, caplog):
    X, y = make_stream(120, 3)
    runner = make_engine(LEARNERS[name], FEATURES, lc.Network.path(3), engine)
    runner.advance(X[:50], y[:50])
    spoil(runner.nodes[1].own, how)
    if engine == "compiled" and name != "waves":
        runner._models()
    with caplog.at_level(logging.WARNING, "laconic.engine"):
        chunk = runner.advance(X[50:], y[50:])
    assert chunk.ending is None and chunk.n_rounds == 70
    rebuilt = chunk.columns["info.rebuilt"]
    assert rebuilt.shape == (70, 3) and rebuilt[:, 1].any() and not rebuilt[:, [0, 2]].any()
    assert "agent 1 was lost and is rebuilt" in caplog.text
    after = int(np.flatnonzero(rebuilt[:, 1])[-1]) + 1
    errors = (chunk.columns["predictions"][after:] - y[50 + after :]) ** 2
    assert errors.mean() < 0.5 * y.var()


@pytest.mark.parametrize("how", ["negative", "huge", "none"])
@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_an_agent_says_that_its_model_was_rebuilt(engine, name, how):
    agents = make_team(LEARNERS[name], FEATURES, ["ann-ben"], engine=engine)
    X, y = make_stream(60, 2)
    alerts = []
    for t in range(60):
        for k, agent in enumerate(agents.values()):
            if t == 30 and k == 0:
                spoil(agent._ledger.waver.own, how)
            agent.learn(X[t, k], y[t, k])
        carry(agents)
        alerts += agents["ann"].alerts()
    assert ("model rebuilt", "") in alerts and set(agents["ben"].alerts()) <= set()
    assert agents["ann"].round == 60


def test_a_run_without_sums_ends_as_ever():
    """Labels of which the squares overflow: there is nothing to make a model of."""
    X, y = make_stream(40, 3)
    with pytest.raises(lc.Diverged, match="scale X and y"):
        lc.simulate(lc.Personal(lc.WaveRLS(ridge=1e-300)), FEATURES, lc.Network.path(3), X, 1e300 * y)


def test_an_agent_without_sums_says_what_can_be_done():
    agent = lc.Agent("ann", [], FEATURES, lc.Personal(), n_agents=1)
    X, y = make_stream(20, 1)
    for t in range(10):
        agent.learn(X[t, 0], y[t, 0])
    spoil(agent._ledger.waver.own, "none")
    agent._ledger.waver.own._moments[:] = np.nan
    with pytest.raises(lc.Diverged, match="'ann' left all bounds; .* scale X and y"):
        agent.learn(X[10, 0], y[10, 0])
