"""How much a table's model is shrunk, once all of it is learned: by generalised cross-validation.

Waves hold a stream's model with a small ridge, since more samples will come. A table has no more, and one that is small
for its noise asks for a larger ridge, on the waves of the kernel a larger one than on the inputs themselves, which
are fewer and mostly tell more. After the last wave every agent holds the model theta and the information n C of all,
with H = n C + t I and t the ridge so far. For t' = t, 2t, 4t, ... and W the diagonal with r = 1, 4, 16, 64 or a million
at the kernel's waves and 1 at the inputs and the constant,

    theta' = (n C + t' W)^-1 H theta,    df = tr n C (n C + t' W)^-1,    V = |y - Phi theta'|^2 / (1 - df/n)^2

(Golub, Heath and Wahba, 1979). The mean of all theta' is kept, each weighed by V^(-n/5): of few rows the least V is an
accident, of many it is all that counts. What V needs of the data is each agent's sum of squares at a handful of models
that all can compute: a few numbers, and no row.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from laconic._validate import Array
from laconic.features import RandomFeatures
from laconic.learners import Learner, Personal, WaveRLS
from laconic.waves.saving import unpacked

_DOUBLINGS = 13  # a ridge 4096 times larger leaves nothing but the mean
_RATIOS = 1.0, 4.0, 16.0, 64.0, 1e6  # of the ridge of the kernel's waves to that of the inputs; the last leaves a line
_LEAST_FREE = 1e-3  # of n, what is left of the rows when the model's degrees of freedom are subtracted
_TRUST = 0.2  # half of it would be a likelihood, if rows told each ridge as well as they tell a model


def settled_model(learner: Learner, features: RandomFeatures, parts: Mapping[str, Array]) -> Array | None:
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
    moments, square = np.atleast_2d(parts["moments"].sum(axis=0)), float(parts["square"].sum())
    target = np.atleast_2d(theta) @ information + ridge * np.atleast_2d(theta)
    models, errors = [], []
    for scales in _scales(features, len(information)):
        values, vectors = np.linalg.eigh(scales[:, None] * information * scales)
        values = np.maximum(values, 0)
        turned = target * scales @ vectors
        for more in ridge * 2.0 ** np.arange(_DOUBLINGS):
            model = turned / (values + more) @ vectors.T * scales
            left = square - 2 * float((model * moments).sum()) + float((model @ own * model).sum())
            free = max(1 - float((values / (values + more)).sum()) / n, _LEAST_FREE)
            models.append(model)
            errors.append(max(left, 1e-9 * square) / free**2)  # which rounding may have made negative
    least = min(errors)
    weights = np.array([1.0 if error == least else (least / error) ** (_TRUST * n) for error in errors])
    mean: Array = np.tensordot(weights / weights.sum(), np.array(models), 1)
    return mean.reshape(np.shape(theta))


def _scales(features: RandomFeatures, size: int) -> list[Array]:
    """W^(-1/2) for each ratio; one of ones where no inputs stand beside the kernel's waves."""
    if not features.n_direct:
        return [np.ones(size)]
    waves = np.arange(size) < size - features.n_direct - 1
    return [np.where(waves, ratio**-0.5, 1.0) for ratio in _RATIOS]
