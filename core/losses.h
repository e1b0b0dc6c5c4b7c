/* Losses: the slope l'(m, y), the value, the curvature, and the slope at the solution of c m + l'(m) = a.
 *
 * A product of margin and label is rounded to the working precision, all else is double. */
#ifndef LOSSES_H
#define LOSSES_H
#include "run.h"

/* Losses by the names that their classes declare as their kernel. */
enum { SQUARED, LOGISTIC, HINGE, SQUARED_HINGE };
#define LOSS_NAMES "squared logistic hinge squared-hinge"

#if REAL_BITS == 64
#define REAL_EXP exp
#define REAL_LOG1P log1p
#define REAL_SQRT sqrt
#else
#define REAL_EXP expf
#define REAL_LOG1P log1pf
#define REAL_SQRT sqrtf
#endif
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))

/* A missing label (NaN) pulls nowhere. */
INLINE double slope_of(i64 loss, real margin, real label) {
    if (isnan(label)) return 0.0;
    if (loss == SQUARED) return 2.0 * (double)(real)(margin - label);
    const real product = label * margin;
    if (loss == LOGISTIC) return -(double)label / (1.0 + (double)REAL_EXP(product));
    if (loss == SQUARED_HINGE) return -2.0 * (double)label * MAX(0.0, 1.0 - (double)product);
    return (double)product < 1.0 ? -(double)label : 0.0;
}
/* NaN where the label is missing. */
INLINE double value_of(i64 loss, real margin, real label) {
    if (loss == SQUARED) { const real e = margin - label; return (double)(real)(e * e); }
    const real product = label * margin;
    if (loss == LOGISTIC) return MAX(0.0, -(double)product) + (double)REAL_LOG1P(REAL_EXP((real)-fabs((double)product)));
    const double short_of = MAX(0.0, 1.0 - (double)product);
    return loss == SQUARED_HINGE ? short_of * short_of : short_of;
}
/* s = l'(m, y) where m = (a - s) / c: the scalar that DOKL's exact update comes down to. */
static double proximal_slope(i64 loss, real a, real c, real label) {
    if (isnan(label)) return 0.0;
    if (loss == SQUARED) return 2.0 * (double)(real)(a - (real)(c * label)) / ((double)c + 2.0);
    const real target = label * a;
    if (loss == HINGE) return (double)label * MIN(0.0, MAX(-1.0, (double)(real)(target - c)));
    if (loss == SQUARED_HINGE) return -2.0 * (double)label * MAX(0.0, (double)(real)(c - target)) / ((double)c + 2.0);
    /* Logistic. With u = y m: c u - y a - 1/(1 + e^u) = 0, increasing in u, its root in [ya/c, (ya + 1)/c]. */
    double low = (double)(real)(target / c), high = ((double)target + 1.0) / (double)c, u = 0.5 * (low + high);
    for (int k = 0; k < 100; k++) {
        const double p = 1.0 / (1.0 + exp(u)), residual = (double)c * u - (double)target - p;
        if (residual > 0.0) high = u;
        else low = u;
        const double newton = u - residual / ((double)c + p * (1.0 - p));
        const double next = low <= newton && newton <= high ? newton : 0.5 * (low + high);
        const int done = fabs(next - u) <= 2e-16 * fabs(u);
        u = next;
        if (done) break;
    }
    return -(double)label / (1.0 + exp(u));
}

#endif
