"""The batch algorithms on the paper's sets: what learning from all data at once, over and over, would have reached."""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic.experiments.settings import REGULARIZATION
from laconic.experiments.streams import Stream
from laconic.offline import BatchRun, batch_solution, coke, dkla

#: Test errors that the COKE paper reports for its batch algorithms, times 1000 (its sets are prepared alike).
PUBLISHED = {"air-quality": 1.6, "toms-hardware": 1.11, "energy": 21.8}

_TRAINING = 0.7
_CENSOR: dict[str, Any] = {"v": 1.0, "mu": 0.99}


def batch(stream: Stream, max_iterations: int = 500) -> dict[str, Any]:
    """DKLA, COKE and the centralised solution: trained on the first 70% of the rounds, tested on the rest."""
    cut = max(1, round(_TRAINING * len(stream.y)))
    X, y = stream.X[:cut], stream.y[:cut]
    test = (stream.X[cut:], stream.y[cut:])
    weights = batch_solution(stream.features, X, y, regularization=REGULARIZATION).weights
    options: dict[str, Any] = {"regularization": REGULARIZATION, "max_iterations": max_iterations, "test": test}
    return {
        "training_share": _TRAINING,
        "centralised_mse": float(np.nanmean((stream.features(test[0]) @ weights - test[1]) ** 2)),
        "dkla": _outcome(dkla(stream.features, stream.network, X, y, **options)),
        "coke": _outcome(coke(stream.features, stream.network, X, y, **_CENSOR, **options)) | _CENSOR,
    }


def _outcome(run: BatchRun) -> dict[str, Any]:
    tested = run.test_mse if run.test_mse is not None else run.training_mse
    return {
        "mse": float(tested[-1]),
        "training_mse": float(run.training_mse[-1]),
        "iterations": run.iterations,
        "converged": run.converged,
        "sends": int(run.sent.sum()),
        "bits": int(run.bits.sum()),
        "rho": run.rho,
    }
