"""How much a table's model is shrunk, once all of it is learned: by generalised cross-validation.

Waves hold a stream's model with a small ridge, since more samples will come. A table has no more, and one that is small
for its noise asks for a larger ridge. After the last wave every agent holds the model theta and the information n C of
all, with H = n C + t I and t the ridge so far. For t' = t, 2t, 4t, ...

    theta' = (H + (t' - t) I)^-1 H theta,    df = tr n C (n C + t' I)^-1,    V = |y - Phi theta'|^2 / (1 - df/n)^2

and the theta' of the least V is kept (Golub, Heath and Wahba, 1979). What V needs of the data is each agent's sum of
squares at a handful of models that all can compute: a few numbers, and no row.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from laconic._validate import Array
from laconic.learners import Learner, Personal, WaveRLS
from laconic.waves.saving import unpacked

_DOUBLINGS = 13  # a ridge 4096 times larger leaves nothing but the mean
_LEAST_FREE = 1e-3  # of n, what is left of the rows when the model's degrees of freedom are subtracted


def settled_model(learner: Learner, parts: Mapping[str, Array]) -> Array | None:
    """The model that cross-validates best, (D,) or (K, D); None where no wave has told everybody of all rows.

    ``parts`` is ``state.learner`` of a run of ``WaveRLS`` or ``Personal``.
    """
    n = float(parts["count"].sum())
    if not isinstance(learner, (WaveRLS, Personal)) or n == 0:
        return None
    rule = learner.rule()
    own = unpacked(parts["own"].sum(axis=0))
    if len(parts["count"]) == 1:  # nobody speaks, and what it has is all there is
        information, theta, ridge = own, parts["weights"][0], rule.ridge
    else:
        information, theta = n * unpacked(parts["information"][0]), parts["theta"][0]
        ridge = float(parts["thin"][0]) * rule.thick(n)
    if not information.any():
        return None
    values, vectors = np.linalg.eigh(information)
    values = np.maximum(values, 0)
    moments, square = np.atleast_2d(parts["moments"].sum(axis=0)), float(parts["square"].sum())
    turned = np.atleast_2d(theta) @ vectors * (values + ridge)
    best, kept = np.inf, np.atleast_2d(theta)
    for more in ridge * 2.0 ** np.arange(_DOUBLINGS):
        model = turned / (values + more) @ vectors.T
        left = square - 2 * float((model * moments).sum()) + float((model @ own * model).sum())
        free = max(1 - float((values / (values + more)).sum()) / n, _LEAST_FREE)
        if left / free**2 < best:
            best, kept = left / free**2, model
    return kept.reshape(np.shape(theta))
