"""Nodes: what must be shared is equal to the bit and made of bytes alone; what is learned is what a centre knows."""

import numpy as np
import pytest
from waves_kit import Run, make_stream

import laconic as lc
from laconic.waves import Arithmetic, Common, Rule, places
from laconic.waves.message import decode, on_grid
from laconic.waves.rule import Fineness
from laconic.waves.terms import Spectrum, describe, matrix_of

GRAPHS = {
    "path": lc.Network.path(7),
    "star": lc.Network.star(6),
    "random": lc.Network.random(9, p=0.3, seed=1),
    "deep": lc.Network.path(24),  # twelve deep: with fronts
}


@pytest.mark.parametrize("network", GRAPHS.values(), ids=GRAPHS)
def test_what_everybody_knows_is_equal_to_the_bit(network, features):
    run = Run(Rule(), network, features)
    X, y = make_stream(150, network.n_agents)
    compared = 0
    for x, label in zip(X, y, strict=True):
        run.round(x, label)
        if len({node.wave for node in run.nodes}) == 1 and not run.mail:
            compared += 1
            first = run.nodes[0].common
            for node in run.nodes[1:]:
                assert node.common is not first
                for name, part in node.common.parts().items():
                    assert np.array_equal(part, first.parts()[name]), name
            for node in run.nodes:
                for child, link in node.links.items():
                    assert link.n == run.nodes[child].link.n
                    assert np.array_equal(link.information, run.nodes[child].link.information)
    assert compared > 25 and run.nodes[0].wave > 5


def test_common_state_is_made_of_bytes_alone(features):
    """Somebody who has only heard the messages down, and knows the rule, knows C, theta, d and e."""
    network, rule = GRAPHS["random"], Rule(kappa=0.5, growth=1.3)
    run = Run(rule, network, features)
    X, y = make_stream(120, network.n_agents)
    root = next(place.agent for place in places(network) if place.parent is None)
    listener = Common.first(rule, Arithmetic(), features.n_features)
    for x, label in zip(X, y, strict=True):
        for sender, message in run.round(x, label):
            if sender == root:
                listener = listener.after(message.data).common
    for name, part in listener.parts().items():
        assert np.array_equal(part, run.nodes[root].common.parts()[name])
    assert np.abs(listener.theta).max() > 0


@pytest.mark.parametrize("network", GRAPHS.values(), ids=GRAPHS)
def test_fine_messages_leave_everybody_with_the_centres_model(network, features):
    """With hardly anything left out, theta is the ridge solution over all that was carried."""
    rule = Rule(kappa=1e-4, nu=0.01, delta=1e-4, most=500, floor=0.0)
    run = Run(rule, network, features)
    X, y = make_stream(150, network.n_agents)
    taken = np.zeros(network.n_agents, dtype=int)
    for t, (x, label) in enumerate(zip(X, y, strict=True), 1):
        for sender, message in run.round(x, label):
            place = run.nodes[sender].place
            if place.parent is None or message.to == (place.parent,):
                taken[sender] = t  # its snapshot
            if place.parent is None:
                decided = taken.copy()
    phi = features(X)
    root = next(node for node in run.nodes if node.place.parent is None)
    ridge = root.common.thin * rule.ridge * np.eye(features.n_features)
    H, r = ridge.copy(), np.zeros(features.n_features)
    for agent, n in enumerate(decided):
        H += phi[:n, agent].T @ phi[:n, agent]
        r += phi[:n, agent].T @ y[:n, agent]
    assert len({tuple(node.common.theta) for node in run.nodes}) <= 2
    np.testing.assert_allclose(phi[:, 0] @ root.common.theta, phi[:, 0] @ np.linalg.solve(H, r), atol=2e-4)
    np.testing.assert_allclose(root.common.information, (H - ridge) / decided.sum(), atol=1e-4)


def test_one_agent_alone_is_plain_least_squares(features):
    X, y = make_stream(80, 1)
    y[[3, 40]] = np.nan
    run = Run(Rule(ridge=0.1, forgetting=0.98), lc.Network.from_edges(1, []), features)
    said = [message for x, label in zip(X, y, strict=True) for message in run.round(x, label)]
    assert said == []
    exact = lc.offline.recursive_least_squares(features, X, y, centralised=False, regularization=0.1, forgetting=0.98)
    np.testing.assert_allclose(run.predictions, exact, rtol=1e-8, atol=1e-10)


