"""Fronts: both ends of an edge hold the same bits; nothing is counted twice; and they are worth what they cost."""

import numpy as np
import pytest
from waves_kit import Run, make_stream

import laconic as lc
from laconic.engine.wave_arithmetic import CompiledArithmetic
from laconic.waves import Arithmetic, Rule, make_node, places
from laconic.waves.fronts import Fronts, Known
from laconic.waves.message import FRONT, wave_of
from laconic.waves.saving import node_parts, restore_node

SIZE = 12


def growing(n_parts=5, outputs=1, seed=0):
    """Sums of ever more samples."""
    rng = np.random.default_rng(seed)
    S, r, q, n = np.zeros((SIZE, SIZE)), np.zeros((outputs, SIZE)), np.zeros(outputs), 0
    for _ in range(n_parts):
        for _ in range(6):
            phi = rng.standard_normal(SIZE) * np.linspace(1, 0.01, SIZE)
            y = phi[:outputs] + 0.1 * rng.standard_normal(outputs)
            S, r, q, n = S + np.outer(phi, phi), r + np.outer(y, phi), q + y * y, n + 1
        yield Known(float(n), S, r if outputs > 1 else r[0], q if outputs > 1 else float(q[0]))


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("kind", [Arithmetic, CompiledArithmetic])
def test_both_ends_make_the_same_of_the_bytes(kind, outputs):
    """Also where one of them is NumPy's and the other compiled."""
    rule = Rule(outputs=outputs)
    here = Fronts(rule, kind(), SIZE)
    there = [Fronts(rule, other(), SIZE) for other in (Arithmetic, CompiledArithmetic)]
    lengths = []
    for known in growing(outputs=outputs):
        data, bits = here.arithmetic.encode(here.say(7, known))
        lengths.append(bits)
        for fronts in there:
            said, _ = fronts.arithmetic.decode(bytes(data), SIZE, down=False, outputs=outputs)
            assert fronts.hear(3, said)
            for mine, theirs in zip(here.told[7], fronts.heard[3], strict=True):
                assert np.array_equal(mine, theirs)
    assert lengths[-1] < lengths[0]  # what both know is not said again


def test_the_model_arrives_however_coarse_the_matrix_is():
    here, there = (Fronts(Rule(), Arithmetic(), SIZE) for _ in range(2))
    for known in growing():
        there.hear(0, here.say(1, known))
        front, H = there.heard[0], known.matrix(here.rule)
        told = front.known(here.rule)
        solved = np.linalg.solve(told.matrix(here.rule), told.moments)
        np.testing.assert_allclose(solved, front.model, rtol=1e-8, atol=1e-10)
        # Every entry is rounded by half a step at the most; of the matrix no direction counts for much more than twice.
        error = np.linalg.solve(H, known.moments) - solved
        assert error @ told.matrix(here.rule) @ error <= SIZE * here.rule.delta**2 * known.square / known.n / 4
        most = 2.5 * known.information + 2.0 * here.rule.thick(known.n) * np.eye(SIZE)
        assert np.linalg.eigvalsh(most - front.information)[0] > 0


def test_what_builds_on_something_else_is_not_taken():
    here, there = (Fronts(Rule(), Arithmetic(), SIZE) for _ in range(2))
    first, second, third, _, _ = (here.say(1, known) for known in growing())
    assert not there.hear(0, second) and not there.heard
    assert there.hear(0, first) and not there.hear(0, third) and there.hear(0, second) and there.hear(0, third)
    there.forget(0)
    assert not there.hear(0, third)
    here.forget(1)
    assert there.hear(0, here.say(1, next(growing())))
    assert here.say(1, Known(0.0, np.zeros((SIZE, SIZE)), np.zeros(SIZE), 0.0)) is None


