"""Losses against finite differences and brute force."""

import numpy as np
import pytest
from probes import loss_of
from scipy.optimize import brentq, minimize_scalar

from laconic import losses

NAMES = ("squared", "logistic", "hinge")


@pytest.mark.parametrize("name", NAMES)
def test_slope_is_the_derivative_of_the_value(name):
    loss = losses.get(name)
    rng = np.random.default_rng(0)
    margin, label = rng.normal(scale=3, size=500), rng.choice([-1.0, 1.0], size=500)
    step = 1e-6
    numeric = (loss.value(margin + step, label) - loss.value(margin - step, label)) / (2 * step)
    smooth = np.abs(1 - label * margin) > 1e-3 if name == "hinge" else np.full(500, True)
    np.testing.assert_allclose(loss.slope(margin, label)[smooth], numeric[smooth], atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_prox_solves_the_exact_step(name):
    loss = losses.get(name)
    rng = np.random.default_rng(1)
    for _ in range(200):
        a, c, y = rng.normal(scale=4), rng.uniform(0.05, 8), rng.choice([-1.0, 1.0])
        s = float(loss.prox(np.array([a]), np.array([c]), np.array([y]))[0])
        # theta = (v - s phi)/c with a = phi.v; along phi the objective is l(m) + c m^2/2 - a m.
        best = minimize_scalar(
            lambda m, a=a, c=c, y=y: float(loss.value(m, y)) + c * m**2 / 2 - a * m,
            bounds=(-200, 200),
            method="bounded",
            options={"xatol": 1e-10},
        ).x
        assert abs((a - s) / c - best) < 1e-5
        value, slope, prox = loss_of(name, best, y, a, c)
        assert prox == pytest.approx(s, rel=1e-13, abs=1e-15)
        assert value == pytest.approx(float(loss.value(best, y)), rel=1e-13)
        assert slope == pytest.approx(float(loss.slope(np.array([best]), np.array([y]))[0]), rel=1e-13)


@pytest.mark.parametrize("c", [1e-3, 0.3, 2.0, 50.0])
@pytest.mark.parametrize("a", [-300.0, -3.0, 0.0, 0.7, 40.0, 1e4])
def test_logistic_prox_is_right_to_machine_precision(a, c):
    y = 1.0
    s = float(losses.get("logistic").prox(np.array([a]), np.array([c]), np.array([y]))[0])
    root = brentq(
        lambda u: c * u - y * a - 1 / (1 + np.exp(min(u, 700.0))), a / c - 1, (a + 1) / c + 1, xtol=1e-15, rtol=1e-15
    )
    expected = -y / (1 + np.exp(min(root, 700.0)))
    assert s == pytest.approx(expected, rel=1e-11, abs=1e-15)
    assert abs(c * (a - s) / c + s - a) <= 1e-15 * max(1, abs(a))


@pytest.mark.parametrize("name", NAMES)
def test_the_default_prox_of_an_own_loss_agrees_with_the_closed_forms(name):
    loss = losses.get(name)
    rng = np.random.default_rng(2)
    a, c = rng.normal(scale=3, size=200), rng.uniform(0.1, 5, size=200)
    y = rng.choice([-1.0, 1.0, np.nan], size=200)
    np.testing.assert_allclose(losses.Loss.prox(loss, a, c, y), loss.prox(a, c, y), atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_label_pulls_nowhere(name):
    loss = losses.get(name)
    missing = np.array([np.nan])
    assert loss.slope(np.array([3.0]), missing) == 0
    assert loss.prox(np.array([3.0]), np.array([2.0]), missing) == 0
    assert np.isnan(loss.value(np.array([3.0]), missing))
    assert loss_of(name, 1.0, np.nan, 3.0, 2.0)[1:] == (0, 0)


def test_hinge_is_flat_at_and_beyond_the_margin():
    loss = losses.get("hinge")
    assert loss.slope(np.array([1.0, 1.5, 0.999, -1.0]), np.array([1.0, 1.0, 1.0, -1.0])).tolist() == [0, 0, -1, 0]


def test_logistic_does_not_overflow():
    loss = losses.get("logistic")
    margin = np.array([-1e6, 1e6])
    assert loss.value(margin, np.array([1.0, 1.0])).tolist() == [1e6, 0.0]
    assert loss.slope(margin, np.array([1.0, 1.0])).tolist() == [-1.0, 0.0]
    assert loss_of("logistic", -1e6, 1.0, 0.0, 1.0)[:2] == (1e6, -1.0)


def test_an_unknown_loss_is_named():
    with pytest.raises(ValueError, match="loss must be one of 'squared', 'logistic', 'hinge'"):
        losses.get("absolute")
