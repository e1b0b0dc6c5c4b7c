"""Recursive least squares in the core, beside their specification in NumPy, and the same bits in any company."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from wave_block import Block, differing, lower

from laconic.engine.endings import DIVERGED, FINISHED
from laconic.losses import LOSSES
from laconic.native import waves
from laconic.native.arrays import aligned
from laconic.waves.arithmetic import Arithmetic
from laconic.waves.arms import PersonalOwn
from laconic.waves.own import Own, Probe
from laconic.waves.rule import ArmNumbers, Rule

KERNELS = {"squared": 0, "logistic": 1, "squared-hinge": 3}
SHAPES = [(1, 3), (3, 2), (20, 7), (41, 3), (100, 2)]


def own_parts(block, rule, kind=Own):
    """The agents of the specification."""
    return [kind(rule, Arithmetic(), block.n_features) for _ in range(block.n_agents)]


def learn(owns, block, t):
    """Round t of the specification; returns the predictions."""
    n, rows = block.n_features, block.phi.reshape(block.n_rounds, block.n_agents, -1)
    labels = block.labels[t] if block.outputs > 1 else block.labels[t, :, 0]
    return [own.learn(rows[t, i, :n], labels[i]) for i, own in enumerate(owns)]


@pytest.mark.parametrize("forgetting", [1.0, 0.97])
@pytest.mark.parametrize(("loss", "outputs"), [("squared", 1), ("squared", 3), ("logistic", 1), ("squared-hinge", 1)])
@pytest.mark.parametrize(("n_features", "n_agents"), SHAPES)
def test_rounds_are_those_of_the_specification(n_features, n_agents, loss, outputs, forgetting):
    block = Block(70, n_agents, n_features, outputs)
    if LOSSES[loss].binary:
        block.labels[:] = np.sign(block.labels)
    rule = Rule(ridge=block.ridge, loss=LOSSES[loss], outputs=outputs, forgetting=forgetting)
    owns, close = own_parts(block, rule), {"rtol": 1e-6, "atol": 1e-8}
    rounds = block.rounds(KERNELS[loss], forgetting)
    assert rounds.advance(0, 70) == (FINISHED, 70 * n_agents)
    assert rounds.largest == max(1.0, np.nanmax(np.abs(block.labels)))
    n = n_features
    for t in range(70):
        before = np.array([own.weights for own in owns]).reshape(n_agents, outputs, n)
        np.testing.assert_allclose(block.predictions[t], np.reshape(learn(owns, block, t), (-1, outputs)), **close)
        phi = block.phi[t * n_agents : (t + 1) * n_agents, :n]
        errors = np.einsum("ikd,jd->ijk", before, phi) - block.labels[t]
        with np.errstate(invalid="ignore"):
            squares = np.nansum(errors**2, axis=(1, 2)) / (~np.isnan(block.labels[t])).sum()
        np.testing.assert_allclose(block.scores[0, t], squares, rtol=1e-5)
        models = np.array([own.weights for own in owns]).reshape(n_agents, outputs, n)
        apart = np.linalg.norm(models - models.mean(axis=0))
        off = np.linalg.norm(models - block.theta[:, :n].reshape(models.shape))
        np.testing.assert_allclose(block.found[t], [apart, (models**2).sum(), off], **close)
    block.settle()
    for i, own in enumerate(owns):
        np.testing.assert_allclose(lower(block.matrix(i)), own.spread, **close)


@pytest.mark.parametrize("forgetting", [1.0, 0.99])
@pytest.mark.parametrize(("n_features", "n_agents"), SHAPES)
def test_arms_are_those_of_the_specification(n_features, n_agents, forgetting):
    block = Block(80, n_agents, n_features).with_arms()
    block.targets = block.labels
    numbers = ArmNumbers(deviations=None)
    rule = Rule(ridge=block.ridge, forgetting=forgetting, arms=numbers)
    owns = own_parts(block, rule, PersonalOwn)
    rounds = block.rounds(0, forgetting)
    assert rounds.advance(0, 50) == (FINISHED, 50 * n_agents)
    assert rounds.advance(50, 80) == (FINISHED, 80 * n_agents)
    close = {"rtol": 1e-5, "atol": 1e-7}
    for t in range(80):
        np.testing.assert_allclose(block.stacks[t], [own.stack.weights for own in owns], **close)
        np.testing.assert_allclose(block.predictions[t, :, 0], learn(owns, block, t), **close)
    n, size, arms = n_features, block.size, block.arms
    for i, own in enumerate(owns):
        rounds.settle(i)
        np.testing.assert_allclose(arms.models[i, :n], own.model, **close)
        kept = np.array([*arms.pair[2 * i : 2 * i + 2], arms.recent[i], arms.quick[i]])[:, :n]
        np.testing.assert_allclose(kept, own.arms, **close)
        for matrices, index, made in zip(
            (arms.pair_spread, arms.pair_spread, arms.recent_spread), (2 * i, 2 * i + 1, i), own.spreads, strict=True
        ):
            np.testing.assert_allclose(lower(matrices[index * size : index * size + n, :n]), made, **close)
        assert arms.turns[i] == np.count_nonzero(~np.isnan(block.labels[:, i])) % n


@pytest.mark.parametrize("armed", [False, True])
@pytest.mark.parametrize("forgetting", [1.0, 0.98])
def test_blocks_and_groups_have_the_same_bits(armed, forgetting):
    def run(block, group):
        made = Block(67, 7, 22)
        rounds = (made.with_arms() if armed else made).rounds(0, forgetting, block, group)
        if armed:
            rounds.put(scored=np.empty((block * 7, made.size)))
        assert rounds.advance(0, 67) == (FINISHED, 67 * 7)
        return made

    one = run(1, 1)
    for block, group in ((1, 7), (2, 3), (9, 1), (32, 2), (67, 7), (100, 100)):
        assert not differing(one, run(block, group))


@pytest.mark.parametrize("armed", [False, True])
def test_threads_share_agents_and_rounds(armed):
    n_rounds, n_agents, step, core = 50, 9, 8, waves.core()
    one, shared = (Block(n_rounds, n_agents, 30) for _ in range(2))
    for block in (one, shared):
        if armed:
            block.with_arms()
    assert one.rounds().advance(0, n_rounds) == (FINISHED, n_rounds * n_agents)
    rounds, pool = shared.rounds(), ThreadPoolExecutor(2)
    at, gains = rounds.address, [aligned(1, 30, float) for _ in range(2)]
    room = [waves.address(gain) for gain in gains]
    for start in range(0, n_rounds, step):
        stop = min(start + step, n_rounds)
        core.open_block(at, start, stop)
        core.enter_block(at, start)
        rows = [*pool.map(lambda part: core.learn_block(at, *part), [(0, 4, room[0]), (4, n_agents, room[1])])]
        assert min(rows) == stop * n_agents
        middle = (start + stop) // 2
        ends = [
            *pool.map(lambda part: core.measure_block(at, *part), [(start, middle, room[0]), (middle, stop, room[1])])
        ]
        assert ends == [middle, stop]
        assert core.close_block(at, min(rows), ends[1]) == stop * n_agents
    shared.largest[0] = one.largest[0]
    assert not differing(one, shared)


def run_and_reset(made, block, group):
    """Rounds in which an agent whose model is lost gets a new one; returns where that happened."""
    rounds, first, lost, n = made.rounds(0, 1.0, block, group), 0, [], made.n_agents
    while True:
        ending, row = rounds.advance(first, made.n_rounds, resumes=bool(lost))
        if ending == FINISHED:
            made.largest[0] = rounds.largest
            return lost
        t, agent = divmod(row, n)
        assert (t, agent, rounds.spoiled) not in lost
        lost.append((t, agent, rounds.spoiled))
        agents = [agent]
        if rounds.spoiled:
            agents = [i for i in range(n) if not np.isfinite(made.weights[i]).all()]
        for i in agents:
            made.reset(i)
        first = t + 1 if rounds.spoiled else t
        if rounds.spoiled:
            assert rounds.measure_again(t)
            if first == made.n_rounds:
                return lost


@pytest.mark.parametrize("scored", [False, True])
def test_an_agent_that_diverges_goes_on_with_another_model(scored):
    diverging = [(3, 2), (17, 0), (17, 4), (22, 4), (40, 1)]

    def make():
        made = Block(60, 5, 12, scored=scored, missing=0.0)
        for t, agent in diverging:
            made.phi[t * 5 + agent, :12] *= 1e6  # its prediction is beyond all bounds
        for t, agent in ((41, 1), (59, 3)):  # a model that has not learned much becomes infinite
            made.phi[t * 5 + agent, :12] *= 0.1
            made.labels[t, agent] = 1.7e308
        made.labels[:59, 3] = np.nan
        return made

    one = make()
    lost = run_and_reset(one, 1, 1)
    assert [(t, agent) for t, agent, spoiled in lost if not spoiled] == diverging
    assert [t for t, _, spoiled in lost if spoiled] == [41, 59]
    for block, group in ((2, 5), (7, 2), (32, 1), (60, 3)):
        other = make()
        assert run_and_reset(other, block, group) == lost
        one.settle()
        other.settle()
        assert not differing(one, other)


def test_a_run_that_diverges_leaves_the_models_of_that_round():
    whole, part = (Block(40, 4, 10, missing=0.0) for _ in range(2))
    whole.phi[23 * 4 + 1, :10] *= 1e7
    rounds = whole.rounds()
    assert rounds.advance(0, 40) == (DIVERGED, 23 * 4 + 1) and not rounds.spoiled
    assert part.rounds().advance(0, 23) == (FINISHED, 23 * 4)
    assert np.array_equal(whole.weights, part.weights) and np.array_equal(whole.found[:23], part.found[:23])
    assert rounds.largest == max(1.0, np.abs(whole.labels[:23]).max())


def test_one_agent_predicts_with_the_bits_of_its_rounds():
    block = Block(30, 1, 50, 2)
    block.rounds().advance(0, 29)
    predictions = np.empty((1, 1, 2))
    waves.predict(block.phi[29:], block.weights, predictions)
    block.rounds().advance(29, 30)
    assert np.array_equal(predictions[0, 0], block.predictions[29, 0])


@pytest.mark.parametrize("forgetting", [1.0, 0.98])
@pytest.mark.parametrize(("n_features", "outputs"), [(1, 1), (3, 2), (20, 1), (42, 3), (101, 1)])
def test_the_sums_of_data_are_those_of_the_specification(n_features, outputs, forgetting):
    n, n_agents, block = n_features, 3, Block(75, 3, n_features, outputs)
    rng = np.random.default_rng(1)
    theta, direction, change = rng.normal(size=(3, outputs, n))
    rule = Rule(ridge=block.ridge, outputs=outputs, forgetting=forgetting)
    own = Own(rule, Arithmetic(), n)
    block.rounds(0, forgetting).advance(0, 75)
    information, moments, scaled = (aligned(rows, n, float) for rows in (block.size, outputs, 8))
    watched, counts, numbers = aligned(2 * outputs, n, float), np.zeros((outputs, 3)), np.zeros(1 + outputs)
    watched[::2, :n], watched[1::2, :n] = theta, direction
    sums = waves.OwnSums.over(n, information, moments, numbers, scaled, forgetting)
    sums.put(watched=watched, sums=counts)
    samples = waves.Samples.of(step=n_agents, phi=block.phi, squares=block.squares)
    one = outputs == 1
    for t in range(75):
        if t == 20:  # fresh samples from here on
            zero = 0.0 if one else np.zeros(outputs)
            own.watch(theta[0] if one else theta, Probe(direction[0] if one else direction, zero, zero, zero))
        own.learn(block.phi[t * n_agents + 1, :n], block.labels[t, 1, 0] if one else block.labels[t, 1])
    samples.put(first=1, stop=50 * n_agents)
    sums.add(samples)
    made, residual, seen = np.zeros((n, n)), np.empty((outputs, n)), np.empty((outputs, 5))
    samples.put(first=50 * n_agents + 1, stop=75 * n_agents)
    count = sums.report(samples, 20 * n_agents + 1, theta, change, made, residual, seen)
    close = {"rtol": 1e-9, "atol": 1e-9}
    report = own.report(theta[0] if one else theta, change[0] if one else change)
    assert count == pytest.approx(report.n)
    np.testing.assert_allclose(lower(made), report.information, **close)
    np.testing.assert_allclose(residual, report.moments.reshape(outputs, n), **close)
    for k, numbers_of in enumerate((report.energy, report.square, report.bend, report.pull, report.doubt)):
        np.testing.assert_allclose(seen[:, k], np.ravel(numbers_of), **close)
    whole = np.empty((n, n))
    waves.whole(information, whole)
    assert np.array_equal(whole, whole.T) and np.array_equal(np.tril(whole), np.tril(made))
    before = residual.copy()
    sums.look_back(theta, change, residual, seen)
    assert np.array_equal(residual, before)


@pytest.mark.parametrize("forgetting", [1.0, 0.98])
@pytest.mark.parametrize(("n_features", "outputs"), [(1, 1), (3, 2), (20, 1), (42, 3)])
def test_a_wave_is_adopted_and_samples_since_are_learned(n_features, outputs, forgetting):
    n, block, rng = n_features, Block(30, 2, n_features, outputs), np.random.default_rng(2)
    rounds = block.rounds(0, forgetting)
    rounds.advance(0, 30)
    root, models = rng.normal(size=(n, n)), rng.normal(size=(outputs, n))
    spread = root @ root.T + np.eye(n)
    own = Own(Rule(ridge=block.ridge, outputs=outputs, forgetting=forgetting), Arithmetic(), n)
    own.mark()
    for t in range(12, 30):
        own.learn(block.phi[2 * t + 1, :n], block.labels[t, 1, 0] if outputs == 1 else block.labels[t, 1])
    own.adopt(spread, models[0] if outputs == 1 else models)
    rows = slice(outputs, 2 * outputs)
    since = waves.Samples.of(first=12 * 2 + 1, step=2, stop=60, phi=block.phi, squares=block.squares)
    rounds.adopt(1, spread, models, since)
    assert np.array_equal(block.theta[rows, :n], models) and not block.pending[1].any()
    np.testing.assert_allclose(block.weights[rows, :n], own.weights.reshape(outputs, n), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(lower(block.matrix(1)), own.spread, rtol=1e-8, atol=1e-10)


def test_the_ridge_of_many_features_fades_and_the_model_follows():
    """Entry m of the model moves by c/(1 + c P_mm) P_m theta_m where f^D is below 1/1000."""
    block = Block(3, 1, 400, missing=0.0).with_arms()  # 0.98^400 < 1/1000
    block.arms.recent[0, :400] = np.random.default_rng(0).normal(size=400)
    P, w = lower(block.arms.recent_spread[:400, :400]), block.arms.recent[0, :400].copy()
    assert block.rounds().advance(0, 3)[0] == FINISHED
    f, ridge = block.arms.made.forgetting, block.arms.made.ridge
    for t in range(3):
        phi, label = block.phi[t, :400], block.targets[t, 0, 0]
        gain = P @ phi
        scale = f + gain @ phi
        w = w - (w @ phi - label) / scale * gain
        P = (P - np.outer(gain, gain) / scale) / f
        leak = 400 * (1 - f) * ridge
        share = leak / (1 + leak * P[t, t])
        w = w - share * w[t] * P[t]
        P = P - share * np.outer(P[t], P[t])
    np.testing.assert_allclose(block.arms.recent[0, :400], w, rtol=1e-9)