def test_nothing_is_counted_twice_and_nothing_comes_too_early():
    """Every agent's samples have a direction of their own, so that the matrix tells whose are known."""
    n = 25
    rule = Rule(kappa=1e-9, nu=1e-4, delta=1e-6, most=500, floor=0.0)
    nodes = [make_node(rule, place, n) for place in places(lc.Network.path(n))]
    assert nodes[0].place.height == 12
    mail = []
    for t in range(1, 13):
        for i, node in enumerate(nodes):
            node.learn(np.eye(n)[i], float(i))
        for sender, message in mail:
            for i in message.to:
                assert nodes[i].receive(sender, message.data)
        mail = [(i, message) for i, node in enumerate(nodes) for message in node.tick(t)]
        for i, node in enumerate(nodes):
            whose = np.diag(node._heard_of().information)
            latest = np.maximum(0, t - np.abs(np.arange(n) - i))
            assert (whose < latest + 0.01).all() and np.abs(whose - np.rint(whose)).max() < 0.01
            assert whose.sum() == pytest.approx(node._heard_of().n, abs=0.01)
    farthest = [np.flatnonzero(np.diag(node._heard_of().information) > 0.5) - i for i, node in enumerate(nodes)]
    assert min(reach.max() - reach.min() for reach in farthest) >= 6


def test_only_deep_trees_have_them(features):
    for network, some in ((lc.Network.path(19), False), (lc.Network.path(21), True)):
        run = Run(Rule(), network, features)
        X, y = make_stream(30, network.n_agents)
        said = [wave_of(m.data) == FRONT for x, label in zip(X, y, strict=True) for _, m in run.round(x, label)]
        assert any(said) == some
    shallow = make_node(Rule(), places(lc.Network.path(3))[0], SIZE)
    front = Fronts(Rule(), Arithmetic(), SIZE).say(0, next(growing()))
    assert not shallow.receive(1, shallow.arithmetic.encode(front)[0])
    with pytest.raises(ValueError, match="no neighbour 2"):
        shallow.receive(2, shallow.arithmetic.encode(front)[0])


def test_schedule():
    """A front moves one hop a round; there are three of them on the way at once, and one passes over at the root."""
    rule = Rule(first=4)
    for height in (10, 12, 50):
        apart = height // 3
        for t in range(1, 40):
            for depth in range(height):
                here, there = rule.fronts(t, depth, height), rule.fronts(t + 1, depth + 1, height)
                assert t < 4 or here[0] == there[0]
                assert t < 4 or rule.fronts(t, depth + 1, height)[1] == rule.fronts(t + 1, depth, height)[1]
                assert here[0] == (t >= 4 and (t - 4 - depth) % apart == 0)
            assert rule.fronts(t, 0, height) in ((True, True), (False, False))


def test_they_are_worth_their_bits(features):
    """Where every agent sees a band of labels of its own, before the first wave has come."""
    network, n, n_rounds = lc.Network.path(40), 40, 20
    X, y = make_stream(n_rounds, n)
    order = np.argsort(y.ravel()).reshape(n, n_rounds).T
    order = np.random.default_rng(0).permuted(order, axis=0)
    X, y = X.reshape(-1, 3)[order], y.ravel()[order]
    errors = []
    for learner in (lc.WaveRLS(), lc.WaveRLS(first=500)):  # the second never speaks
        trace = lc.simulate(learner, features, network, X, y, collective=True)
        errors.append(np.diff(trace.global_mse() * np.arange(1, n_rounds + 1), prepend=0)[12:].mean())
        if learner.rule().first == 1:
            assert trace.bits.sum() / n < 6_000
    assert errors[0] < 0.75 * errors[1]


def test_a_memory_holds_fronts(features):
    run = Run(Rule(), lc.Network.path(24), features)
    X, y = make_stream(7, 24)
    for x, label in zip(X, y, strict=True):
        run.round(x, label)
    node = next(node for node in run.nodes if len(node.fronts.heard) == len(node.fronts.told) == 2)
    twin = make_node(Rule(), node.place, features.n_features)
    restore_node(twin, node_parts(node))
    for mine, theirs in ((node.fronts.heard, twin.fronts.heard), (node.fronts.told, twin.fronts.told)):
        assert list(mine) == list(theirs)
        for other, front in mine.items():
            assert all(np.array_equal(a, b) for a, b in zip(front, theirs[other], strict=True))
