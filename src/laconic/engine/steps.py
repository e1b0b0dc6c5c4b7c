"""What each learner and each loss does to one row, and the ladder that picks it: a new one is a function and a rung.

``LOSSES`` and ``STEPS`` number them by the names that losses and learners declare as their ``kernel``. The simulator
and a running agent climb the same ladder, so they compute the same bits.
"""

from __future__ import annotations

import math

from laconic.engine.abreast import disagree_row
from laconic.engine.robust import clip_disagreement, clip_duals, clip_mixture, weigh_row
from laconic.engine.rows import add_row, clear_row, dot_row, mix_row, mix_spoken_row
from laconic.engine.vectors import counted, ladder, lean, load, splat, store, width_of

SQUARED, LOGISTIC, HINGE, SQUARED_HINGE = range(4)
LOSSES = {"squared": SQUARED, "logistic": LOGISTIC, "hinge": HINGE, "squared-hinge": SQUARED_HINGE}

LINEARIZED, PROXIMAL, COMBINE_THEN_ADAPT, ADAPT_THEN_COMBINE, LOCAL, EXPERTS = range(6)
STEPS = {
    "linearized": LINEARIZED,
    "proximal": PROXIMAL,
    "combine-then-adapt": COMBINE_THEN_ADAPT,
    "adapt-then-combine": ADAPT_THEN_COMBINE,
    "local": LOCAL,
    "experts": EXPERTS,  # in ``voting``
}


# --------------------------------------------------------------------------------------------------------------------
# Losses: the slope l'(m, y), and the slope at the solution of c m + l'(m) = a
# --------------------------------------------------------------------------------------------------------------------


@lean
def slope_of(loss, margin, label):
    """Derivative of the loss in the prediction; a missing label (NaN) pulls nowhere."""
    if math.isnan(label):
        return 0.0
    if loss == SQUARED:
        return 2.0 * (margin - label)
    if loss == LOGISTIC:
        return -label / (1.0 + math.exp(label * margin))
    if loss == SQUARED_HINGE:
        return -2.0 * label * max(0.0, 1.0 - label * margin)
    return -label if label * margin < 1.0 else 0.0


@lean
def value_of(loss, margin, label):
    """The loss itself; NaN where the label is missing."""
    if loss == SQUARED:
        return (margin - label) ** 2
    if loss == LOGISTIC:
        return max(0.0, -label * margin) + math.log1p(math.exp(-abs(label * margin)))
    if loss == SQUARED_HINGE:
        return max(0.0, 1.0 - label * margin) ** 2
    return max(0.0, 1.0 - label * margin)


@lean
def proximal_slope(loss, a, c, label):
    """``s = l'(m, y)`` where ``m = (a - s) / c``: the scalar that DOKL's exact update comes down to."""
    if math.isnan(label):
        return 0.0
    if loss == SQUARED:
        return 2.0 * (a - c * label) / (c + 2.0)
    if loss == HINGE:
        return label * min(0.0, max(-1.0, label * a - c))
    if loss == SQUARED_HINGE:
        return -2.0 * label * max(0.0, c - label * a) / (c + 2.0)
    # Logistic. With u = y m the equation is c u - y a - 1/(1 + e^u) = 0, increasing in u, its root in [ya/c, (ya+1)/c].
    target = label * a
    low, high = target / c, (target + 1.0) / c
    u = 0.5 * (low + high)
    for _ in range(100):
        p = 1.0 / (1.0 + math.exp(u))
        residual = c * u - target - p
        if residual > 0.0:
            high = u
        else:
            low = u
        newton = u - residual / (c + p * (1.0 - p))
        following = newton if low <= newton <= high else 0.5 * (low + high)
        if abs(following - u) <= 2e-16 * abs(u):
            u = following
            break
        u = following
    return -label / (1.0 + math.exp(u))


# --------------------------------------------------------------------------------------------------------------------
# Learners
# --------------------------------------------------------------------------------------------------------------------


@ladder
def linearized_row(weights, duals, at, disagreement, phi, phi_at, size, slope, shrink, rho, gain):
    """ODKLA: theta <- theta - gain [slope phi + shrink theta + rho g + gamma], gain = 1/(eta + 2 rho d)."""
    slope, shrink, rho, gain = splat(slope), splat(shrink), splat(rho), splat(gain)
    for k in range(0, size, width_of(weights)):
        theta = load(weights, at + k)
        gradient = slope * load(phi, phi_at + k) + shrink * theta
        pull = rho * load(disagreement, k) + load(duals, at + k)
        store(weights, at + k, theta - gain * (gradient + pull))


@lean
def proximal_row(
    weights, duals, broadcast, at, disagreement, phi, phi_at, size, square, label, loss, eta, rho, degree, shrink, v
):
    """DOKL: theta <- (v - s phi)/c with v = eta theta + rho (2 d theta-hat - g) - gamma; ``v`` is room to work in.

    ``square`` is |phi|^2: s = l'(m) where m = (phi.v - s |phi|^2)/c.
    """
    real = weights.dtype.type
    width = width_of(weights)
    twice = real(2.0) * degree
    curvature = eta + twice * rho + shrink
    eta, rho, twice = splat(eta), splat(rho), splat(twice)
    for k in range(0, size, width):
        together = twice * load(broadcast, at + k) - load(disagreement, k)
        store(v, k, eta * load(weights, at + k) + rho * together - load(duals, at + k))
    slope = splat(real(proximal_slope(loss, dot_row(phi, phi_at, v, 0, size) / square, curvature / square, label)))
    inverse = splat(real(1.0) / curvature)
    for k in range(0, size, width):
        store(weights, at + k, (load(v, k) - slope * load(phi, phi_at + k)) * inverse)


