"""The compiled rounds of recursive least squares."""

from __future__ import annotations

import math

from laconic.engine.cache import entry
from laconic.engine.rows import add_row, clear_row, dot_row
from laconic.engine.vectors import load, splat, store, vector_fma, width_of


@entry
def recursive_rounds(phi, labels, weights, factors, spreads, gain, forgetting, predictions):
    """Recursive least squares over the rounds of ``labels`` (T, N); returns the first row that overflows, or T N.

    ``weights`` and ``spreads`` have a row for each model: N of them, or one that learns from everybody. The covariance
    of model m is never formed: it is U D U^T with U unit upper triangular, D = ``spreads[m]`` > 0, and column j of U in
    row m n + j of ``factors``, zero from the diagonal on (Bierman). Positive factors stay positive, whatever rounding
    does, where a covariance that is subtracted from may cease to be one. ``gain`` is room to work in. Row t N + i of
    ``phi`` belongs to agent i in round t; all of a round is predicted before any of it is learned.
    """
    n_models, size = weights.shape
    n_features = factors.shape[0] // n_models
    n_rounds, n_agents = labels.shape
    width = width_of(weights)
    for t in range(n_rounds):
        for i in range(n_agents):
            row, model = t * n_agents + i, i if n_models > 1 else 0
            predictions[t, i] = dot_row(weights, model * size, phi, row * size, size)
            if not math.isfinite(predictions[t, i]):
                return row
        if forgetting < 1.0:
            for model in range(n_models):
                for j in range(n_features):
                    spreads[model, j] /= forgetting
        for i in range(n_agents):
            label = labels[t, i]
            if math.isnan(label):
                continue
            row, model = t * n_agents + i, i if n_models > 1 else 0
            at, phi_at = model * size, row * size
            error = label - dot_row(weights, at, phi, phi_at, size)
            clear_row(gain, 0, size)
            before = 1.0
            for j in range(n_features):
                column = (model * n_features + j) * size
                length = (j + width - 1) // width * width
                share = phi[row, j] + dot_row(factors, column, phi, phi_at, length)
                scaled = spreads[model, j] * share
                after = before + scaled * share
                spreads[model, j] *= before / after
                step, add = splat(-share / before), splat(scaled)
                for k in range(0, length, width):
                    old, so_far = load(factors, column + k), load(gain, k)
                    store(factors, column + k, vector_fma(step, so_far, old))
                    store(gain, k, vector_fma(add, old, so_far))
                gain[0, j] = scaled
                before = after
            add_row(weights, at, error / before, gain, 0, size)
    return n_rounds * n_agents
