"""Sums that cannot be those of any samples are refused by who hears them; sums of samples, of whatever kind, never."""

import numpy as np
import pytest
from agent_kit import carry, make_team

import laconic as lc
from laconic.protocol.wave_parts import Up
from laconic.transport.faults import Drop
from laconic.transport.virtual import VirtualNetwork
from laconic.waves import roving

FEATURES = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=10, bandwidth=0.5, seed=0)
TREE = ["hub-ann", "hub-ben", "hub-eve", "eve-fay", "ben-cid", "ben-dan", "hub-gus", "gus-hal", "gus-ida"]


@pytest.fixture
def reasons(monkeypatch):
    """What was found wrong with each message up that was heard; empty where nothing was."""
    found = []

    def listen(*args):
        found.append(why_not(*args))
        return found[-1]

    why_not = roving.why_not
    monkeypatch.setattr(roving, "why_not", listen)
    return found


def more_samples(total):
    return total._replace(n=1.5 * total.n + 50, information=total.information * (1.5 + 50 / total.n))


def negative(total):
    return total._replace(information=-5 * total.information)


def dense(total):
    return total._replace(information=1e3 * total.information)


def residual(total):
    return total._replace(moments=total.moments + total.n)


def reversed_(total):
    return total._replace(moments=-20 * total.moments)


def exact(total):
    return total._replace(square=1e-12)


def bent(total):
    return total._replace(bend=1e6 + total.bend)


def pulled(total):
    return total._replace(pull=1e3 * (1 + abs(total.pull)), doubt=1e-3)


def play(lie=None, n_rounds=110, learner=None):
    """Ten agents, among them eve, whose sums are changed before they are told; all, and what the others are wrong by.

    But for fay, who hears everything through her.
    """
    agents = make_team(learner or lc.WaveRLS(), FEATURES, TREE, clock="lockstep")
    node, rng, errors = agents["eve"]._ledger.node, np.random.default_rng(1), []
    gather = node.gather
    if lie is not None:
        node.gather = lambda: lie(gather())
    for t in range(n_rounds):
        for name, agent in agents.items():
            x = rng.uniform(size=2)
            y, noise = float(np.sin(5 * x[0]) * x[1]), 0.1 * rng.standard_normal()
            if agent.ready:
                if name not in ("eve", "fay") and t >= n_rounds - 40:
                    errors.append((agent.predict(x) - y) ** 2)
                agent.learn(x, y + noise)
            else:
                agent.remind()
        carry(agents)
    return agents, float(np.mean(errors))


@pytest.fixture(scope="module")
def calm():
    return play()[1]


@pytest.mark.parametrize(
    ("lie", "why"),
    [
        (negative, "negative information"),
        (dense, "more information than samples have"),
        (residual, "residuals beyond their squares"),
        (reversed_, "residuals beyond their squares"),
        (exact, "residuals beyond their squares"),
        (bent, "a step more bent than information allows"),
        (pulled, "a pull without doubt"),
    ],
)
def test_sums_that_no_samples_have_are_refused_and_do_not_spoil_what_others_learn(lie, why, reasons, calm):
    agents, error = play(lie)
    assert why in reasons
    blamed = [agents[name].edges["hub"] for name in ("ann", "ben", "gus")]
    assert agents["hub"].counters["refusals"]["too large"] >= 1 and blamed == ["live"] * 3
    assert error < 15 * calm


def hopeless(total):
    return total._replace(square=1e30)


def test_errors_that_own_labels_make_incredible_do_not_round_what_others_learn_to_nothing(calm):
    assert play(hopeless)[1] < 2 * calm


def test_what_is_forgotten_cannot_be_many_samples(reasons):
    play(more_samples, n_rounds=60, learner=lc.WaveRLS(forgetting=0.9))
    assert "more samples than are remembered" in reasons


# Honest sums ---------------------------------------------------------------------------------------------------------


def streams(n_rounds, n_agents, outputs=1):
    """Each agent sees a corner of its own, that moves; of the first, labels are a hundred times larger."""
    rng = np.random.default_rng(3)
    X = 0.3 * rng.uniform(size=(n_rounds, n_agents, 2)) + np.linspace(0, 1, n_agents)[:, None]
    X += np.linspace(0, 2, n_rounds)[:, None, None]
    y = np.sin(5 * X[..., 0]) * X[..., 1] + 0.1 * rng.standard_normal((n_rounds, n_agents))
    y[:, 0] *= 100
    y[rng.uniform(size=y.shape) < 0.2] = np.nan
    return X, y if outputs == 1 else np.stack([(k + 1.0) * y for k in range(outputs)], axis=-1)


@pytest.mark.parametrize(
    "learner",
    [
        lc.WaveRLS(),
        lc.WaveRLS(forgetting=0.9),
        lc.WaveRLS(outputs=3),
        lc.WaveRLS(first=30, most=4),
        lc.WaveRLS(kappa=0.2, delta=2.0),
        lc.WaveRLS(floor=0.0, ridge=1e-6),
        lc.Personal(),
    ],
    ids=repr,
)
@pytest.mark.parametrize("clock", ["lockstep", "slotted"])
def test_sums_of_samples_are_never_refused(learner, clock, reasons):
    network = lc.Network.random(7, 0.3, seed=2)
    X, y = streams(90, 7, learner.outputs)
    virtual = VirtualNetwork(learner, FEATURES, network, X, y, faults=[Drop(0.5, 6.0, 0.3)], clock=clock)
    virtual.run(80)
    assert len(reasons) > 10 and not any(reasons)


def test_labels_of_any_size_make_sums_that_can_be(reasons):
    network = lc.Network.path(5)
    X, y = streams(60, 5)
    for size in (1e-30, 1e-9, 1e9):
        VirtualNetwork(lc.WaveRLS(), FEATURES, network, X, size * y).run(50)
    assert len(reasons) > 30 and not any(reasons)


def test_sums_that_cannot_be_and_came_before_their_time_are_refused_and_raise_nothing():
    agents = make_team(lc.WaveRLS(), FEATURES, ["ann-ben"], clock="lockstep")
    waves = {name: agent._ledger for name, agent in agents.items()}
    rng, kept = np.random.default_rng(0), 0
    for _ in range(40):
        for agent in agents.values():
            x = rng.uniform(size=2)
            agent.learn(x, float(x[0]))
        carry(agents)
        for name, ledger in waves.items():
            node = ledger.node
            child = next(other for other in agents if other != name)
            # Not when the child says something itself, which would take its place.
            if (
                node.place.children
                and not kept
                and not any(isinstance(part, Up) for part in ledger.inbox.get(child, ()))
            ):
                false = waves[child].node.gather()._replace(information=-50 * np.eye(20))
                said = waves[child].node._coded((0,), node.wave, false, np.zeros((20, 20)), 1.0)[0]
                ledger.early[child] = Up(node.wave, node.standing.digest, ledger.tree, 0, said.data)
                kept, victim = 1, agents[name]
    assert victim.counters["refusals"]["too large"] == 1
