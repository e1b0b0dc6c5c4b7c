"""The parts that feature maps are made of, each with all its forms: NumPy, C and ONNX.

A map begins with *stages*, which change a vector (``Scale``, ``Lift``), and ends with *blocks*, which all look at what
the last stage leaves and whose features stand side by side (``Waves``, ``Linear``, ``Constant``). A new kind of map
that needs a part more adds a class here and its name to ``STAGES`` or ``BLOCKS``: files, C and ONNX then know it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Protocol, final

import numpy as np

from laconic import _validate
from laconic._validate import Array
from laconic._worded import ArgumentError


class CFile(Protocol):
    """A C file that is being written; see ``as_c``."""

    n_outputs: int

    def table(self, what: str, values: Array) -> str:
        """Write a table of constants; its name."""

    def line(self, text: str) -> None:
        """Write a line of the function."""


class Graph(Protocol):
    """An ONNX graph that is being written; see ``as_onnx``."""

    def constant(self, values: Array) -> str:
        """A tensor of constants; its name. Real numbers get the precision of the graph."""

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Apply an operator; the name of its result."""


@final
@dataclass(frozen=True, eq=False)
class Scale:
    """u_k = (x[columns_k] - centre_k) / scale_k, and 0 where the scale is 0."""

    columns: Array
    centre: Array
    scale: Array

    kind = "scale"

    def __post_init__(self) -> None:
        columns = np.asarray(self.columns)
        if columns.ndim != 1 or columns.dtype.kind not in "iu" or (columns < 0).any():
            raise ArgumentError("columns", f"must be indices, got {_validate.shown(self.columns)}.")
        object.__setattr__(self, "columns", columns.astype(np.int64))
        for name in ("centre", "scale"):
            object.__setattr__(self, name, _vector(name, getattr(self, name), len(columns)))

    def size(self, n: int) -> int:
        """How long a vector of ``n`` becomes."""
        if (self.columns >= n).any():
            raise ArgumentError("columns", f"must be indices below {n}, got {int(self.columns.max())}.")
        return len(self.columns)

    def __call__(self, x: Array) -> Array:
        """Scale vectors (..., n)."""
        counts = self.scale != 0
        with np.errstate(over="ignore"):
            u: Array = np.where(counts, (x[..., self.columns] - self.centre) / np.where(counts, self.scale, 1.0), 0.0)
        return u

    def write_c(self, file: CFile, source: str, n: int, target: str) -> None:
        """``target`` = the scaled entries of ``source``."""
        columns, centre = file.table("columns", self.columns), file.table("centre", self.centre)
        scale = file.table("scale", self.scale)
        file.line(f"for (i = 0; i < {len(self.columns)}; i++)")
        file.line(f"    {target}[i] = {scale}[i] != 0 ? ({source}[{columns}[i]] - {centre}[i]) / {scale}[i] : 0;")

    def write_onnx(self, graph: Graph, source: str) -> str:
        """The scaled columns of ``source``."""
        counts = self.scale != 0
        taken = graph.node("Gather", source, graph.constant(self.columns), axis=1)
        shifted = graph.node("Sub", taken, graph.constant(self.centre))
        scaled = graph.node("Div", shifted, graph.constant(np.where(counts, self.scale, 1.0)))
        return scaled if counts.all() else graph.node("Mul", scaled, graph.constant(counts.astype(np.float64)))


