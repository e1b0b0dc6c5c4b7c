"""An engine for features of one's own: they are computed here, and the other engines learn from them."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from laconic._validate import Array
from laconic.engine.around import Around
from laconic.engine.chunk import Chunk, Engine
from laconic.features import OwnFeatures
from laconic.native.arrays import aligned
from laconic.trace import State


def map_own(features: OwnFeatures, X: Array, dtype: Any, padded: bool) -> Array:
    """phi of inputs (T, N, d), (T, N, n_features); ``padded`` to whole vectors, as the kernels have it."""
    phi = features(X.astype(dtype, copy=False))
    if not padded:
        return phi
    rows = aligned(phi.shape[0] * phi.shape[1], features.n_features, dtype)
    rows[:, : features.n_features] = phi.reshape(len(rows), -1)
    return rows.reshape(*phi.shape[:2], -1)


@final
class Mapped(Around):
    """Maps the inputs of each chunk, and lets another engine go on with their features."""

    def __init__(self, inner: Any, features: OwnFeatures, dtype: str) -> None:
        self._inner, self._features, self._dtype = inner, features, dtype

    def __reduce__(self) -> Any:
        return Mapped, (self._inner, self._features, self._dtype), self._inner.__reduce__()[2]

    def state(self) -> State:
        """All that the next round needs."""
        state: State = self._inner.state()
        return state

    def advance(self, X: Array, y: Array, mapped: bool = False) -> Chunk:
        """Run the rounds of one chunk, up to the first input that is not finite."""
        if mapped:
            done: Chunk = self._inner.advance(X, y, mapped=True)
            return done
        good = np.isfinite(X).all(axis=(1, 2))
        n = len(X) if good.all() else int(np.argmin(good))
        phi = map_own(self._features, X[:n], np.dtype(self._dtype), self.name != "reference")
        chunk: Chunk = self._inner.advance(phi, y[:n], mapped=True)
        if n < len(X) and chunk.ending is None:
            agent = int(np.argmax(~np.isfinite(X[n]).all(axis=1)))
            return chunk._replace(ending="bad input", agent=agent)
        return chunk


def engine_for(inner: Engine, features: Any, dtype: str) -> Engine:
    """``inner``, behind the features if these are one's own."""
    return Mapped(inner, features, dtype) if isinstance(features, OwnFeatures) else inner