def test_no_sample_is_lost_or_counted_twice(features):
    network = GRAPHS["random"]
    X, y = make_stream(90, network.n_agents)
    y[np.random.default_rng(1).uniform(size=y.shape) < 0.3] = np.nan
    run = Run(Rule(), network, features)
    root = next(node for node in run.nodes if node.place.parent is None)
    decisions = 0
    for t, (x, label) in enumerate(zip(X, y, strict=True), 1):
        wave, start = root.wave, root.start
        for sender, message in run.round(x, label):
            if sender == root.place.agent:
                said, _ = decode(message.data, features.n_features, down=True)
                taken = [start + root.place.height - node.place.depth for node in run.nodes]
                counts = [np.isfinite(y[:n, i]).sum() for i, n in enumerate(taken)]
                assert said.n == sum(counts) and root.wave == wave + 1 and t == start + root.place.height
                decisions += 1
    assert decisions == root.wave - 1 > 5


def test_descriptions_leave_out_what_is_small():
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((30, 30)))[0]
    values = np.array([9.0, -5.0, 3.0, 1.2, -0.9, 0.7] + [0.01] * 24)
    matrix = (basis * values) @ basis.T
    spectrum = Spectrum(matrix)
    terms = describe(spectrum, 1.0, Fineness(0.1), 40)
    rest = matrix - sum(matrix_of(term) for term in terms)
    assert np.abs(np.linalg.eigvalsh(rest)).max() <= 1.0
    assert [term.sign for term in terms[:3]] == [1, -1, 1] and len(terms) == 4
    assert len(describe(spectrum, 1e-9, Fineness(0.1), 5)) == 5
    assert describe(spectrum, 10.0, Fineness(0.1), 40) == []
    for term in terms:
        assert np.abs(term.codes).max() * on_grid(term.step) < 3.1


def test_shared_arithmetic_is_right():
    rng = np.random.default_rng(0)
    arithmetic, half = Arithmetic(), rng.standard_normal((20, 20))
    matrix = half @ half.T + 0.1 * np.eye(20)
    lower, raised = arithmetic.cholesky(matrix, 1e-3)
    assert not raised
    np.testing.assert_allclose(lower, np.linalg.cholesky(matrix), rtol=1e-9, atol=1e-12)
    codes = rng.integers(-9, 9, 20)
    np.testing.assert_allclose(arithmetic.spread(lower, 120, codes), lower @ (codes * 0.25), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(arithmetic.back(lower, 120, codes), np.linalg.solve(lower.T, codes * 0.25), rtol=1e-8)
    assert arithmetic.square(120, codes) == pytest.approx(((codes * 0.25) ** 2).sum())
    # A pivot that is too small is raised, and what follows is built on it.
    low, raised = arithmetic.cholesky(np.diag([4.0, -1.0, 9.0]), 0.25)
    assert raised and np.array_equal(np.diag(low), [2.0, 0.5, 3.0])


def test_messages_of_strangers_and_of_other_waves_change_nothing(features):
    run = Run(Rule(), GRAPHS["path"], features)
    X, y = make_stream(30, 7)
    kept = []
    for x, label in zip(X, y, strict=True):
        kept += run.round(x, label)
    node = run.nodes[2]
    sender, message = next((s, m) for s, m in kept if m.to == (2,))
    before = {name: part.copy() for name, part in node.common.parts().items()}
    assert not node.receive(sender, message.data)
    for name, part in node.common.parts().items():
        assert np.array_equal(part, before[name])
    with pytest.raises(ValueError, match="no neighbour 6"):
        node.receive(6, message.data)
    with pytest.raises(ValueError, match="message"):
        node.receive(sender, message.data[:1])
    now = (node.wave << 1).to_bytes(2, "big")
    with pytest.raises(ValueError, match="message"):
        node.receive(sender, now + message.data[2:-3])
    assert np.array_equal(node.common.information, before["information"])