@lean
def descend_row(weights, at, phi, phi_at, size, slope, shrink, step):
    """Gradient step: theta <- theta - step [slope phi + shrink theta]."""
    slope, shrink, step = splat(slope), splat(shrink), splat(step)
    for k in range(0, size, width_of(weights)):
        theta = load(weights, at + k)
        store(weights, at + k, theta - step * (slope * load(phi, phi_at + k) + shrink * theta))


@lean
def combine_descend_row(weights, at, mixing, pull, phi, phi_at, size, slope, shrink, step):
    """Combine, then adapt, in one pass: psi = theta + mixing * pull, theta <- psi - step [slope phi + shrink psi]."""
    mixing, slope, shrink, step = splat(mixing), splat(slope), splat(shrink), splat(step)
    for k in range(0, size, width_of(weights)):
        psi = load(weights, at + k) + mixing * load(pull, k)
        store(weights, at + k, psi - step * (slope * load(phi, phi_at + k) + shrink * psi))


# --------------------------------------------------------------------------------------------------------------------
# The ladder
# --------------------------------------------------------------------------------------------------------------------


@ladder
def learn_row(
    algorithm, loss, rho, shrink, mixing, unit, rate, degree, limit,
    weights, duals, broadcast, at, pull, phi, phi_at, label, spare,
):  # fmt: skip
    """Steps 1 and 2 for the row that starts at ``at``: predict, then learn; returns the prediction.

    ``pull`` has one row, what was last heard. Where the prediction is beyond ``limit`` the run diverges, and nothing is
    learned. Unless features are of ``unit`` length, a gradient is divided by their square, if that is above 1.
    """
    real = weights.dtype.type
    size = weights.shape[1]
    margin = dot_row(weights, at, phi, phi_at, size)
    if abs(margin) <= limit:
        square = real(1.0) if unit else dot_row(phi, phi_at, phi, phi_at, size)
        ease = real(1.0) / max(real(1.0), square)
        if algorithm == LINEARIZED:
            slope = ease * real(slope_of(loss, margin, label))
            gain = real(1.0) / (rate + real(2.0) * rho * degree)
            linearized_row(weights, duals, at, pull, phi, phi_at, size, slope, shrink, rho, gain)
        elif algorithm == PROXIMAL:
            proximal_row(
                weights, duals, broadcast, at, pull, phi, phi_at, size, square, label, loss, rate, rho, degree, shrink,
                spare,
            )  # fmt: skip
        elif algorithm == COMBINE_THEN_ADAPT:
            combined = margin + mixing * dot_row(pull, 0, phi, phi_at, size)
            slope = ease * real(slope_of(loss, combined, label))
            combine_descend_row(weights, at, mixing, pull, phi, phi_at, size, slope, shrink, rate)
        else:
            slope = ease * real(slope_of(loss, margin, label))
            descend_row(weights, at, phi, phi_at, size, slope, shrink, rate)
    return margin


@counted
def hear_with_care(
    answer, algorithm, rho, mixing, reach,
    weights, duals, broadcast, sums, at, neighbours, combination, start, stop, pull,
):  # fmt: skip
    """Steps 4 and 5 where no neighbour may pull much harder than most: see ``laconic._clipping``."""
    size = pull.shape[1]
    taken, kept = weigh_row(reach, broadcast, sums, at, neighbours, start, stop, size)
    if algorithm == LINEARIZED or algorithm == PROXIMAL:
        clip_disagreement(taken, broadcast, at, neighbours, start, stop, pull, size)
        if answer:
            clip_duals(kept, rho, sums, at, neighbours, start, stop, duals, at, size)
    else:
        clip_mixture(taken, broadcast, at, neighbours, combination, start, stop, pull, size)
        if answer and algorithm == ADAPT_THEN_COMBINE:
            add_row(weights, at, mixing, pull, 0, size)


@ladder
def hear_row(
    answer, algorithm, rho, mixing, reach, heeds,
    weights, duals, broadcast, sums, spoken, at, neighbours, combination, start, stop, pull,
):  # fmt: skip
    """Steps 4 and 5 for the row that starts at ``at``: it takes from the replicas of its neighbours, which are those
    from ``start`` to ``stop`` of the list, what its learner needs, and moves its dual or its model by that.

    What it takes is left in ``pull``, which has one row. Without ``answer`` it only takes: that is where a resumed run
    starts from. ``sums`` are of meaning where pulls are clipped, to ``reach`` times their median; they include what is
    heard now. If it ``heeds`` who has just ``spoken``, a learner that mixes does so with them only.
    """
    size = pull.shape[1]
    if reach > 0.0:
        hear_with_care(
            answer, algorithm, rho, mixing, reach,
            weights, duals, broadcast, sums, at, neighbours, combination, start, stop, pull,
        )  # fmt: skip
    elif algorithm == LINEARIZED or algorithm == PROXIMAL:
        if start < stop:
            disagree_row(broadcast, at, neighbours, start, stop, pull, 0, size)
        else:
            clear_row(pull, 0, size)
        if answer:
            add_row(duals, at, rho, pull, 0, size)
    elif algorithm != LOCAL:
        if heeds:
            mix_spoken_row(weights, broadcast, at, neighbours, combination, start, stop, spoken, pull, size)
        else:
            mix_row(broadcast, at, neighbours, combination, start, stop, pull, size)
        if answer and algorithm == ADAPT_THEN_COMBINE:
            add_row(weights, at, mixing, pull, 0, size)
