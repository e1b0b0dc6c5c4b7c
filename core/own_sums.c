/* The sums of one agent's data: see OwnSums in rls.h. */
#include "losses.h"
#include "rls.h"

/* A <- f A + x x' for n rows x, in their order. */
typedef struct { double* A; const double* rows; i64 n, size; double forgetting; } Products;
enum { WIDE_LANES = sizeof(wide) / sizeof(double), COLUMN_VECTORS = 3, COLUMNS = COLUMN_VECTORS * WIDE_LANES };

/* Four rows of A, and some vectors of columns that stay in registers; or half of one. */
INLINE void add_tile(int vectors, int half, const Products p, i64 j, i64 k) {
    wide a[TILE][COLUMN_VECTORS], columns[COLUMN_VECTORS];
    double* at = p.A + j * p.size + k;
    const double* x = p.rows;
    for (int r = 0; r < TILE; r++)
        for (int c = 0; c < vectors; c++) a[r][c] = load_part_wide(at + r * p.size + c * WIDE_LANES, half);
    for (i64 row = 0; row < p.n; row++, x += p.size) {
        for (int c = 0; c < vectors; c++) columns[c] = load_part_wide(x + k + c * WIDE_LANES, half);
        for (int r = 0; r < TILE; r++) {
            const wide factor = each_wide(x[j + r]);
            for (int c = 0; c < vectors; c++) {
                if (p.forgetting < 1.0) a[r][c] = each_wide(p.forgetting) * a[r][c];
                a[r][c] = fused_wide(factor, columns[c], a[r][c]);
            }
        }
    }
    for (int r = 0; r < TILE; r++)
        for (int c = 0; c < vectors; c++) store_part_wide(at + r * p.size + c * WIDE_LANES, a[r][c], half);
}
INLINE void add_products(const Products p) {
    for (i64 j = 0; j < p.size; j += TILE) {
        const i64 end = j + TILE;
        i64 k = 0;
        for (; k + COLUMNS <= end; k += COLUMNS) add_tile(COLUMN_VECTORS, 0, p, j, k);
        for (; k + WIDE_LANES <= end; k += WIDE_LANES) add_tile(1, 0, p, j, k);
        if (k < end) add_tile(1, 1, p, j, k);
    }
}
/* A, b, c, m of samples; with f < 1 all that came before shrinks by f each time. */
EXPORT void add_samples(const OwnSums* s, const Samples* added) {
    const i64 size = s->size, width = 2 + s->n_outputs;
    for (i64 row = added->first, n = 0; row < added->stop; row += added->step) {
        const double *square = added->squares + row * width, *phi = added->phi + row * size, weight = square[0];
        if (s->forgetting < 1.0) {
            for (i64 k = 0; k <= s->n_outputs; k++) s->numbers[k] *= s->forgetting;
            scale_row(s->forgetting, s->moments, s->moments, s->n_outputs * size);
        }
        s->numbers[0] += square[1];
        for (i64 k = 0; k < s->n_outputs; k++) {
            const double target = square[2 + k];
            s->numbers[1 + k] += weight * target * target;
            add_row(s->moments + k * size, weight * target, phi, size);
        }
        scale_row(sqrt(weight), phi, s->scaled + n++ * size, size);
        if (n < s->n_scaled && row + added->step < added->stop) continue;
        if (s->forgetting < 1.0) add_products((Products){s->information, s->scaled, n, size, s->forgetting});
        else add_products((Products){s->information, s->scaled, n, size, 1.0});
        n = 0;
    }
}
/* Errors at theta along u: each x = s e u.phi is cut to three root mean squares of those so far and itself. */
EXPORT void watch_samples(const OwnSums* s, const Samples* fresh) {
    const i64 size = s->size, width = 2 + s->n_outputs;
    for (i64 row = fresh->first; row < fresh->stop; row += fresh->step) {
        const double *square = fresh->squares + row * width, *phi = fresh->phi + row * size;
        if (!(square[0] > 0.0)) continue;
        for (i64 k = 0; k < s->n_outputs; k++) {
            const double *theta = s->watched + 2 * k * size, *u = theta + size;
            double *sums = s->sums + 3 * k, x = square[0] * (square[2 + k] - dot(theta, phi, size)) * dot(u, phi, size);
            sums[2] += 1.0;
            const double most = 3.0 * sqrt((sums[1] + x * x) / sums[2]);
            x = MAX(MIN(x, most), -most);
            sums[0] += x;
            sums[1] += x * x;
        }
    }
}
static void multiply(const OwnSums* s, const double* row, double* x, double* product) {
    memcpy(x, row, s->n_features * sizeof(double));
    for (i64 k = s->n_features; k < s->size; k++) x[k] = 0.0;
    pass((Lower){s->information, s->size, s->size}, (Pass){.x = x, .gain = product}, GAIN);
}
/* r = b - A theta of each output; c - 2 b.theta + theta'A theta and d'A d, d = change, in seen, step numbers apart. */
EXPORT void look_back(const OwnSums* s, const double* theta, const double* change, double* residual, double* seen,
                      i64 step) {
    const i64 n = s->n_features;
    double *x = s->scaled, *product = x + s->size;
    for (i64 k = 0; k < s->n_outputs; k++, theta += n, change += n, residual += n, seen += step) {
        const double* moments = s->moments + k * s->size;
        double square = s->numbers[1 + k], curvature = 0.0;
        multiply(s, theta, x, product);
        for (i64 j = 0; j < n; j++) {
            residual[j] = moments[j] - product[j];
            square -= (moments[j] + residual[j]) * theta[j];
        }
        multiply(s, change, x, product);
        for (i64 j = 0; j < n; j++) curvature += product[j] * change[j];
        seen[0] = square;
        seen[1] = curvature;
    }
}
/* A (n, n) without what is above the tiles on its diagonal, and with it. */
EXPORT void copy_lower(const double* rows, i64 stride, i64 n, double* made) {
    const i64 full = n / TILE * TILE;
    for (i64 i = 0; i < n; i++) {
        const i64 kept = i < full ? i / TILE * TILE + TILE : i + 1;
        memcpy(made + i * n, rows + i * stride, kept * sizeof(double));
    }
}
EXPORT void copy_whole(const double* rows, i64 stride, i64 n, double* made) {
    const i64 full = n / TILE * TILE;
    for (i64 i = 0; i < full; i += TILE) {
        for (i64 k = 0; k <= i; k += TILE) {
            Tile t;
            for (int r = 0; r < TILE; r++) t.row[r] = load(rows + (i + r) * stride + k);
            for (int r = 0; r < TILE; r++) store(made + (i + r) * n + k, t.row[r]);
            if (k == i) break;
            t = transposed(t);
            for (int r = 0; r < TILE; r++) store(made + (k + r) * n + i, t.row[r]);
        }
    }
    for (i64 i = full; i < n; i++)
        for (i64 j = 0; j <= i; j++) made[i * n + j] = made[j * n + i] = rows[i * stride + j];
}
/* All that a message needs: samples are added, and from row counted on watched; A without its upper half; and of each
 * output a row of seen: c, what look_back says, and the first two sums of watch. */
typedef struct { const double *theta, *change; double *made, *residual, *seen; i64 counted; } Report;
EXPORT void report_sums(const OwnSums* s, const Samples* added, const Report* to) {
    Samples fresh = *added;
    fresh.first = to->counted;
    add_samples(s, added);
    watch_samples(s, &fresh);
    copy_lower(s->information, s->size, s->n_features, to->made);
    look_back(s, to->theta, to->change, to->residual, to->seen + 1, 5);
    for (i64 k = 0; k < s->n_outputs; k++) {
        to->seen[5 * k] = s->numbers[1 + k];
        memcpy(to->seen + 5 * k + 3, s->sums + 3 * k, 2 * sizeof(double));
    }
}
