"""Print a digest of what every learner does, in both precisions: the same lines wherever code has the same bits."""

from __future__ import annotations

import hashlib
import warnings

import numpy as np

import laconic as lc
from laconic.engine.support import compiles

LOSSES = tuple(lc.losses.LOSSES)
CHANNELS = (lc.Channel(lc.Censor(0.3, 0.99), lc.Quantizer(3)), lc.Channel(lc.Budget(0.6), lc.EntropyQuantizer(0.4)))


def make(kind: type[lc.Learner], loss: str, **options: object) -> lc.Learner:
    given = {**kind.usual_steps(lc.losses.get(loss)), "loss": loss, **options}
    return kind(**{name: value for name, value in given.items() if name in kind.arguments()})


def digest(learner: lc.Learner, dtype: str) -> str:
    X = np.random.default_rng(0).uniform(size=(400, 8, 3))
    y = np.sin(4 * X[..., 0]) + X[..., -1] - 0.7
    y = np.sign(y) if learner.loss.binary else y
    features, network = lc.RandomFeatures.gaussian(3, 13, bandwidth=0.6, seed=4), lc.Network.random(8, p=0.4, seed=1)
    trace = lc.simulate(learner, features, network, X, y, dtype=dtype, engine="compiled", collective=True)
    seen = hashlib.sha256()
    for column in (trace.predictions, trace.sent, trace.saturated, trace.consensus_error, trace.collective_loss):
        seen.update(np.ascontiguousarray(column).tobytes())
    return seen.hexdigest()[:16]


def main() -> None:
    for kind in lc.learners.every():
        for variant in kind.variants:
            for loss in LOSSES:
                for number, channel in enumerate(CHANNELS):
                    learner = make(kind, loss, channel=channel, **variant)
                    if compiles(learner):
                        for dtype in ("float64", "float32"):
                            print(kind.__name__, variant, loss, number, dtype, digest(learner, dtype))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
