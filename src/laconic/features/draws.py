"""The random numbers behind a feature map, and the arguments common to all kernels."""

from __future__ import annotations

from typing import final

import numpy as np

from laconic import _validate
from laconic._validate import Array


@final
class Draw:
    """The arguments common to all kernels, checked, and the standard normal frequencies they start from."""

    def __init__(self, n_inputs: int, n_frequencies: int, bandwidth: float, seed: int, orthogonal: bool) -> None:
        self.n_inputs = _validate.integer("n_inputs", n_inputs, least=1)
        self.n_frequencies = _validate.integer("n_frequencies", n_frequencies, least=1)
        larger = "n_inputs" if self.n_inputs > self.n_frequencies else "n_frequencies"
        _validate.allocatable(larger, self.n_frequencies, self.n_inputs)
        self.bandwidth = _validate.number("bandwidth", bandwidth, above=0)
        self.seed = _validate.integer("seed", seed, least=0)
        self.orthogonal = bool(orthogonal)
        self.random = np.random.default_rng(self.seed)

    def normal(self) -> Array:
        """(L, d) numbers each of whose rows is standard normal; within a block of d rows, orthogonal if so asked."""
        shape = (self.n_frequencies, self.n_inputs)
        if not self.orthogonal:
            return self.random.standard_normal(shape)
        blocks = []
        for start in range(0, self.n_frequencies, self.n_inputs):
            rotation, triangle = np.linalg.qr(self.random.standard_normal((self.n_inputs, self.n_inputs)))
            rotation *= np.sign(np.diag(triangle))  # without this the rotation would not be uniformly distributed
            blocks.append(rotation.T[: self.n_frequencies - start])
        lengths = np.sqrt(self.random.chisquare(self.n_inputs, size=(self.n_frequencies, 1)))
        return np.concatenate(blocks) * lengths

    def __repr__(self) -> str:
        extra = ", orthogonal=True" if self.orthogonal else ""
        return (
            f"n_inputs={self.n_inputs}, n_frequencies={self.n_frequencies}, "
            f"bandwidth={self.bandwidth:g}, seed={self.seed}{extra}"
        )
