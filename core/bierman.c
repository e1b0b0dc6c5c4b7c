/* Recursive least squares whose covariance stays positive. */
#include "losses.h"
#include "tiles.h"

/* The covariance of each of n_models (one an agent, or one for all) is U D U' (Bierman). U is unit upper triangular:
 * its columns without the diagonal are rows of factors. D = spreads > 0 stays positive under rounding. */
typedef struct {
    i64 n_models, n_features, size, n_agents, n_rounds;
    double forgetting;
    const double *phi, *labels;
    double *weights, *factors, *spreads, *predictions, *gain;
} Bierman;

/* Up to four columns from column j on, one after the other in every entry; before and after are n of the gain g/n. */
INLINE double learn_columns(int columns, const Bierman* b, double* factors, double* spreads, const double* phi, i64 j,
                            double before) {
    const i64 size = b->size;
    double *first = factors + j * size, *gain = b->gain, added[TILE];
    vec step[TILE], add[TILE];
    for (int c = 0; c < columns; c++) {
        const double share = phi[j + c] + dot(first + c * size, phi, c ? j + TILE : j);
        added[c] = spreads[j + c] * share;
        const double after = before + added[c] * share;
        spreads[j + c] *= before / after;
        step[c] = each(-share / before);
        add[c] = each(added[c]);
        before = after;
    }
    for (i64 k = 0; k < j; k += W) {
        vec so_far = load(gain + k);
        for (int c = 0; c < columns; c++) {
            const vec old = load(first + c * size + k);
            store(first + c * size + k, fused(step[c], so_far, old));
            so_far = fused(add[c], old, so_far);
        }
        store(gain + k, so_far);
    }
    vec last = {added[0]};
    for (int c = 1; c < columns; c++) {
        const vec old = load(first + c * size + j);
        store(first + c * size + j, fused(step[c], last, old));
        last = fused(add[c], old, last);
        last[c] = added[c];
    }
    store(gain + j, last);
    return before;
}
static void learn_factored(const Bierman* b, i64 m, const double* phi, double label) {
    const i64 n = b->size, n_features = b->n_features;
    double *model = b->weights + m * n, *spreads = b->spreads + m * n_features;
    double* factors = b->factors + m * n_features * n;
    const double error = label - dot(model, phi, n);
    double before = 1.0;
    i64 j = 0;
    for (; j + TILE <= n_features; j += TILE) before = learn_columns(TILE, b, factors, spreads, phi, j, before);
    if (j < n_features) before = learn_columns((int)(n_features - j), b, factors, spreads, phi, j, before);
    add_row(model, error / before, b->gain, n);
}
/* All of a round is predicted before any of it is learned. Returns the first row that overflows, or all rows. */
EXPORT i64 recursive_rounds(const Bierman* b) {
    const i64 N = b->n_agents, own = b->n_models > 1;
    for (i64 t = 0; t < b->n_rounds; t++) {
        for (i64 i = 0, row = t * N; i < N; i++, row++) {
            b->predictions[row] = dot(b->weights + own * i * b->size, b->phi + row * b->size, b->size);
            if (!isfinite(b->predictions[row])) return row;
        }
        if (b->forgetting < 1.0) for (i64 k = 0; k < b->n_models * b->n_features; k++) b->spreads[k] /= b->forgetting;
        for (i64 i = 0, row = t * N; i < N; i++, row++)
            if (!isnan(b->labels[row])) learn_factored(b, own * i, b->phi + row * b->size, b->labels[row]);
    }
    return b->n_rounds * N;
}