@final
@dataclass(frozen=True, eq=False)
class Lift:
    """v = [asinh(u), u]: asinh grows as a logarithm where u is large, so that heavy tails stay in sight."""

    kind = "lift"

    def size(self, n: int) -> int:
        """How long a vector of ``n`` becomes."""
        return 2 * n

    def __call__(self, u: Array) -> Array:
        """Lift vectors (..., n)."""
        return np.concatenate([np.arcsinh(u), u], axis=-1)

    def write_c(self, file: CFile, source: str, n: int, target: str) -> None:
        """``target`` = ``source``, lifted."""
        file.line(f"for (i = 0; i < {n}; i++) {{")
        file.line(f"    {target}[i] = asinh({source}[i]);")
        file.line(f"    {target}[{n} + i] = {source}[i];")
        file.line("}")

    def write_onnx(self, graph: Graph, source: str) -> str:
        """asinh(u) = sign(u) log(|u| + sqrt(u^2 + 1)), since runtimes know asinh in single precision only."""
        size = graph.node("Abs", source)
        one = graph.constant(np.ones(1))
        root = graph.node("Sqrt", graph.node("Add", graph.node("Mul", source, source), one))
        log = graph.node("Log", graph.node("Add", size, root))
        return graph.node("Concat", graph.node("Mul", graph.node("Sign", source), log), source, axis=1)


@final
@dataclass(frozen=True, eq=False)
class Waves:
    """L^(-1/2) [cos(w_1.v) .. cos(w_L.v), sin(w_1.v) .. sin(w_L.v)], the frequencies w_l as rows."""

    frequencies: Array

    kind = "waves"

    def __post_init__(self) -> None:
        array = _validate.real_array("frequencies", self.frequencies, "(n_frequencies, n)", ndim=2)
        if not len(array):
            raise ArgumentError("frequencies", "must have at least one row.")
        object.__setattr__(self, "frequencies", np.asarray(_validate.finite("frequencies", array), dtype=np.float64))

    def width(self, n: int) -> int:
        """How many features it makes of a vector of ``n``."""
        if self.frequencies.shape[1] != n:
            raise ArgumentError("frequencies", f"must have {n} columns, got {self.frequencies.shape[1]}.")
        return 2 * len(self.frequencies)

    def __call__(self, v: Array) -> Array:
        """The features of vectors (..., n)."""
        phases = v @ self.frequencies.T
        return np.concatenate([np.cos(phases), np.sin(phases)], axis=-1) * len(self.frequencies) ** -0.5

    def write_c(self, file: CFile, source: str, n: int, weights: str) -> None:
        """Add the features times ``weights`` to the outputs."""
        L, K = len(self.frequencies), file.n_outputs
        frequencies = file.table("frequencies", self.frequencies)
        share = repr(L**-0.5)
        file.line(f"for (i = 0; i < {L}; i++) {{")
        file.line("    double phase = 0, cosine, sine;")
        file.line(f"    for (j = 0; j < {n}; j++)")
        file.line(f"        phase += {frequencies}[i * {n}L + j] * {source}[j];")
        file.line(f"    cosine = {share} * cos(phase);")
        file.line(f"    sine = {share} * sin(phase);")
        file.line(f"    for (k = 0; k < {K}; k++)")
        file.line(f"        y[k] += {weights}[i * {K}L + k] * cosine + {weights}[({L}L + i) * {K} + k] * sine;")
        file.line("}")

    def write_onnx(self, graph: Graph, source: str) -> str:
        """Cosines as sines a quarter ahead, since not all runtimes know cosines in double precision."""
        phases = graph.node("MatMul", source, graph.constant(self.frequencies.T))
        ahead = graph.node("Add", phases, graph.constant(np.array([math.pi / 2])))
        waves = graph.node("Sin", graph.node("Concat", ahead, phases, axis=1))
        # A vector, not a number: that, runtimes would make part of the product that follows, in single precision.
        L = len(self.frequencies)
        return graph.node("Mul", waves, graph.constant(np.full(2 * L, L**-0.5)))


