"""Recursive least squares in the core has the bits of the kernels compiled by numba. Goes when they go."""

import copy

import numpy as np
import pytest
from wave_block import Block, differing

from laconic.engine import personal_rounds, wave_rounds, wave_sums
from laconic.engine.endings import FINISHED, SPOILED
from laconic.native import wave_entries
from laconic.native.arrays import aligned

SHAPES = [(1, 3, 1), (3, 2, 1), (20, 7, 1), (22, 3, 1), (100, 4, 1), (50, 3, 2), (101, 2, 3), (201, 2, 1), (200, 2, 1)]


def both(*options, armed=False, **more):
    made = Block(*options, **more)
    if armed:
        made.with_arms()
    other = copy.deepcopy(made)
    other.targets = other.labels if not armed else other.targets
    return made, other


def quiet(module, block, first, stop, loss=0, forgetting=1.0):
    return module.quiet_rounds(
        block.phi, block.labels, first, stop, loss, forgetting, block.weights, block.spread, block.theta, block.gain,
        block.largest, block.predictions, block.squares, block.found, block.scores, block.pending,
    )  # fmt: skip


@pytest.mark.parametrize("forgetting", [1.0, 0.97])
@pytest.mark.parametrize(("n_features", "n_agents", "outputs"), SHAPES)
def test_quiet_rounds(n_features, n_agents, outputs, forgetting):
    for loss in (0, 1, 3) if outputs == 1 else (0,):
        ours, theirs = both(70, n_agents, n_features, outputs, scored=n_features != 20)
        for block in (ours, theirs):
            if loss:
                block.labels[:] = np.sign(block.labels)
        for first, stop in ((0, 1), (1, 45), (45, 70)):
            assert quiet(wave_entries, ours, first, stop, loss, forgetting) == (FINISHED, stop * n_agents)
            assert quiet(wave_rounds, theirs, first, stop, loss, forgetting) == (FINISHED, stop * n_agents)
            for block in (ours, theirs):  # with forgetting, numba subtracts at once
                block.settle()
            assert not differing(ours, theirs)


def run_numba_and_reset(made):
    """``run_and_reset`` of the tests that stay, by numba: rounds begin anew where a model was lost."""
    first, n = 0, made.n_agents
    while first < made.n_rounds:
        ending, row = quiet(wave_rounds, made, first, made.n_rounds)
        if ending == FINISHED:
            return
        t, agent = divmod(row, n)
        spoiled = not np.isfinite(made.found[t, 1])
        for i in range(n):
            if not np.isfinite(made.weights[i]).all() if spoiled else i == agent:
                made.reset(i)
        first = t + spoiled
        if spoiled:
            assert wave_rounds.measure(made.weights, 1, made.theta, made.gain, made.found, t)


def test_rounds_go_on_with_another_model():
    from test_rls import run_and_reset

    ours, theirs = both(60, 5, 12, missing=0.0)
    for block in (ours, theirs):
        for t, agent in ((3, 2), (17, 0), (17, 4), (22, 4), (40, 1)):
            block.phi[t * 5 + agent, :12] *= 1e6
        for t, agent in ((41, 1), (59, 3)):
            block.phi[t * 5 + agent, :12] *= 0.1
            block.labels[t, agent] = 1.7e308
        block.labels[:59, 3] = np.nan
    lost = run_and_reset(ours, 32, 2)
    run_numba_and_reset(theirs)
    assert len(lost) == 7
    ours.largest[0] = theirs.largest[0]
    for block in (ours, theirs):
        block.settle()
    assert not differing(ours, theirs)


def personal(module, block, arms, first, stop, forgetting):
    return module.personal_rounds(
        block.phi, block.labels, block.targets, first, stop, 0, forgetting, block.weights, block.spread, arms,
        block.shared, block.adopted, block.theta, block.gain, block.largest, block.predictions, block.squares,
        block.found, block.scores, block.stacks,
    )  # fmt: skip


