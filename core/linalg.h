/* Matrices of a wave: symmetric or triangular, in row-major order, processed in tiles of four rows by four columns.
 *
 * Agents must agree about them to the bit. So every entry has one written order: products are added from the first to
 * the last, and not fused. A padded matrix has rows of `size` entries, n rounded up to whole vectors, and as many rows.
 */
#ifndef LINALG_H
#define LINALG_H
#include "rows.h"

enum { TILE = 4 };

/* A Cholesky factor L and what follows from it, padded; entries outside the triangles are zero from the start. */
typedef struct {
    i64 n, size;
    const double* lower; /* L (n, n) */
    double* inverse;     /* K = L^-1 */
    double* inverse_t;   /* K' */
    double* lower_t;     /* L' */
} Factor;

typedef struct { vec row[TILE]; } Tile;

#if defined(__clang__)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (ivec){__VA_ARGS__})
#endif

INLINE i64 padded(i64 n) { return (n + W - 1) / W * W; }
INLINE i64 at_most(i64 a, i64 b) { return a < b ? a : b; }

/* Memory for `count` doubles or integers from the room that a caller provides, on a cache line. */
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
INLINE Tile transposed(Tile t) {
    const vec a = SHUFFLE(t.row[0], t.row[1], 0, 4, 1, 5), b = SHUFFLE(t.row[0], t.row[1], 2, 6, 3, 7);
    const vec c = SHUFFLE(t.row[2], t.row[3], 0, 4, 1, 5), d = SHUFFLE(t.row[2], t.row[3], 2, 6, 3, 7);
    return (Tile){{SHUFFLE(a, c, 0, 1, 4, 5), SHUFFLE(a, c, 2, 3, 6, 7), SHUFFLE(b, d, 0, 1, 4, 5), SHUFFLE(b, d, 2, 3, 6, 7)}};
}
/* The tile at row i and column k of n by n entries; what is beyond them is zero, and not written. */
INLINE Tile get_tile(const double* matrix, i64 n, i64 i, i64 k) {
    if (i + TILE <= n && k + TILE <= n) return load_tile(matrix + i * n + k, n);
    double rest[TILE * TILE] = {0};
    for (i64 r = 0; r < at_most(TILE, n - i); r++)
        for (i64 c = 0; c < at_most(TILE, n - k); c++) rest[r * TILE + c] = matrix[(i + r) * n + k + c];
    return load_tile(rest, TILE);
}
INLINE void put_tile(double* matrix, i64 n, i64 i, i64 k, Tile t) {
    if (i + TILE <= n && k + TILE <= n) {
        store_tile(matrix + i * n + k, n, t);
        return;
    }
    double rest[TILE * TILE];
    store_tile(rest, TILE, t);
    for (i64 r = 0; r < at_most(TILE, n - i); r++)
        for (i64 c = 0; c < at_most(TILE, n - k); c++) matrix[(i + r) * n + k + c] = rest[r * TILE + c];
}
/* The sum of each row, its lanes from the first to the last. */
INLINE vec row_sums(Tile t) {
    const Tile c = transposed(t);
    return ((c.row[0] + c.row[1]) + c.row[2]) + c.row[3];
}

/* Factors f[m][r] of four rows r, for products m = 0, 1, ... */
typedef struct { const double* at; i64 to_row, to_next; } Factors;
enum { ADD, SUBTRACT, FUSE };

/* sums[r][c] += or -= f[m][r] x[m][c] over m, for four rows and one or two vectors of columns. */
INLINE void accumulate(int how, int vectors, Factors f, const double* x, i64 stride, i64 count, vec sums[TILE][2]) {
    for (i64 m = 0; m < count; m++) {
        vec columns[2];
        for (int c = 0; c < vectors; c++) columns[c] = load(x + m * stride + c * W);
        for (int r = 0; r < TILE; r++) {
            const vec factor = each(f.at[m * f.to_next + r * f.to_row]);
            for (int c = 0; c < vectors; c++)
                sums[r][c] = how == FUSE ? fused(factor, columns[c], sums[r][c])
                    : how == ADD ? sums[r][c] + factor * columns[c] : sums[r][c] - factor * columns[c];
        }
    }
}

#endif
