"""A number a row, for as many rows as a vector has lanes: what decides over rows abreast, without a loop over them.

numba would make vectors of such loops by itself, but asks at every group of rows whether any two of their arrays
overlap, and takes what it cannot load in order apart lane by lane: that took longer than the arithmetic. The last group
may have fewer rows, so whatever is read or written says how many.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from laconic.engine.coding import RISE
from laconic.engine.vectors import INDEX, Vector, element, ladder, splat, splat_value, vector_rint

_LANE = ir.IntType(32)
_BYTE = ir.IntType(8)
_FLOAT32_MAX = float(np.finfo(np.float32).max)


# --------------------------------------------------------------------------------------------------------------------
# Entries of arrays
# --------------------------------------------------------------------------------------------------------------------


def _first_lanes(builder, count, width):
    """The mask of the first ``count`` lanes."""
    lanes = ir.Constant(ir.VectorType(INDEX, width), list(range(width)))
    return builder.icmp_signed("<", lanes, splat_value(builder, count, lanes.type))


def _masked(builder, name, vector, arguments):
    """Call ``llvm.masked.load`` or ``llvm.masked.store``: lanes that are masked are neither read nor written."""
    returned = vector if name == "load" else ir.VoidType()
    kind = {"float": "f32", "double": "f64"}.get(str(vector.element), str(vector.element))
    function = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(returned, [argument.type for argument in arguments]),
        f"llvm.masked.{name}.v{vector.count}{kind}.p0",
    )
    return builder.call(function, arguments)


def _load_few(builder, pointer, count, vector, align):
    """The vector at ``pointer``, or its first ``count`` lanes and zeros. Whole ones are the rule, and a plain load."""
    value = cgutils.alloca_once(builder, vector)
    with builder.if_else(builder.icmp_signed("<", count, ir.Constant(INDEX, vector.count))) as (few, all_):
        with few:
            arguments = pointer, ir.Constant(_LANE, align), _first_lanes(builder, count, vector.count)
            builder.store(_masked(builder, "load", vector, [*arguments, ir.Constant(vector, None)]), value)
        with all_:
            builder.store(builder.load(pointer, align=align), value)
    return builder.load(value)


def _store_few(builder, value, pointer, count, align):
    """Write a vector to ``pointer``, or but its first ``count`` lanes."""
    with builder.if_else(builder.icmp_signed("<", count, ir.Constant(INDEX, value.type.count))) as (few, all_):
        with few:
            arguments = value, pointer, ir.Constant(_LANE, align), _first_lanes(builder, count, value.type.count)
            _masked(builder, "store", value.type, arguments)
        with all_:
            builder.store(value, pointer, align=align)


@intrinsic
def load_few(typing_context, array, index, count):
    """The first ``count`` lanes of the vector that starts at ``array[index]``, and zeros."""
    kind = Vector(array.dtype)

    def codegen(context, builder, signature, args):
        vector = context.get_value_type(kind)
        pointer = element(context, builder, signature.args[0], args[0], args[1], vector)
        return _load_few(builder, pointer, args[2], vector, array.dtype.bitwidth // 8)

    return kind(array, types.intp, types.intp), codegen


@intrinsic
def store_few(typing_context, array, index, value, count):
    """Write the first ``count`` lanes to ``array[index]`` and the entries after it."""

    def codegen(context, builder, signature, args):
        pointer = element(context, builder, signature.args[0], args[0], args[1], args[2].type)
        _store_few(builder, args[2], pointer, args[3], array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.none(array, types.intp, value, types.intp), codegen


@intrinsic
def load_few_bytes(typing_context, array, index, count, like):
    """``load_few`` of bytes, as a vector of the kind of ``like``."""

    def codegen(context, builder, signature, args):
        narrow = ir.VectorType(_BYTE, like.width)
        pointer = element(context, builder, signature.args[0], args[0], args[1], narrow)
        return builder.uitofp(_load_few(builder, pointer, args[2], narrow, 1), context.get_value_type(like))

    return like(array, types.intp, types.intp, like), codegen


@intrinsic
def store_few_bytes(typing_context, array, index, value, count):
    """``store_few`` of whole numbers from 0 to 255 into bytes, or of 0 and 1 into truth values."""

    def codegen(context, builder, signature, args):
        narrow = ir.VectorType(_BYTE, value.width)
        pointer = element(context, builder, signature.args[0], args[0], args[1], narrow)
        _store_few(builder, builder.fptoui(args[2], narrow), pointer, args[3], 1)
        return context.get_dummy_value()

    return types.none(array, types.intp, value, types.intp), codegen


@intrinsic
def lengths_of(typing_context, starts, index, count, like):
    """``starts[k + 1] - starts[k]`` for k from ``index`` on, below 2^31, as a vector of the kind of ``like``."""

    def codegen(context, builder, signature, args):
        vector = context.get_value_type(like)
        wide, narrow = ir.VectorType(INDEX, like.width), ir.VectorType(_LANE, like.width)
        ends = []
        for step in (0, 1):
            at = builder.add(args[1], ir.Constant(INDEX, step))
            pointer = element(context, builder, signature.args[0], args[0], at, wide)
            ends.append(_load_few(builder, pointer, args[2], wide, 8))
        return builder.sitofp(builder.trunc(builder.sub(ends[1], ends[0]), narrow), vector)

    return like(starts, types.intp, types.intp, like), codegen


# --------------------------------------------------------------------------------------------------------------------
# Lanes
# --------------------------------------------------------------------------------------------------------------------


def _where(predicate):
    """Make ``where(a, b, chosen, other)``: ``chosen`` in lanes where ``a predicate b``, else ``other``."""

    @intrinsic
    def where(typing_context, a, b, chosen, other):
        def codegen(context, builder, signature, args):
            return builder.select(builder.fcmp_ordered(predicate, *args[:2]), *args[2:])

        return chosen(a, b, chosen, other), codegen

    return where


where_less = _where("<")
where_equal = _where("==")
where_numbers = _where("ord")  # neither of them is NaN


@intrinsic
def upward(typing_context, peaks):
    """``upward_float32`` of every lane."""

    def codegen(context, builder, signature, args):
        vector, peaks = args[0].type, args[0]
        most = ir.Constant(vector, [_FLOAT32_MAX] * vector.count)
        peaks = builder.select(builder.fcmp_ordered(">", peaks, most), most, peaks)
        if vector.element == ir.FloatType():
            return peaks
        single, bits = ir.VectorType(ir.FloatType(), vector.count), ir.VectorType(_LANE, vector.count)
        rounded = builder.fptrunc(peaks, single)
        below = builder.zext(builder.fcmp_ordered("<", builder.fpext(rounded, vector), peaks), bits)
        above = builder.bitcast(builder.add(builder.bitcast(rounded, bits), below), single)
        return builder.fpext(above, vector)

    return peaks(peaks), codegen


@ladder
def lattices(real, rounding, cells, low, high):
    """``lattice`` of every lane."""
    half, zero = splat(real(0.5)), splat(real(0.0))
    if rounding == RISE:
        return low, low, half, (high - low) / splat(real(cells))
    width = (high - low) / splat(real(cells - 1))
    lowest = vector_rint(low / width)
    return (lowest - half) * width, zero, lowest, width
