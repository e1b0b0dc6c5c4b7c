"""A feature map, described: what it does to an input, step by step, apart from where its numbers came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np

from laconic import _validate
from laconic._validate import Array
from laconic._worded import ArgumentError
from laconic.features import OwnFeatures, RandomFeatures
from laconic.model.stages import BLOCKS, STAGES, Block, Constant, Lift, Linear, Scale, Stage, Waves, pack, unpack

_MOST_INPUTS = 100_000_000


@final
class FeatureMap:
    """phi(x) = [block_1(v), block_2(v), ...], v = stage_n(.. stage_1(x) ..).

    Parameters
    ----------
    n_inputs : int
        Length of an input.
    stages : sequence of ``Scale`` and ``Lift``
        What an input goes through first; there may be none.
    blocks : sequence of ``Waves``, ``Linear`` and ``Constant``
        What is made of it, side by side; at least one.

    Attributes
    ----------
    n_inputs, n_features : int

    Examples
    --------
    >>> import numpy as np, laconic as lc
    >>> features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=3, seed=0)
    >>> described = FeatureMap.of(features)
    >>> described
    FeatureMap(2 inputs -> waves -> 6 features)
    >>> np.allclose(described(np.ones(2)), features(np.ones(2)), atol=1e-15)
    True
    """

    def __init__(self, n_inputs: int, stages: Sequence[Stage], blocks: Sequence[Block]) -> None:
        self.n_inputs = _validate.integer("n_inputs", n_inputs, least=1, most=_MOST_INPUTS)
        self.stages, self.blocks = tuple(stages), tuple(blocks)
        if not self.blocks:
            raise ArgumentError("blocks", "must be at least one.")
        sizes = [self.n_inputs]
        for stage in self.stages:
            sizes.append(stage.size(sizes[-1]))
        #: Lengths of the input and of what each stage leaves, and of what each block makes of the last.
        self.sizes = tuple(sizes)
        self.widths = tuple(block.width(sizes[-1]) for block in self.blocks)

    @property
    def n_features(self) -> int:
        """Length of phi(x)."""
        return sum(self.widths)

    @classmethod
    def of(cls, features: object) -> FeatureMap | None:
        """The description of ``features``; None of what is nobody's but its owner's (a callable of one's own)."""
        if not isinstance(features, RandomFeatures) or isinstance(features, OwnFeatures):
            return None
        scaling, waves = features.scaling, Waves(features.frequencies)
        if scaling is None:
            return cls(features.n_inputs, (), (waves,))
        columns = scaling.columns if len(scaling.columns) else np.array([0])  # whose scale is 0, as all are
        blocks: list[Block] = [waves]
        if features.n_direct:
            blocks.append(Linear(len(columns), scaling.reach, scaling.share))
        if features.linear:
            blocks.append(Constant())
        scale = Scale(columns, scaling.centre[columns], scaling.scale[columns])
        return cls(features.n_inputs, (scale, Lift()), blocks)

    def after(self, centre: object, scale: object) -> FeatureMap:
        """The same map for inputs that have yet to be scaled: (x - centre)/scale, and 0 where the scale is 0."""
        every = np.arange(self.n_inputs)
        centre, scale = (np.broadcast_to(np.asarray(part, dtype=float), every.shape) for part in (centre, scale))
        return FeatureMap(self.n_inputs, (Scale(every, centre, scale), *self.stages), self.blocks)

    def __call__(self, X: Array) -> Array:
        """Phi of inputs of shape (..., n_inputs), which are not checked."""
        vectors = np.asarray(X, dtype=np.float64)
        for stage in self.stages:
            vectors = stage(vectors)
        return np.concatenate([block(vectors) for block in self.blocks], axis=-1)

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """The map as plain values and, by name, arrays: for a file."""
        described: dict[str, Any] = {"n_inputs": self.n_inputs, "stages": [], "blocks": []}
        arrays: dict[str, Array] = {}
        for group, parts in (("stages", self.stages), ("blocks", self.blocks)):
            for k, part in enumerate(parts):
                plain, owned = pack(part)
                described[group].append(plain)
                arrays |= {f"{group}.{k}.{name}": array for name, array in owned.items()}
        return described, arrays

    @classmethod
    def unpack(cls, described: object, arrays: Mapping[str, Array]) -> FeatureMap:
        """The map that ``pack`` took apart; an error of some kind if that is not one."""
        if not isinstance(described, dict):
            raise ValueError("its map is not described")
        left = dict(arrays)
        parts: dict[str, list[Any]] = {}
        for group, kinds in (("stages", STAGES), ("blocks", BLOCKS)):
            parts[group] = []
            for k, plain in enumerate(described[group]):
                start = f"{group}.{k}."
                owned = {name.removeprefix(start): left.pop(name) for name in list(left) if name.startswith(start)}
                parts[group].append(unpack(kinds, plain, owned))
        if left:
            raise ValueError(f"its map has an array more than parts: {next(iter(left))[:60]!r}")
        return cls(described["n_inputs"], parts["stages"], parts["blocks"])

    def __repr__(self) -> str:
        steps = " -> ".join([stage.kind for stage in self.stages] + [", ".join(block.kind for block in self.blocks)])
        return f"FeatureMap({self.n_inputs} inputs -> {steps} -> {self.n_features} features)"
