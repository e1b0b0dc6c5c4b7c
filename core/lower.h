/* A symmetric matrix P, of which the tiles on and below the diagonal are read and written: half the memory.
 *
 * Rows are padded to whole vectors, and may lie further apart. What a sample does to P is done in one pass. Every entry
 * is a chain of fused operations in the order of the samples and every sum has one order, so the bits do not depend on
 * how samples are cut into blocks. Tiles on the diagonal are whole: both halves are the same products, so they stay
 * symmetric to the bit.
 */
#ifndef LOWER_H
#define LOWER_H
#include "tiles.h"

typedef struct { double* rows; i64 size, stride; } Lower;

/* What a pass does to each entry, in this order: P <- P - u u', P <- raised P, P <- P - v v' - w w' or, where factors
 * are crossed, P <- P - w v' - v w'; and gain = P x. */
enum { LOWER = 1, RAISE = 2, LOWER_TWICE = 4, GAIN = 8, CROSS = 16 };
typedef struct { const double *u, *v, *w, *x; double raised; double* gain; } Pass;

INLINE void scale_row(double factor, const double* row, double* scaled, i64 n) {
    for (i64 k = 0; k < n; k += W) store(scaled + k, each(factor) * load(row + k));
}

/* Entry j + r of a row in every lane, negated if need be. */
INLINE Tile factors_of(const double* row, double sign, i64 j) {
    Tile f;
    for (int r = 0; r < TILE; r++) f.row[r] = each(sign * row[j + r]);
    return f;
}
typedef struct { Tile u, v, w, x; } RowFactors;
INLINE RowFactors factors_at(const Pass s, const int how, i64 j) {
    RowFactors f;
    if (how & LOWER) f.u = factors_of(s.u, -1.0, j);
    if (how & LOWER_TWICE) {
        f.v = factors_of(how & CROSS ? s.w : s.v, -1.0, j);
        f.w = factors_of(how & CROSS ? s.v : s.w, -1.0, j);
    }
    if (how & GAIN) f.x = factors_of(s.x, 1.0, j);
    return f;
}
/* Change columns k to k + 3 of four rows of P. */
INLINE Tile change_tile(double* row, i64 stride, const Pass s, const int how, const RowFactors f, i64 k) {
    vec u, v, w;
    Tile p;
    if (how & LOWER) u = load(s.u + k);
    if (how & LOWER_TWICE) { v = load(s.v + k); w = load(s.w + k); }
    for (int r = 0; r < TILE; r++) {
        p.row[r] = load(row + r * stride + k);
        if (how & LOWER) p.row[r] = fused(f.u.row[r], u, p.row[r]);
        if (how & RAISE) p.row[r] = each(s.raised) * p.row[r];
        if (how & LOWER_TWICE) p.row[r] = fused(f.w.row[r], w, fused(f.v.row[r], v, p.row[r]));
        if (how & ~GAIN) store(row + r * stride + k, p.row[r]);
    }
    return p;
}
/* A tile adds to P x along its rows, and down its columns: the upper half of P, which is not kept. */
INLINE Tile add_along(Tile p, vec x, Tile sums) {
    for (int r = 0; r < TILE; r++) sums.row[r] = fused(p.row[r], x, sums.row[r]);
    return sums;
}
INLINE vec sum_down(Tile p, Tile x) {
    return fused(p.row[1], x.row[1], p.row[0] * x.row[0]) + fused(p.row[3], x.row[3], p.row[2] * x.row[2]);
}

INLINE void pass_four(const Lower m, const Pass s, const int how, i64 j) {
    double* row = m.rows + j * m.stride;
    const RowFactors f = factors_at(s, how, j);
    Tile sums = {{{0}}};
    for (i64 k = 0; k < j; k += W) {
        const Tile p = change_tile(row, m.stride, s, how, f, k);
        if (!(how & GAIN)) continue;
        sums = add_along(p, load(s.x + k), sums);
        store(s.gain + k, load(s.gain + k) + sum_down(p, f.x));
    }
    const Tile p = change_tile(row, m.stride, s, how, f, j);
    if (how & GAIN) store(s.gain + j, (vec){0} + row_sums(add_along(p, load(s.x + j), sums)));
}

