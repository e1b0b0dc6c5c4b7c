"""x -> phi(x): a matrix product and a sine-cosine, both made for rows that come a few at a time.

The product is summed in one written order, so a row has the same bits alone, in any block, and on any machine; being
made for a few dozen columns it is also faster here than a general library.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from laconic.engine.lanes import where_less
from laconic.engine.lifting import lift_rows
from laconic.engine.vectors import (
    INDEX,
    Vector,
    all_less,
    call_llvm,
    doubled,
    element,
    jit,
    load,
    splat,
    splat_value,
    vector_abs,
    width_of,
)


def product_tile(n_rows: int, n_vectors: int):
    """Make ``tile(x, x_row, w, z, row, column)``, one register tile of the product ``z[row:] = x[x_row:] w``.

    The tile covers ``n_rows`` rows of ``x`` and ``n_vectors`` registers of columns of ``w``. Every entry of ``z`` is
    the chain ``fma(x_k, w_k, ...)`` over k in order, from zero, whatever the tile: a row has the same bits alone and in
    a block. All three arrays are C-contiguous; the caller keeps the tile inside them.
    """

    @intrinsic
    def tile(typing_context, x, x_row, w, z, row, column):
        kind = Vector(x.dtype)
        width, align = kind.width, x.dtype.bitwidth // 8

        def codegen(context, builder, signature, args):
            vector = context.get_value_type(kind)

            def at(pointer, *offsets):
                for offset in offsets:
                    pointer = builder.gep(pointer, [offset])
                return pointer

            def as_vector(pointer, index):
                return builder.bitcast(at(pointer, ir.Constant(INDEX, index * width)), vector.as_pointer())

            xs, ws, zs = (
                cgutils.create_struct_proxy(array)(context, builder, value)
                for array, value in ((signature.args[n], args[n]) for n in (0, 2, 3))
            )
            x_first, z_first, first_column = args[1], args[4], args[5]
            depth = builder.extract_value(ws.shape, 0)
            x_stride, w_stride, z_stride = (builder.extract_value(a.shape, 1) for a in (xs, ws, zs))
            rows = [ir.Constant(INDEX, k) for k in range(n_rows)]
            x_rows = [at(xs.data, builder.mul(builder.add(x_first, r), x_stride)) for r in rows]
            z_rows = [at(zs.data, builder.mul(builder.add(z_first, r), z_stride), first_column) for r in rows]

            zero = ir.Constant(vector, [0.0] * width)
            sums = [[cgutils.alloca_once_value(builder, zero) for _ in range(n_vectors)] for _ in rows]
            with cgutils.for_range(builder, depth) as loop:
                w_row = at(ws.data, builder.mul(loop.index, w_stride), first_column)
                columns = [builder.load(as_vector(w_row, v), align=align) for v in range(n_vectors)]
                for x_row, row_sums in zip(x_rows, sums, strict=True):
                    factor = splat_value(builder, builder.load(at(x_row, loop.index)), vector)
                    for column_vector, total in zip(columns, row_sums, strict=True):
                        fused = call_llvm(builder, "fma", vector, [factor, column_vector, builder.load(total)])
                        builder.store(fused, total)
            for z_row, row_sums in zip(z_rows, sums, strict=True):
                for v, total in enumerate(row_sums):
                    builder.store(builder.load(total), as_vector(z_row, v), align=align)
            return context.get_dummy_value()

        return types.none(x, x_row, w, z, row, column), codegen

    return tile


_tile_4x3 = product_tile(4, 3)
_tile_4x1 = product_tile(4, 1)
_tile_1x3 = product_tile(1, 3)
_tile_1x1 = product_tile(1, 1)


@jit
def project(samples, start, stop, frequencies, phases):
    """``phases[:stop - start] = samples[start:stop] @ frequencies``; frequencies are (d, P), P whole vectors."""
    n_rows, n_columns = stop - start, frequencies.shape[1]
    width = width_of(samples)
    column = 0
    while column < n_columns:
        wide = column + 3 * width <= n_columns
        row = 0
        while row + 4 <= n_rows:
            if wide:
                _tile_4x3(samples, start + row, frequencies, phases, row, column)
            else:
                _tile_4x1(samples, start + row, frequencies, phases, row, column)
            row += 4
        while row < n_rows:
            if wide:
                _tile_1x3(samples, start + row, frequencies, phases, row, column)
            else:
                _tile_1x1(samples, start + row, frequencies, phases, row, column)
            row += 1
        column += 3 * width if wide else width


_LANE = ir.IntType(32)


class _Waves(NamedTuple):
    """The numbers of a sine-cosine by reduction to a quadrant (Cody-Waite) and two short polynomials.

    The polynomials are the minimax ones of ``tools/sincos_coefficients.py``. ``magic`` is 1.5 times 2 to the length of
    the mantissa: adding it rounds ``2 x / pi`` to an integer and leaves that integer in the lowest bits of the sum.
    """

    magic: float
    half_pi: tuple[float, float]
    sine: tuple[float, ...]
    cosine: tuple[float, ...]


_WAVES = {
    64: _Waves(
        magic=1.5 * 2.0**52,
        half_pi=(1.5707963267959713, -1.0746346554971943e-12),
        sine=(
            1.5888585987655027e-10,
            -2.5050600239548635e-08,
            2.755731254478094e-06,
            -0.0001984126982593414,
            0.008333333333316482,
            -0.166666666666666,
        ),
        cosine=(
            -1.1359669909795541e-11,
            2.0875723685258083e-09,
            -2.7557314355248004e-07,
            2.480158728949185e-05,
            -0.0013888888888874138,
            0.0416666666666666,
        ),
    ),
    32: _Waves(
        magic=1.5 * 2.0**23,
        half_pi=(1.5707963705062866, -4.371138828673793e-08),
        sine=(-0.000194956359337084, 0.00833197869360447, -0.16666650772094727),
        cosine=(2.4438451873720624e-05, -0.001388736767694354, 0.04166664555668831),
    ),
}


def _emit_sine_cosine(builder, phase, vector, n_bits):
    """LLVM's values of sine and cosine of a vector of phases."""
    waves, integers = _WAVES[n_bits], ir.VectorType(ir.IntType(n_bits), vector.count)

    def number(value):
        return ir.Constant(vector, [float(value)] * vector.count)

    def whole(value):
        return ir.Constant(integers, [value] * vector.count)

    def fused(a, b, c):
        return call_llvm(builder, "fma", vector, [a, b, c])

    def turned(value, quadrant):  # the sign is that of the quadrant's second bit
        sign = builder.shl(builder.and_(quadrant, whole(2)), whole(n_bits - 2))
        return builder.bitcast(builder.xor(builder.bitcast(value, integers), sign), vector)

    real = np.float64 if n_bits == 64 else np.float32
    magic = number(waves.magic)
    shifted = fused(phase, number(real(2 / math.pi)), magic)
    quadrant = builder.bitcast(shifted, integers)
    turns = builder.fsub(shifted, magic)
    r = fused(turns, number(-waves.half_pi[1]), fused(turns, number(-waves.half_pi[0]), phase))
    z = builder.fmul(r, r)
    s, c = number(waves.sine[0]), number(waves.cosine[0])
    for term in waves.sine[1:]:
        s = fused(s, z, number(term))
    for term in waves.cosine[1:]:
        c = fused(c, z, number(term))
    s = fused(builder.fmul(s, z), r, r)
    c = fused(fused(c, z, number(-0.5)), z, number(1.0))
    odd = builder.icmp_unsigned("!=", builder.and_(quadrant, whole(1)), whole(0))
    s, c = builder.select(odd, c, s), builder.select(odd, s, c)
    return turned(s, quadrant), turned(c, builder.add(quadrant, whole(1)))


