"""x -> phi(x): a matrix product and a sine-cosine, both made for rows that come a few at a time.

The product is summed in one written order, so a row has the same bits alone, in any block, and on any machine; being
made for a few dozen columns it is also faster here than a general library.
"""

from __future__ import annotations

import math

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

from laconic.engine.lifting import lift_rows
from laconic.engine.vectors import (
    INDEX,
    Vector,
    all_less,
    call_llvm,
    fma,
    from_bits,
    jit,
    load,
    prefetch,
    splat,
    splat_value,
    to_bits,
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


@jit
def prefetch_row(samples, row):
    """Fetch a row of inputs into the cache while there is still other work to do."""
    length = samples.shape[1]
    for k in range(0, length, 64 // samples.itemsize):
        prefetch(samples, row * length + k)


def _make_sine_cosine(real, bits, magic, half_pi, sine, cosine):
    """Sine and cosine by reduction to a quadrant (Cody-Waite) and two short polynomials.

    The polynomials are the minimax ones of ``tools/sincos_coefficients.py``. ``magic`` is 1.5 times 2 to the length of
    the mantissa: adding it rounds ``2 x / pi`` to an integer and leaves that integer in the lowest bits of the sum.
    """
    magic, to_quadrants = real(magic), real(2 / math.pi)
    minus_half_pi, minus_rest = real(-half_pi[0]), real(-half_pi[1])
    minus_half, unit = real(-0.5), real(1.0)
    one, two, to_sign = bits(1), bits(2), bits(8 * real(0).itemsize - 2)
    sine, cosine = tuple(real(a) for a in sine), tuple(real(a) for a in cosine)
    n_sine, n_cosine = len(sine), len(cosine)

    @njit
    def sine_cosine(phase):
        shifted = fma(phase, to_quadrants, magic)
        quadrant = to_bits(shifted)
        turns = shifted - magic
        r = fma(turns, minus_rest, fma(turns, minus_half_pi, phase))
        z = r * r
        s = sine[0]
        for k in range(1, n_sine):
            s = fma(s, z, sine[k])
        c = cosine[0]
        for k in range(1, n_cosine):
            c = fma(c, z, cosine[k])
        s = fma(s * z, r, r)
        c = fma(fma(c, z, minus_half), z, unit)
        odd = (quadrant & one) != 0
        s, c = c if odd else s, s if odd else c
        s = from_bits(bits(to_bits(s) ^ ((quadrant & two) << to_sign)))
        c = from_bits(bits(to_bits(c) ^ (((quadrant + one) & two) << to_sign)))
        return s, c

    return sine_cosine


_sine_cosine_64 = _make_sine_cosine(
    np.float64,
    np.uint64,
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
)
_sine_cosine_32 = _make_sine_cosine(
    np.float32,
    np.uint32,
    magic=1.5 * 2.0**23,
    half_pi=(1.5707963705062866, -4.371138828673793e-08),
    sine=(-0.000194956359337084, 0.00833197869360447, -0.16666650772094727),
    cosine=(2.4438451873720624e-05, -0.001388736767694354, 0.04166664555668831),
)


def sine_cosine(phase):
    """``(sin(phase), cos(phase))`` for a phase of either precision, |phase| < 1e4."""


@overload(sine_cosine)
def _sine_cosine(phase):
    implementation = _sine_cosine_64 if phase.bitwidth == 64 else _sine_cosine_32
    return lambda phase: implementation(phase)


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
    """``phi[phi_row:] = scale [cos(phases), sin(phases)]``; returns how many rows precede the first infinite phase."""
    limit = phases.dtype.type(1e4)
    limits = splat(limit)
    length = phases.shape[1]
    for row in range(n_rows):
        out = phi_row + row
        for k in range(n_frequencies):
            s, c = sine_cosine(phases[row, k])
            phi[out, k] = scale * c
            phi[out, n_frequencies + k] = scale * s
        inside = True
        for k in range(0, length, width_of(phases)):
            inside &= all_less(vector_abs(load(phases, row * length + k)), limits)
        if not inside:  # rare: the polynomials' range reduction ends here, the library's does not
            for k in range(n_frequencies):
                z = phases[row, k]
                if not abs(z) < limit:
                    if not math.isfinite(z):
                        return row
                    phi[out, k] = scale * math.cos(z)
                    phi[out, n_frequencies + k] = scale * math.sin(z)
    return n_rows