@final
@dataclass(frozen=True, eq=False)
class Linear:
    """factor * clip(v[first:], -limit, limit): what is linear is learned as such, and no outlier runs away."""

    first: int
    limit: float
    factor: float

    kind = "linear"

    def __post_init__(self) -> None:
        _validate.integer("first", self.first, least=0)
        _validate.number("limit", self.limit, above=0)
        _validate.number("factor", self.factor)

    def width(self, n: int) -> int:
        """How many features it makes of a vector of ``n``."""
        if self.first >= n:
            raise ArgumentError("first", f"must be below {n}, got {self.first}.")
        return n - self.first

    def __call__(self, v: Array) -> Array:
        """The features of vectors (..., n)."""
        features: Array = self.factor * np.clip(v[..., self.first :], -self.limit, self.limit)
        return features

    def write_c(self, file: CFile, source: str, n: int, weights: str) -> None:
        """Add the features times ``weights`` to the outputs."""
        high, K = repr(float(self.limit)), file.n_outputs
        file.line(f"for (i = 0; i < {n - self.first}; i++) {{")
        file.line(f"    double part = {source}[{self.first} + i];")
        file.line(f"    part = part > {high} ? {high} : part < -{high} ? -{high} : part;")
        file.line(f"    part *= {float(self.factor)!r};")
        file.line(f"    for (k = 0; k < {K}; k++)")
        file.line(f"        y[k] += {weights}[i * {K}L + k] * part;")
        file.line("}")

    def write_onnx(self, graph: Graph, source: str) -> str:
        """The clipped entries of ``source``, scaled."""
        first, end, axis = (graph.constant(np.array([k], dtype=np.int64)) for k in (self.first, 2**62, 1))
        taken = graph.node("Slice", source, first, end, axis)
        low, high = (graph.constant(np.array(sign * float(self.limit))) for sign in (-1, 1))
        cut = graph.node("Clip", taken, low, high)
        return graph.node("Mul", cut, graph.constant(np.array([self.factor])))


@final
@dataclass(frozen=True, eq=False)
class Constant:
    """1, for what all inputs have in common."""

    kind = "constant"

    def width(self, n: int) -> int:
        """One feature, whatever the vector."""
        return 1

    def __call__(self, v: Array) -> Array:
        """The feature of vectors (..., n)."""
        return np.ones((*v.shape[:-1], 1))

    def write_c(self, file: CFile, source: str, n: int, weights: str) -> None:
        """Add ``weights`` to the outputs."""
        file.line(f"for (k = 0; k < {file.n_outputs}; k++)")
        file.line(f"    y[k] += {weights}[k];")

    def write_onnx(self, graph: Graph, source: str) -> str:
        """A column of ones, as long as ``source``."""
        rows = graph.node("Shape", source, start=0, end=1)
        shape = graph.node("Concat", rows, graph.constant(np.array([1], dtype=np.int64)), axis=0)
        return graph.node("Expand", graph.constant(np.ones((1, 1))), shape)


Stage = Scale | Lift
Block = Waves | Linear | Constant
STAGES: dict[str, Any] = {part.kind: part for part in (Scale, Lift)}
BLOCKS: dict[str, Any] = {part.kind: part for part in (Waves, Linear, Constant)}


def pack(part: Stage | Block) -> tuple[dict[str, Any], dict[str, Array]]:
    """A part as plain values and arrays, by the names of its fields."""
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    return {"kind": part.kind, **{name: values[name] for name in values if name not in arrays}}, arrays


def unpack(kinds: dict[str, Any], described: object, arrays: dict[str, Array]) -> Any:
    """The part that ``pack`` took apart; ValueError or TypeError if there is none like that."""
    if not isinstance(described, dict) or described.get("kind") not in kinds:
        raise ValueError(f"its map has a part that is unknown: {_validate.shown(described)[:60]}")
    plain = {name: value for name, value in described.items() if name != "kind"}
    return kinds[described["kind"]](**plain, **arrays)


def _vector(name: str, value: object, length: int) -> Array:
    array = _validate.finite(name, _validate.real_array(name, value, f"({length},)", ndim=1))
    if len(array) != length:
        raise ArgumentError(name, f"must have {length} entries, got {len(array)}.")
    return array.astype(np.float64)