@intrinsic
def sine_cosine(typing_context, phase):
    """``(sin(phase), cos(phase))`` of one phase, |phase| < 1e4."""
    kind, pair = Vector(phase), types.UniTuple(phase, 2)

    def codegen(context, builder, signature, args):
        vector = context.get_value_type(kind)
        both = _emit_sine_cosine(builder, splat_value(builder, args[0], vector), vector, phase.bitwidth)
        return context.make_tuple(builder, pair, [builder.extract_element(one, ir.Constant(_LANE, 0)) for one in both])

    return pair(phase), codegen


@intrinsic
def put_waves(typing_context, phases, at, scale, phi, cosine_at, sine_at):
    """``phi[cosine_at:], phi[sine_at:] = scale cos, scale sin`` of the vector of phases at ``at``, all below 1e4."""

    def codegen(context, builder, signature, args):
        places = [(args[1], args[4], args[5])]
        return _emit_waves(context, builder, signature, args, places)

    return types.none(phases, types.intp, phases.dtype, phi, types.intp, types.intp), codegen


@intrinsic
def put_two_waves(typing_context, phases, at, step, scale, phi, cosine_at, sine_at):
    """``put_waves`` of the vector at ``at`` and of the one ``step`` behind it, for registers that hold both."""

    def codegen(context, builder, signature, args):
        first = args[1], args[5], args[6]
        places = [first, tuple(builder.add(place, args[2]) for place in first)]
        return _emit_waves(context, builder, signature, [*args[:2], *args[3:]], places)

    return types.none(phases, types.intp, types.intp, phases.dtype, phi, types.intp, types.intp), codegen


