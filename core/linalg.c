/* Cholesky factors and inverses. */
#include "linalg.h"

/* upper <- L' where L L' is the matrix whose upper triangle it was. A pivot below `least` is raised to it, or ends the
 * elimination. Returns whether there was one. */
static i64 eliminate(double* upper, i64 n, i64 size, double least, int raise) {
    i64 raised = 0;
    for (i64 j = 0; j < n; j += TILE) {
        const Coefficients above = {upper + j, 1, size};
        double* four = upper + j * size + j;
        PANELS(k, c, size - j) accumulate(SUBTRACT, c, above, upper + j + k, size, j, four + k, size);
        for (i64 own = j; own < at_most(j + TILE, n); own++) {
            double* row = upper + own * size;
            for (i64 k = j; k < own; k++) add_row(row + j, -upper[k * size + own], upper + k * size + j, size - j);
            double pivot = row[own];
            if (!(pivot >= least)) {
                if (!raise) return 1;
                pivot = least;
                raised = 1;
            }
            const double root = sqrt(pivot);
            for (i64 k = j; k < size; k += W) store(row + k, load(row + k) / each(root));
            row[own] = root;
        }
    }
    return raised;
}

/* lower <- chol(scale M + shift I), a pivot below `least` raised to it. Returns whether there was one; only that is
 * found out where lower is null. Of M and L the lower triangles are read and written. `upper` is room for a matrix. */
EXPORT i64 factor_matrix(
    const double* matrix, i64 n, double scale, double shift, double least, double* lower, double* upper) {
    const i64 size = padded(n);
    for (i64 i = 0; i < n; i += TILE)
        for (i64 k = 0; k <= i; k += TILE) {
            Tile t = get_tile(matrix, n, i, k);
            for (int r = 0; r < TILE; r++) t.row[r] = each(scale) * t.row[r];
            store_tile(upper + k * size + i, size, transposed(t));
        }
    for (i64 i = 0; i < n; i++) upper[i * size + i] += shift;
    const i64 raised = eliminate(upper, n, size, least, lower != 0);
    for (i64 i = 0; lower && i < n; i += TILE) {
        for (i64 k = 0; k < i; k += TILE) put_tile(lower, n, i, k, transposed(load_tile(upper + k * size + i, size)));
        for (i64 r = i; r < at_most(i + TILE, n); r++)
            for (i64 c = i; c <= r; c++) lower[r * n + c] = upper[c * size + r];
    }
    return raised;
}

/* Rows i to i + 3 of L^-1, of which those above are there. */
static void invert_rows(const double* lower, i64 n, i64 i, double* inverse, i64 size) {
    const i64 end = at_most(i + TILE, n), first = end == i + TILE ? i : 0;
    double* four = inverse + i * size;
    for (i64 r = 0; r < TILE; r++) clear_row(four + r * size, i + TILE);
    PANELS(k, c, first) {
        const Coefficients f = {lower + i * n + k, n, 1};
        accumulate(SUBTRACT, c, f, inverse + k * size + k, size, i - k, four + k, size);
    }
    for (i64 row = i; row < end; row++) {
        double* own = inverse + row * size;
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
        for (i64 k = 0; k <= i; k += TILE) {
            const i64 from = i * size + k, to = k * size + i;
            store_tile(f->inverse_t + to, size, transposed(load_tile(f->inverse + from, size)));
            if (k < i) store_tile(f->lower_t + to, size, transposed(get_tile(f->lower, n, i, k)));
        }
        for (i64 r = i; r < at_most(i + TILE, n); r++)
            for (i64 c = i; c <= r; c++) f->lower_t[c * size + r] = f->lower[r * n + c];
    }
}

/* square <- (L L')^-1 = K'K, symmetric to the bit. Room for a matrix and four rows. */
EXPORT void invert_square(const double* lower, i64 n, double* square, double* room) {
    const i64 size = padded(n);
    double *inverse = room, *four = inverse + size * size;
    clear_row(inverse, size * size);
    for (i64 i = 0; i < n; i += TILE) invert_rows(lower, n, i, inverse, size);
    for (i64 i = 0; i < n; i += TILE) {
        const double* own = inverse + i * size;
        const Coefficients f = {own + i, 1, size};
        clear_row(four, TILE * size);
        PANELS(k, c, i + TILE) accumulate(FUSE, c, f, own + k, size, size - i, four + k, size);
        for (i64 k = 0; k <= i; k += TILE) {
            const Tile t = load_tile(four + k, size);
            put_tile(square, n, i, k, t);
            put_tile(square, n, k, i, transposed(t));
        }
    }
}

/* total <- total + scale M, in the tiles on and below the diagonal. */
EXPORT void add_scaled(double* total, i64 n, double scale, const double* matrix) {
    for (i64 i = 0; i < n; i++, total += n, matrix += n) {
        const i64 end = i / TILE * TILE + TILE;
        if (end <= n) add_row(total, scale, matrix, end);
        for (i64 k = 0; end > n && k <= i; k++) total[k] += scale * matrix[k];
    }
}
