/* Losses l(m, y) of a prediction m and a label y: their values. */
#ifndef LOSSES_H
#define LOSSES_H
#include "vec.h"

enum { SQUARED, LOGISTIC, HINGE, SQUARED_HINGE };
#define REAL_EXP exp
#define REAL_LOG1P log1p
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))

/* A prediction this many times larger than any label seen so far can only come from a run that diverges. */
#define DIVERGENCE 1e3

INLINE double value_of(i64 loss, double margin, double label) {
    if (loss == SQUARED) return (margin - label) * (margin - label);
    if (loss == LOGISTIC) return MAX(0.0, -label * margin) + REAL_LOG1P(REAL_EXP(-fabs(label * margin)));
    const double short_of = MAX(0.0, 1.0 - label * margin);
    return loss == SQUARED_HINGE ? short_of * short_of : short_of;
}

#endif