def _emit_waves(context, builder, signature, args, places):
    """The waves of one vector of phases, or of two: from where in phases to where in ``phi``."""
    array, target = signature.args[0], next(kind for kind in signature.args[1:] if isinstance(kind, types.Array))
    vector, n_bits = context.get_value_type(Vector(array.dtype)), array.dtype.bitwidth
    lanes = [
        ir.Constant(ir.VectorType(_LANE, vector.count), list(range(k, k + vector.count))) for k in (0, vector.count)
    ]
    some = [
        builder.load(element(context, builder, array, args[0], place, vector), align=n_bits // 8)
        for place, _, _ in places
    ]
    phase = some[0]
    if len(places) > 1:
        both = ir.Constant(ir.VectorType(_LANE, 2 * vector.count), list(range(2 * vector.count)))
        phase = builder.shuffle_vector(*some, both)
    factor = splat_value(builder, args[2], phase.type)
    s, c = (builder.fmul(factor, wave) for wave in _emit_sine_cosine(builder, phase, phase.type, n_bits))
    for (_, *to), lane in zip(places, lanes, strict=False):
        for value, place in zip((c, s), to, strict=True):
            part = value if len(places) == 1 else builder.shuffle_vector(value, value, lane)
            builder.store(part, element(context, builder, target, args[3], place, vector), align=n_bits // 8)
    return context.get_dummy_value()


@jit
def map_block(front, samples, start, stop, frequencies, n_frequencies, scale, phases, phi, phi_row):
    """``phi[phi_row:] = phi(samples[start:stop])``; returns how many rows precede the first that is not finite."""
    if front.lifted.size:
        lift_rows(front, samples, start, stop, n_frequencies, phi, phi_row)
        project(front.lifted, 0, stop - start, frequencies, phases)
    else:
        project(samples, start, stop, frequencies, phases)
    return wave(phases, stop - start, n_frequencies, scale, phi, phi_row)


@jit
def wave(phases, n_rows, n_frequencies, scale, phi, phi_row):
    """``phi[phi_row:] = scale [cos(phases), sin(phases)]``; returns how many rows precede the first infinite phase.

    The last vector of a row, or the last two, end where its waves do, and repeat some of those before.
    """
    limit = phases.dtype.type(1e4)
    length, size, width = phases.shape[1], phi.shape[1], width_of(phases)
    limits, one = splat(limit), splat(phases.dtype.type(1))
    beyond = one - one
    for k in range(0, n_rows * length, width):  # of all rows at once: a question a row takes longer than the answer
        beyond = where_less(vector_abs(load(phases, k)), limits, beyond, one)
    inside = all_less(beyond, one)
    for row in range(n_rows):
        at, out = row * length, (phi_row + row) * size
        if n_frequencies > width and doubled():
            for k in range(0, n_frequencies - 2 * width, 2 * width):
                put_two_waves(phases, at + k, width, scale, phi, out + k, out + n_frequencies + k)
            k, step = max(0, n_frequencies - 2 * width), min(width, n_frequencies - width)
            put_two_waves(phases, at + k, step, scale, phi, out + k, out + n_frequencies + k)
        elif n_frequencies >= width:
            for k in range(0, n_frequencies - width, width):
                put_waves(phases, at + k, scale, phi, out + k, out + n_frequencies + k)
            k = n_frequencies - width
            put_waves(phases, at + k, scale, phi, out + k, out + n_frequencies + k)
        else:
            for k in range(n_frequencies):
                s, c = sine_cosine(phases[row, k])
                phi[phi_row + row, k], phi[phi_row + row, n_frequencies + k] = scale * c, scale * s
        if not inside:  # rare: the polynomials' range reduction ends here, the library's does not
            for k in range(n_frequencies):
                z = phases[row, k]
                if not abs(z) < limit:
                    if not math.isfinite(z):
                        return row
                    phi[phi_row + row, k] = scale * math.cos(z)
                    phi[phi_row + row, n_frequencies + k] = scale * math.sin(z)
    return n_rows
