"""What numba lacks for several rows abreast: their sums in one go, and what neighbours disagree about.

A sum over the lanes of a vector has a written order, from the first to the last: a chain of additions that each wait
for the one before. As many rows as a vector has lanes are transposed instead, and their chains run side by side: the
same additions in the same order, for eight rows at a time.
"""

from __future__ import annotations

from functools import reduce

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from laconic.engine.vectors import INDEX, Vector, element, ladder, width_of

_LANE = ir.IntType(32)
_MOST_VECTORS = 7  # own and summed, and one to spare: sixteen registers


# --------------------------------------------------------------------------------------------------------------------
# Sums and maxima of several rows
# --------------------------------------------------------------------------------------------------------------------


def _transposed(builder, rows):
    """As many vectors as they have lanes: vector k of the result holds lane k of each of ``rows``."""
    width, block = len(rows), 1
    while block < width:  # pairs exchange blocks of lanes, first of one, then of two, ...
        low, high = [], []
        for lane in range(0, width, 2 * block):
            low += [*range(lane, lane + block), *range(width + lane, width + lane + block)]
            high += [*range(lane + block, lane + 2 * block), *range(width + lane + block, width + lane + 2 * block)]
        found = list(rows)
        for k in (k for k in range(width) if not k & block):
            for place, lanes in ((k, low), (k + block, high)):
                mask = ir.Constant(ir.VectorType(_LANE, width), lanes)
                found[place] = builder.shuffle_vector(rows[k], rows[k + block], mask)
        rows, block = found, 2 * block
    return rows


def _across(combine):
    """Make ``across(parts, found, at)``: ``found[at + k]`` is vector k of ``parts``, combined from lane to lane."""

    @intrinsic
    def across(typing_context, parts, found, at):
        kind = Vector(parts.dtype)

        def codegen(context, builder, signature, args):
            vector, align = context.get_value_type(kind), parts.dtype.bitwidth // 8
            rows = []
            for k in range(kind.width):
                position = ir.Constant(INDEX, k * kind.width)
                pointer = element(context, builder, signature.args[0], args[0], position, vector)
                rows.append(builder.load(pointer, align=align))
            total = reduce(lambda a, b: combine(builder, a, b), _transposed(builder, rows))
            pointer = element(context, builder, signature.args[1], args[1], args[2], vector)
            builder.store(total, pointer, align=align)
            return context.get_dummy_value()

        return types.none(parts, found, types.intp), codegen

    return across


sums_across = _across(lambda builder, a, b: builder.fadd(a, b))
peaks_across = _across(lambda builder, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))


# --------------------------------------------------------------------------------------------------------------------
# Disagreement
# --------------------------------------------------------------------------------------------------------------------


def _disagreement(n_vectors):
    """Make ``tile(broadcast, at, k, length, neighbours, start, stop, pull, pull_at)``, some vectors of a disagreement.

    These vectors, from entry k of the row on, stay in registers from the first neighbour to the last.
    """

    @intrinsic
    def tile(typing_context, broadcast, at, k, length, neighbours, start, stop, pull, pull_at):
        kind = Vector(broadcast.dtype)
        align, whole = broadcast.dtype.bitwidth // 8, types.intp

        def codegen(context, builder, signature, args):
            vector = context.get_value_type(kind)
            at, k, length, start, stop, pull_at = (args[n] for n in (1, 2, 3, 5, 6, 8))

            def vectors(n, first):
                places = [builder.add(first, ir.Constant(INDEX, v * kind.width)) for v in range(n_vectors)]
                return [element(context, builder, signature.args[n], args[n], place, vector) for place in places]

            listed = cgutils.create_struct_proxy(signature.args[4])(context, builder, args[4]).data
            own = [builder.load(pointer, align=align) for pointer in vectors(0, builder.add(at, k))]
            # Minus zero, to which anything may be added that then is what it was.
            nothing = ir.Constant(vector, [-0.0] * kind.width)
            sums = [cgutils.alloca_once_value(builder, nothing) for _ in own]
            with cgutils.for_range_slice(builder, start, stop, ir.Constant(INDEX, 1), INDEX) as (index, _):
                other = builder.sext(builder.load(builder.gep(listed, [index])), INDEX)
                theirs = vectors(0, builder.add(builder.mul(other, length), k))
                for mine, pointer, total in zip(own, theirs, sums, strict=True):
                    apart = builder.fsub(mine, builder.load(pointer, align=align))
                    builder.store(builder.fadd(builder.load(total), apart), total)
            for pointer, total in zip(vectors(7, builder.add(pull_at, k)), sums, strict=True):
                builder.store(builder.load(total), pointer, align=align)
            return context.get_dummy_value()

        return types.none(broadcast, whole, whole, whole, neighbours, whole, whole, pull, whole), codegen

    return tile


_one, _two, _three, _four, _five, _six, _seven = (_disagreement(n + 1) for n in range(_MOST_VECTORS))


@ladder
def disagree_row(broadcast, at, neighbours, start, stop, pull, pull_at, size):
    """Sum over neighbours of (theta-hat_i - theta-hat_j), in the order of their list, which is not empty.

    ``size`` is that of ``pull``, in whole vectors. Where rows end with half of one, what is behind that belongs to the
    next row and means nothing.
    """
    width, length = width_of(broadcast), broadcast.shape[1]
    if size == 3 * width:  # of rows this short, how to find the tile would be a tenth of all that is learned
        _three(broadcast, at, 0, length, neighbours, start, stop, pull, pull_at)
        return
    k = 0
    while k < size:
        left = (size - k) // width
        if left >= 7:
            _seven(broadcast, at, k, length, neighbours, start, stop, pull, pull_at)
        elif left == 6:
            _six(broadcast, at, k, length, neighbours, start, stop, pull, pull_at)
        elif left == 5:
            _five(broadcast, at, k, length, neighbours, start, stop, pull, pull_at)
        elif left == 4:
            _four(broadcast, at, k, length, neighbours, start, stop, pull, pull_at)
        elif left == 3:
            _three(broadcast, at, k, length, neighbours, start, stop, pull, pull_at)
        elif left == 2:
            _two(broadcast, at, k, length, neighbours, start, stop, pull, pull_at)
        else:
            _one(broadcast, at, k, length, neighbours, start, stop, pull, pull_at)
        k += min(left, 7) * width