@pytest.mark.parametrize("forgetting", [1.0, 0.97])
@pytest.mark.parametrize(("n_features", "n_agents"), [(1, 3), (3, 2), (20, 7), (22, 3), (100, 4), (201, 2), (400, 1)])
def test_personal_rounds(n_features, n_agents, forgetting):
    ours, theirs = both(90, n_agents, n_features, armed=True, scored=n_features != 20)
    arms = personal_rounds.Arms(**vars(theirs.arms))
    for first, stop in ((0, 1), (1, 60), (60, 90)):
        shared = theirs.shared.copy()
        assert personal(wave_entries, ours, ours.arms, first, stop, forgetting) == (FINISHED, stop * n_agents)
        assert personal(personal_rounds, theirs, arms, first, stop, forgetting) == (FINISHED, stop * n_agents)
        theirs.shared[:] = shared  # where numba keeps models that it scores
        assert not differing(ours, theirs)
    for block in (ours, theirs):
        block.weights += 0.5
    wave_entries.mix_arms(ours.arms, ours.weights)
    personal_rounds.mix_arms(arms, theirs.weights)
    assert not differing(ours, theirs)


def test_errors_whose_squares_are_infinite():
    ours, theirs = both(2, 3, 12, armed=True, missing=0.0, ridge=1e-300)
    for block in (ours, theirs):
        block.labels *= 1e300
        block.targets = block.labels
    arms = personal_rounds.Arms(**vars(theirs.arms))
    ended = personal(wave_entries, ours, ours.arms, 0, 1, 1.0)
    assert ended == personal(personal_rounds, theirs, arms, 0, 1, 1.0) == (SPOILED, 0)
    assert not differing(ours, theirs)


@pytest.mark.parametrize("forgetting", [1.0, 0.98])
@pytest.mark.parametrize(("n_features", "outputs"), [(1, 1), (3, 2), (20, 1), (22, 1), (100, 3), (50, 1), (201, 1)])
def test_sums(n_features, outputs, forgetting):
    n, block = n_features, Block(75, 3, n_features, outputs)
    block.rounds(0, forgetting).advance(0, 75)
    rng = np.random.default_rng(0)
    theta, change = rng.normal(size=(2, outputs, n))
    start = rng.normal(size=(2 * outputs, n))
    found = []
    for module in (wave_entries, wave_sums):
        information, scaled = aligned(block.size, n, float), aligned(32, n, float)
        moments, watched = aligned(outputs, n, float), aligned(2 * outputs, n, float)
        numbers, sums, whole, made = np.zeros(1 + outputs), np.ones((outputs, 3)), np.zeros((n, n)), np.zeros((n, n))
        residual, other, seen, report = (np.zeros((outputs, k)) for k in (n, n, 2, 5))
        watched[:, :n] = start
        data = information, moments, numbers
        samples = block.phi, 1, 3, 3 * 60, block.squares
        module.add_samples(*data, *samples, forgetting, scaled)
        module.watch(*samples, watched, sums)
        module.look_back(*data, theta, change, residual, seen)
        count = module.report(
            *data, block.phi, 181, 154, 3, 225, block.squares, forgetting, scaled, watched, sums, theta, change, made,
            other, report,
        )  # fmt: skip
        module.whole(information, whole)
        found.append([*data, sums, residual, seen, np.array(count), other, report, whole, np.tril(made)])
    assert all(np.array_equal(one, two) for one, two in zip(*found, strict=True))


@pytest.mark.parametrize("forgetting", [1.0, 0.98])
@pytest.mark.parametrize(("n_features", "outputs"), [(1, 1), (3, 2), (20, 1), (102, 2)])
def test_adoption(n_features, outputs, forgetting):
    ours, theirs = both(30, 2, n_features, outputs)
    rng = np.random.default_rng(0)
    root, models = rng.normal(size=(n_features, n_features)), rng.normal(size=(outputs, n_features))
    predictions = np.empty((2, 1, 1, outputs))
    for module, block in ((wave_entries, ours), (wave_rounds, theirs)):
        quiet(module, block, 0, 30, 0, forgetting)
        samples = block.phi, 21, 2, 60, block.squares, forgetting, block.gain
        module.adopt(
            root @ root.T, models, block.spread, block.pending, block.weights, block.theta, 1, *samples
        )  # fmt: skip
        block.settle()
        module.replay(block.spread, block.weights, 0, block.phi, 20, *samples[2:])
        module.finish(block.spread, block.pending, 0)
        assert module.measure(block.weights, outputs, block.theta, block.gain, block.found, 29)
        module.predict(block.phi, block.weights[:outputs], predictions[int(block is ours)])
    assert not differing(ours, theirs)
    assert np.array_equal(ours.theta, theirs.theta) and np.array_equal(*predictions)
