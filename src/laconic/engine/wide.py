"""Vectors of 64 bytes, eight doubles, where a processor has registers of that length.

Elsewhere LLVM would make two of each, for which there are too few registers, so whoever uses them has a version without
them, for every other processor, with the same bits: ``WIDE`` chooses when code is compiled. That holds as long as lanes
do not meet, or meet in the order of the shorter vectors.
"""

from __future__ import annotations

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.codegen import get_host_cpu_features
from numba.extending import intrinsic, models, register_model

from laconic.engine.vectors import INDEX, Vector, element, ladder, splat_value, store

_LANE = ir.IntType(32)
_features = numba.config.CPU_FEATURES
#: Whether the processor that code is compiled for has registers of 64 bytes.
WIDE = "+avx512f" in (get_host_cpu_features() if _features is None else _features).split(",")


def whole_lines(length: int) -> int:
    """How long rows of doubles are to be of which wide vectors are read: none then straddles two cache lines."""
    return -(-length // 8) * 8 if WIDE else length


class WideVector(Vector):
    """Twice as many numbers as in a ``Vector``."""

    def __init__(self, dtype):
        super().__init__(dtype)
        self.width *= 2
        self.name = f"WideVector({dtype} x {self.width})"


@register_model(WideVector)
class _WideModel(models.PrimitiveModel):
    def __init__(self, manager, vector):
        scalar = manager.lookup(vector.dtype).get_value_type()
        super().__init__(manager, vector, ir.VectorType(scalar, vector.width))


@intrinsic
def load_like(typing_context, array, index, like):
    """The vector that starts at ``array[index]``, as long as ``like``."""

    def codegen(context, builder, signature, args):
        pointer = element(context, builder, signature.args[0], args[0], args[1], context.get_value_type(like))
        return builder.load(pointer, align=array.dtype.bitwidth // 8)

    return like(array, types.intp, like), codegen


@intrinsic
def load_twice(typing_context, array, index):
    """The short vector that starts at ``array[index]`` in both halves of a wide one."""
    half = Vector(array.dtype)

    def codegen(context, builder, signature, args):
        pointer = element(context, builder, signature.args[0], args[0], args[1], context.get_value_type(half))
        value = builder.load(pointer, align=array.dtype.bitwidth // 8)
        return _chosen(builder, value, value, [*range(half.width)] * 2)

    return WideVector(array.dtype)(array, types.intp), codegen


@intrinsic
def splat_like(typing_context, array, index, like):
    """A vector as long as ``like`` with ``array[index]`` in every lane."""

    def codegen(context, builder, signature, args):
        data = cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0]).data
        return splat_value(builder, builder.load(builder.gep(data, [args[1]])), context.get_value_type(like))

    return like(array, types.intp, like), codegen


@intrinsic
def lanes_of(typing_context, vector):
    """How many numbers a vector holds, as a constant of the compiled code."""
    return types.intp(vector), lambda context, builder, signature, args: ir.Constant(INDEX, vector.width)


@intrinsic
def nothing_wide(typing_context, array):
    """A wide vector of zeros of the kind of ``array``."""
    wide = WideVector(array.dtype)
    return wide(array), lambda context, builder, signature, args: context.get_constant_null(wide)


@intrinsic
def nothing_short(typing_context, array):
    """A short vector of zeros of the kind of ``array``."""
    short = Vector(array.dtype)
    return short(array), lambda context, builder, signature, args: context.get_constant_null(short)


def _chosen(builder, one, other, lanes):
    """Some of the lanes of two vectors."""
    return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(_LANE, len(lanes)), lanes))


def _halves(upper):
    """A function of two wide vectors: their lower or upper halves, one beside the other."""

    @intrinsic
    def beside(typing_context, one, other):
        half = one.width // 2
        first = half if upper else 0
        lanes = [*range(first, first + half), *range(one.width + first, one.width + first + half)]
        return one(one, other), lambda context, builder, signature, args: _chosen(builder, *args, lanes)

    return beside


#: Zeros in the longest registers that there are.
longest_zero = nothing_wide if WIDE else nothing_short
lower_halves, upper_halves = _halves(False), _halves(True)


@intrinsic
def split(typing_context, wide):
    """A wide vector as two short ones."""
    half, short = wide.width // 2, Vector(wide.dtype)

    def codegen(context, builder, signature, args):
        parts = [_chosen(builder, args[0], args[0], [*range(at, at + half)]) for at in (0, half)]
        return context.make_tuple(builder, signature.return_type, parts)

    return types.UniTuple(short, 2)(wide), codegen


@intrinsic
def splat_of(typing_context, value, like):
    """A vector as long as ``like`` with ``value`` in every lane."""

    def codegen(context, builder, signature, args):
        return splat_value(builder, args[0], context.get_value_type(like))

    return like(value, like), codegen


@ladder
def load_four(matrix, at, like):
    """Four vectors below each other, as long as ``like``."""
    size = matrix.shape[1]
    return (
        load_like(matrix, at, like),
        load_like(matrix, at + size, like),
        load_like(matrix, at + 2 * size, like),
        load_like(matrix, at + 3 * size, like),
    )


@ladder
def store_four(matrix, at, a, b, c, d):
    """Write four vectors below each other."""
    size = matrix.shape[1]
    store(matrix, at, a)
    store(matrix, at + size, b)
    store(matrix, at + 2 * size, c)
    store(matrix, at + 3 * size, d)
