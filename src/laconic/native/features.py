"""A feature map in the core: its structure, and phi of many rows at once."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from laconic._validate import Array
from laconic.features import RandomFeatures
from laconic.native.arrays import aligned, padded, plain
from laconic.native.binding import INTEGER, POINTER, REAL, Structure, function

_BLOCK_ROWS = 128  # of features, which the second-level cache then holds


class FeatureMap(Structure):
    """``Features`` of ``core/features.h``."""

    _fields_: ClassVar[Any] = [
        *((name, INTEGER) for name in ("n_inputs", "n_frequencies", "stride", "size", "n_lifted", "scaled")),
        *((name, INTEGER) for name in ("n_columns", "n_direct", "last")),
        *((name, REAL) for name in ("scale", "share", "most")),
        *((name, POINTER) for name in ("frequencies", "columns", "centre", "spread")),
    ]


def feature_map(features: RandomFeatures, dtype: Any) -> FeatureMap:
    """The structure of ``features`` in the working precision."""
    dtype = np.dtype(dtype)
    frequencies = padded(features.frequencies.T, dtype)
    size = aligned(1, features.n_features, dtype).shape[1]
    made: FeatureMap = FeatureMap.of(
        n_inputs=features.n_inputs,
        n_frequencies=features.n_frequencies,
        stride=frequencies.shape[1],
        size=size,
        n_lifted=len(frequencies),
        scale=float(dtype.type(features.n_frequencies**-0.5)),
        frequencies=frequencies,
    )
    scaling = features.scaling
    if scaling is not None:
        kept = scaling.columns.astype(np.int64)
        made.put(
            scaled=1,
            n_columns=kept.size,
            n_direct=features.n_direct,
            last=features.linear,
            share=scaling.share,
            most=scaling.reach,
            columns=kept,
            centre=scaling.centre[kept],
            spread=scaling.scale[kept],
        )
    return made


class RowMap:
    """phi of one input after the other, in double precision."""

    def __init__(self, features: RandomFeatures) -> None:
        self._map = feature_map(features, np.float64)
        self._phases = aligned(1, self._map.stride, np.float64)
        self._lifted = aligned(1, self._map.n_lifted, np.float64)

    def __call__(self, x: Array, phi: Array) -> bool:
        """Put phi of ``x`` (1, d) into ``phi``; False if it is not finite."""
        room = [array.ctypes.data for array in (x, self._phases, self._lifted, phi)]
        mapped = _map_rows(8)(self._map.address, room[0], 1, 1, *room[1:])
        return bool(mapped) and bool(np.isfinite(x).all())


def _map_rows(itemsize: int) -> Any:
    pointers = (POINTER, POINTER, INTEGER, INTEGER, POINTER, POINTER, POINTER)
    return function(f"map_rows_f{8 * itemsize}", *pointers)


def map_features(features: RandomFeatures, X: Array, dtype: Any = np.float64) -> Array:
    """phi of each row of ``X`` (n, d), padded to whole vectors: the bits that a simulated or running agent computes."""
    dtype = np.dtype(dtype)
    rows, front = plain(X, dtype), feature_map(features, dtype)
    phi = aligned(len(rows), features.n_features, dtype)
    phases = aligned(_BLOCK_ROWS, front.stride, dtype)
    lifted = aligned(_BLOCK_ROWS, front.n_lifted, dtype)
    arrays = [array.ctypes.data for array in (phases, lifted, phi)]
    if _map_rows(dtype.itemsize)(front.address, rows.ctypes.data, len(rows), _BLOCK_ROWS, *arrays) < len(rows):
        raise ValueError("X holds values too large for the feature map.")
    return phi
