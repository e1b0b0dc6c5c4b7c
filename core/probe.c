/* Single functions of the core, for checks that compare them with their specification. */
#include "losses.h"

/* For each of n margins and labels the loss, its slope, and its proximal slope at a and c: three rows of found. */
EXPORT void NAME(probe_loss)(i64 loss, i64 n, const real* margin, const real* label, const real* a, const real* c, double* found) {
    for (i64 k = 0; k < n; k++) {
        found[k] = value_of(loss, margin[k], label[k]);
        found[n + k] = slope_of(loss, margin[k], label[k]);
        found[2 * n + k] = proximal_slope(loss, a[k], c[k], label[k]);
    }
}
