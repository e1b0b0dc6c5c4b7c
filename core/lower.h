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

/* What a pass does to each entry, in this order: P <- P - u u', P <- raised P, P <- P - v v' - w w' or, crossed,
 * P <- P - w v' - v w'; and gain = P x. */
enum { LOWER = 1, RAISE = 2, LOWER_TWICE = 4, GAIN = 8, LOWER_CROSSED = 16 };
typedef struct { const double *u, *v, *w, *x; double raised; double* gain; } Pass;

INLINE void scale_row(double factor, const double* row, double* scaled, i64 n) {
    for (i64 k = 0; k < n; k += W) store(scaled + k, each(factor) * load(row + k));
}

/* Four rows from row j on, columns from k on: sums are those along the rows, up to column k. */
INLINE void pass_four(const Lower m, const Pass s, const int how, i64 j, i64 k, Tile sums) {
    double* row = m.rows + j * m.stride;
    vec u[TILE], v[TILE], w[TILE], x[TILE];
    for (int r = 0; r < TILE; r++) {
        if (how & LOWER) u[r] = each(-s.u[j + r]);
        if (how & (LOWER_TWICE | LOWER_CROSSED)) { v[r] = each(-s.v[j + r]); w[r] = each(-s.w[j + r]); }
        if (how & GAIN) x[r] = each(s.x[j + r]);
    }
    for (;; k += W) {
        vec u_k, v_k, w_k, x_k, p[TILE];
        if (how & LOWER) u_k = load(s.u + k);
        if (how & (LOWER_TWICE | LOWER_CROSSED)) { v_k = load(s.v + k); w_k = load(s.w + k); }
        if (how & GAIN) x_k = load(s.x + k);
        for (int r = 0; r < TILE; r++) {
            p[r] = load(row + r * m.stride + k);
            if (how & LOWER) p[r] = fused(u[r], u_k, p[r]);
            if (how & RAISE) p[r] = each(s.raised) * p[r];
            if (how & LOWER_TWICE) p[r] = fused(w[r], w_k, fused(v[r], v_k, p[r]));
            if (how & LOWER_CROSSED) p[r] = fused(v[r], w_k, fused(w[r], v_k, p[r]));
            if (how & ~GAIN) store(row + r * m.stride + k, p[r]);
            if (how & GAIN) sums.row[r] = fused(p[r], x_k, sums.row[r]);
        }
        if (k == j) break;
        if (how & GAIN) store(s.gain + k, load(s.gain + k) + (fused(p[1], x[1], p[0] * x[0]) + fused(p[3], x[3], p[2] * x[2])));
    }
    if (how & GAIN) store(s.gain + j, load(s.gain + j) + row_sums(sums));
}

#if defined(__AVX512F__)
/* Eight columns at a time, with the same bits: sums along rows r and r + 4 lie in one register. */
INLINE void pass_eight(const Lower m, const Pass s, const int how, i64 j) {
    double* row = m.rows + j * m.stride;
    wide u[2 * TILE], v[2 * TILE], w[2 * TILE], x[2 * TILE], sums[TILE] = {{0}};
    for (int r = 0; r < 2 * TILE; r++) {
        if (how & LOWER) u[r] = each_wide(-s.u[j + r]);
        if (how & LOWER_CROSSED) { v[r] = each_wide(-s.v[j + r]); w[r] = each_wide(-s.w[j + r]); }
        x[r] = each_wide(s.x[j + r]);
    }
    for (i64 k = 0; k < j; k += 2 * W) {
        const wide x_left = twice(s.x + k), x_right = twice(s.x + k + W);
        wide u_k, v_k, w_k, p[2 * TILE];
        if (how & LOWER) u_k = load_wide(s.u + k);
        if (how & LOWER_CROSSED) { v_k = load_wide(s.v + k); w_k = load_wide(s.w + k); }
        for (int r = 0; r < TILE; r++) {
            for (int q = r; q < 2 * TILE; q += TILE) {
                p[q] = load_wide(row + q * m.stride + k);
                if (how & LOWER) p[q] = fused_wide(u[q], u_k, p[q]);
                if (how & RAISE) p[q] = each_wide(s.raised) * p[q];
                if (how & LOWER_CROSSED) p[q] = fused_wide(v[q], w_k, fused_wide(w[q], v_k, p[q]));
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
    pass_four(m, s, how, j, j, first);
    pass_four(m, s, how, j + TILE, j, second);
}
#endif

INLINE void pass(const Lower m, const Pass s, const int how) {
    i64 j = 0;
    if (how & GAIN) clear_row(s.gain, m.size);
#if defined(__AVX512F__)
    if (how & GAIN && !(how & LOWER_TWICE)) for (; j + 2 * TILE <= m.size; j += 2 * TILE) pass_eight(m, s, how, j);
#endif
    for (; j < m.size; j += TILE) pass_four(m, s, how, j, 0, (Tile){{{0}}});
}

#endif