#if defined(__AVX512F__)
INLINE wide load_part_wide(const double* p, int half) {
    return half ? (wide)_mm512_zextpd256_pd512(_mm256_loadu_pd(p)) : load_wide(p);
}
INLINE void store_part_wide(double* p, wide v, int half) {
    if (half) _mm256_storeu_pd(p, _mm512_castpd512_pd256((__m512d)v));
    else store_wide(p, v);
}

/* Eight columns at a time, with the same bits: sums along rows r and r + 4 lie in one register. */
INLINE void pass_eight(const Lower m, const Pass s, const int how, i64 j) {
    double* row = m.rows + j * m.stride;
    wide u[2 * TILE], v[2 * TILE], w[2 * TILE], x[2 * TILE], sums[TILE] = {{0}};
    for (int r = 0; r < 2 * TILE; r++) {
        if (how & LOWER) u[r] = each_wide(-s.u[j + r]);
        if (how & LOWER_TWICE) {
            v[r] = each_wide(-(how & CROSS ? s.w : s.v)[j + r]);
            w[r] = each_wide(-(how & CROSS ? s.v : s.w)[j + r]);
        }
        x[r] = each_wide(s.x[j + r]);
    }
    for (i64 k = 0; k < j; k += 2 * W) {
        const wide x_left = twice(s.x + k), x_right = twice(s.x + k + W);
        wide u_k, v_k, w_k, p[2 * TILE];
        if (how & LOWER) u_k = load_wide(s.u + k);
        if (how & LOWER_TWICE) { v_k = load_wide(s.v + k); w_k = load_wide(s.w + k); }
        for (int r = 0; r < TILE; r++) {
            for (int q = r; q < 2 * TILE; q += TILE) {
                p[q] = load_wide(row + q * m.stride + k);
                if (how & LOWER) p[q] = fused_wide(u[q], u_k, p[q]);
                if (how & RAISE) p[q] = each_wide(s.raised) * p[q];
                if (how & LOWER_TWICE) p[q] = fused_wide(w[q], w_k, fused_wide(v[q], v_k, p[q]));
                if (how & ~GAIN) store_wide(row + q * m.stride + k, p[q]);
            }
            sums[r] = fused_wide(lower_halves(p[r], p[r + TILE]), x_left, sums[r]);
            sums[r] = fused_wide(upper_halves(p[r], p[r + TILE]), x_right, sums[r]);
        }
        wide gain = load_wide(s.gain + k);
        for (int r = 0; r < 2 * TILE; r += TILE)
            gain += fused_wide(p[r + 1], x[r + 1], p[r] * x[r]) + fused_wide(p[r + 3], x[r + 3], p[r + 2] * x[r + 2]);
        store_wide(s.gain + k, gain);
    }
    Tile first, second;
    for (int r = 0; r < TILE; r++) {
        first.row[r] = (vec)_mm512_castpd512_pd256((__m512d)sums[r]);
        second.row[r] = (vec)_mm512_extractf64x4_pd((__m512d)sums[r], 1);
    }
    const RowFactors f = factors_at(s, how, j), g = factors_at(s, how, j + TILE);
    const vec x_j = load(s.x + j);
    double* below = row + TILE * m.stride;
    const Tile a = change_tile(row, m.stride, s, how, f, j);
    const Tile b = change_tile(below, m.stride, s, how, g, j), c = change_tile(below, m.stride, s, how, g, j + TILE);
    const vec low = ((vec){0} + row_sums(add_along(a, x_j, first))) + sum_down(b, g.x);
    const vec high = (vec){0} + row_sums(add_along(c, load(s.x + j + TILE), add_along(b, x_j, second)));
    store(s.gain + j, low);
    store(s.gain + j + TILE, high);
}
#else
typedef vec wide;
INLINE wide load_part_wide(const double* p, int half) { (void)half; return load(p); }
INLINE void store_part_wide(double* p, wide v, int half) { (void)half; store(p, v); }
INLINE wide each_wide(double x) { return each(x); }
INLINE wide fused_wide(wide a, wide b, wide c) { return fused(a, b, c); }
#endif

INLINE void pass(const Lower m, const Pass s, const int how) {
    i64 j = 0;
#if defined(__AVX512F__)
    if (how & GAIN) for (; j + 2 * TILE <= m.size; j += 2 * TILE) pass_eight(m, s, how, j);
#endif
    for (; j < m.size; j += TILE) pass_four(m, s, how, j);
}

#endif
