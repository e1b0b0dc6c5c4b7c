/* Matrices of a wave: symmetric or triangular, in row-major order, processed in tiles of four rows by four columns.
 *
 * Agents must agree about them to the bit. So each entry has one written order: products are added from the first to
 * the last, and not fused unless fused() says so. A padded matrix has `size` rows and columns, n rounded up to whole
 * vectors. */
#ifndef LINALG_H
#define LINALG_H
#include "lower.h"

/* A Cholesky factor L and what follows from it, padded; entries outside the triangles are zero from the start. */
typedef struct {
    i64 n, size;
    const double* lower;                   /* L (n, n) */
    double *inverse, *inverse_t, *lower_t; /* K = L^-1, K' and L' */
} Factor;

EXPORT i64 factor_matrix(
    const double* matrix, i64 n, double scale, double shift, double least, double* lower, double* upper);

INLINE i64 padded(i64 n) { return (n + W - 1) / W * W; }

/* Memory for `count` doubles or integers out of the room that a caller provides, from a cache line on. */
INLINE void* take(double** room, i64 count) {
    double* taken = *room;
    *room += (count + 7) / 8 * 8;
    return taken;
}

INLINE Tile load_tile(const double* p, i64 stride) {
    return (Tile){{load(p), load(p + stride), load(p + 2 * stride), load(p + 3 * stride)}};
}
INLINE void store_tile(double* p, i64 stride, Tile t) {
    for (int r = 0; r < TILE; r++) store(p + r * stride, t.row[r]);
}
/* The tile at row i and column k of n by n entries; what is beyond them is zero, and not written. */
INLINE Tile get_tile(const double* matrix, i64 n, i64 i, i64 k) {
    if (i + TILE <= n && k + TILE <= n) return load_tile(matrix + i * n + k, n);
    double rest[TILE * TILE] = {0};
    for (i64 r = i; r < at_most(i + TILE, n); r++)
        for (i64 c = k; c < at_most(k + TILE, n); c++) rest[(r - i) * TILE + c - k] = matrix[r * n + c];
    return load_tile(rest, TILE);
}
INLINE void put_tile(double* matrix, i64 n, i64 i, i64 k, Tile t) {
    double rest[TILE * TILE];
    if (i + TILE <= n && k + TILE <= n) {
        store_tile(matrix + i * n + k, n, t);
        return;
    }
    store_tile(rest, TILE, t);
    for (i64 r = i; r < at_most(i + TILE, n); r++)
        for (i64 c = k; c < at_most(k + TILE, n); c++) matrix[r * n + c] = rest[(r - i) * TILE + c - k];
}

/* Coefficients f[m][r] of four rows r, for products m = 0, 1, ... */
typedef struct { const double* at; i64 to_row, to_next; } Coefficients;
enum { ADD, SUBTRACT, FUSE };
enum { WIDTH = sizeof(wide) / sizeof(double), MAX_COLUMNS = 2 * WIDTH };

/* sums[r][c] += or -= f[m][r] x[m][c], m from 0 on, for four rows and n columns that stay in registers. */
INLINE void accumulate_columns(
    int how, i64 n, Coefficients f, const double* x, i64 stride, i64 count, double* sums, i64 to_row) {
    const int vectors = n > WIDTH ? 2 : 1, half = n < WIDTH;
    wide s[TILE][2], columns[2];
    for (int r = 0; r < TILE; r++)
        for (int c = 0; c < vectors; c++) s[r][c] = load_part_wide(sums + r * to_row + c * WIDTH, half);
    for (i64 m = 0; m < count; m++) {
        for (int c = 0; c < vectors; c++) columns[c] = load_part_wide(x + m * stride + c * WIDTH, half);
        for (int r = 0; r < TILE; r++) {
            const wide factor = each_wide(f.at[m * f.to_next + r * f.to_row]);
            for (int c = 0; c < vectors; c++)
                s[r][c] = how == FUSE ? fused_wide(factor, columns[c], s[r][c])
                    : how == ADD ? s[r][c] + factor * columns[c] : s[r][c] - factor * columns[c];
        }
    }
    for (int r = 0; r < TILE; r++)
        for (int c = 0; c < vectors; c++) store_part_wide(sums + r * to_row + c * WIDTH, s[r][c], half);
}
INLINE void accumulate(
    int how, i64 n, Coefficients f, const double* x, i64 stride, i64 count, double* sums, i64 to_row) {
    if (n == MAX_COLUMNS) accumulate_columns(how, MAX_COLUMNS, f, x, stride, count, sums, to_row);
    else if (n == WIDTH) accumulate_columns(how, WIDTH, f, x, stride, count, sums, to_row);
    else accumulate_columns(how, W, f, x, stride, count, sums, to_row);
}
/* Panels of columns: column k and c - 1 more, as many as fit into registers, until the end. */
INLINE i64 panel(i64 left) { return left >= MAX_COLUMNS ? MAX_COLUMNS : left >= WIDTH ? WIDTH : W; }
#define PANELS(k, c, end) for (i64 k = 0, c; k < (end) && (c = panel((end) - k)); k += c)

#endif
