/* Cholesky factors and inverses, with one order of operations for each entry. */
#include "linalg.h"

/* Rows j to j + 3 of an upper triangle, from column i on, lose their products with all rows above. */
INLINE void subtract_above(double* upper, i64 size, i64 j, i64 i, int vectors) {
    double* own = upper + j * size + i;
    vec sums[TILE][2];
    for (int r = 0; r < TILE; r++) for (int c = 0; c < vectors; c++) sums[r][c] = load(own + r * size + c * W);
    accumulate(SUBTRACT, vectors, (Factors){upper + j, 1, size}, upper + i, size, j, sums);
    for (int r = 0; r < TILE; r++) for (int c = 0; c < vectors; c++) store(own + r * size + c * W, sums[r][c]);
}

/* upper <- L' where L L' is the matrix whose upper triangle it was. A pivot below `least` is raised to it, or ends the
 * elimination. Returns whether there was one. */
static i64 eliminate(double* upper, i64 n, i64 size, double least, int raise) {
    i64 raised = 0;
    for (i64 j = 0; j < n; j += TILE) {
        i64 i = j;
        for (; i + 2 * W <= size; i += 2 * W) subtract_above(upper, size, j, i, 2);
        if (i < size) subtract_above(upper, size, j, i, 1);
        for (i64 own = j; own < at_most(j + TILE, n); own++) {
            double* row = upper + own * size;
            for (i64 k = j; k < own; k++) {
                const vec factor = each(upper[k * size + own]);
                for (i64 c = j; c < size; c += W) store(row + c, load(row + c) - factor * load(upper + k * size + c));
            }
            double pivot = row[own];
            if (!(pivot >= least)) {
                if (!raise) return 1;
                pivot = least;
                raised = 1;
            }
            const double root = sqrt(pivot);
            for (i64 c = j; c < size; c += W) store(row + c, load(row + c) / each(root));
            row[own] = root;
        }
    }
    return raised;
}

/* lower <- chol(scale M + shift I), a pivot below `least` raised to it. Returns whether there was one; that alone is
 * found out where lower is null. Only the lower triangles of M and L are read and written. Room for one matrix. */
EXPORT i64 factor_matrix(const double* matrix, i64 n, double scale, double shift, double least, double* lower, double* room) {
    const i64 size = padded(n);
    double* upper = room;
    for (i64 i = 0; i < n; i += TILE)
        for (i64 k = 0; k <= i; k += TILE) {
            Tile t = get_tile(matrix, n, i, k);
            for (int r = 0; r < TILE; r++) t.row[r] = each(scale) * t.row[r];
            store_tile(upper + k * size + i, size, transposed(t));
        }
    for (i64 i = 0; i < n; i++) upper[i * size + i] += shift;
    const i64 raised = eliminate(upper, n, size, least, lower != 0);
    if (!lower) return raised;
    for (i64 i = 0; i < n; i += TILE) {
        for (i64 k = 0; k < i; k += TILE) put_tile(lower, n, i, k, transposed(load_tile(upper + k * size + i, size)));
        for (i64 r = i; r < at_most(i + TILE, n); r++) for (i64 c = i; c <= r; c++) lower[r * n + c] = upper[c * size + r];
    }
    return raised;
}

/* Rows i to i + 3 of L^-1, of which those above are there. */
static void invert_rows(const double* lower, i64 n, i64 i, double* inverse, i64 size) {
    const i64 end = at_most(i + TILE, n), first = end == i + TILE ? i : 0;
    for (i64 k = 0; k < first; k += W) {
        vec sums[TILE][2] = {{{0}}};
        accumulate(SUBTRACT, 1, (Factors){lower + i * n + k, n, 1}, inverse + k * size + k, size, i - k, sums);
        for (int r = 0; r < TILE; r++) store(inverse + (i + r) * size + k, sums[r][0]);
    }
    for (i64 row = i; row < end; row++) {
        double* own = inverse + row * size;
        clear_row(own + first, i + TILE - first);
        for (i64 j = first; j < row; j++) add_row(own, -lower[row * n + j], inverse + j * size, padded(j + 1));
        own[row] = 1;
        const vec scale = each(1 / lower[row * n + row]);
        for (i64 k = 0; k < i + TILE; k += W) store(own + k, scale * load(own + k));
    }
}

/* K = L^-1, K' and L'. */
EXPORT void invert_factor(const Factor* f) {
    const i64 n = f->n, size = f->size;
    for (i64 i = 0; i < n; i += TILE) {
        invert_rows(f->lower, n, i, f->inverse, size);
        for (i64 k = 0; k <= i; k += TILE) store_tile(f->inverse_t + k * size + i, size, transposed(load_tile(f->inverse + i * size + k, size)));
        for (i64 k = 0; k < i; k += TILE) store_tile(f->lower_t + k * size + i, size, transposed(get_tile(f->lower, n, i, k)));
        for (i64 r = i; r < at_most(i + TILE, n); r++) for (i64 c = i; c <= r; c++) f->lower_t[c * size + r] = f->lower[r * n + c];
    }
}

/* Tiles of K'K at row i, in one or two vectors of columns from k on, and where they stand transposed. */
INLINE void square_tiles(int vectors, const double* inverse, i64 size, i64 i, i64 k, double* square, i64 n) {
    vec sums[TILE][2] = {{{0}}};
    accumulate(FUSE, vectors, (Factors){inverse + i * size + i, 1, size}, inverse + i * size + k, size, size - i, sums);
    for (int c = 0; c < vectors; c++) {
        const Tile t = {{sums[0][c], sums[1][c], sums[2][c], sums[3][c]}};
        put_tile(square, n, i, k + c * W, t);
        put_tile(square, n, k + c * W, i, transposed(t));
    }
}
/* square <- (L L')^-1 = K'K, symmetric to the bit. Room for one matrix. */
EXPORT void invert_square(const double* lower, i64 n, double* square, double* room) {
    const i64 size = padded(n);
    double* inverse = room;
    for (i64 i = 0; i < n; i += TILE) invert_rows(lower, n, i, inverse, size);
    for (i64 i = n; i < size; i++) clear_row(inverse + i * size, size);
    for (i64 i = 0; i < n; i += TILE) {
        i64 k = 0;
        for (; k < i; k += 2 * W) square_tiles(2, inverse, size, i, k, square, n);
        if (k == i) square_tiles(1, inverse, size, i, k, square, n);
    }
}

/* total <- total + scale M, in the tiles on and below the diagonal. */
EXPORT void add_scaled(double* total, i64 n, double scale, const double* matrix) {
    for (i64 i = 0; i < n; i += TILE)
        for (i64 k = 0; k <= i; k += TILE) {
            Tile t = get_tile(total, n, i, k);
            const Tile m = get_tile(matrix, n, i, k);
            for (int r = 0; r < TILE; r++) t.row[r] = t.row[r] + each(scale) * m.row[r];
            put_tile(total, n, i, k, t);
        }
}
