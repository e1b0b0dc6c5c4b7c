/* Sums over agents with the same bits in whatever order and in however many parts they are summed.
 *
 * Each term is rounded to a multiple of a common power of two, small enough that nothing of weight is lost and large
 * enough that the sum of all fits into 64 bits; these whole numbers are added up. */
#ifndef SUMS_H
#define SUMS_H
#include "run.h"

/* Adding 1.5 times 2 to the length of the mantissa rounds to a whole number and leaves that in the lowest bits. */
#if REAL_BITS == 64
#define ROUNDER 6755399441055744.0
#define ROUNDER_BITS 0x4338000000000000LL
enum { MULTIPLE_BITS = 51, LEAST_EXPONENT = -900 };
#else
#define ROUNDER 12582912.0f
#define ROUNDER_BITS 0x4B400000LL
enum { MULTIPLE_BITS = 22, LEAST_EXPONENT = -100 };
#endif
enum { SPARE_BITS = 6 }; /* that may be lost before a sum is made again */
enum { FOLDED = 256 };   /* rows after which multiples of 32 bits must be taken over into those of 64 */

/* How many bits a multiple may have so that n of them can be added. */
static int bits_for(i64 n, int most) {
    int bits = 62;
    for (; n > 1; n = (n + 1) / 2) bits--;
    return bits < most ? bits : most;
}
/* The power of two by which n terms of magnitudes up to peak are multiplied; a peak of 0 counts as 1. */
static double scale_for(double peak, i64 n, int most, int least) {
    int exponent = 0;
    if (peak > 0.0) frexp(peak, &exponent);
    return ldexp(1.0, bits_for(n, most) - (exponent > least ? exponent : least));
}
static double model_scale(double peak, i64 n) { return scale_for(peak, n, MULTIPLE_BITS, LEAST_EXPONENT); }
static double norm_scale(double peak, i64 n) { return scale_for(peak, n, 62, -900); }
/* Whether a sum of n terms up to peak with this scale has neither run over nor lost much. */
static int fits(double peak, double scale, i64 n) {
    const double limit = ldexp(1.0, bits_for(n, MULTIPLE_BITS));
    return peak == 0.0 || (peak * scale <= limit && peak * scale * (1 << SPARE_BITS) >= limit);
}
/* Take the sums of n rows over into totals, of 64 bits, and begin anew. */
static void fold(whole* units, i64 n, i64* totals, i64 size) {
    for (i64 k = 0; k < size; k++) {
        totals[k] += (whole)((u64)units[k] - (u64)ROUNDER_BITS * (u64)n);
        units[k] = 0;
    }
}
/* Add a row, in multiples of 1/scale, to units, and keep the largest magnitude in the lanes of top. */
INLINE void tally(const real* row, i64 size, double scale, whole* units, real* top) {
    const vec factor = each((real)scale), rounder = each(ROUNDER);
    vec most = load(top);
    OVER(size, const vec v = load_part(row + K, HALF); *(unaligned_ivec*)(units + K) += (ivec)fused(v, factor, rounder);
         most = larger(magnitude(v), most););
    store(top, most);
}
static i64 total_of(const real* values, i64 n, double scale) {
    i64 total = 0;
    for (i64 i = 0; i < n; i++) total += (i64)rint((double)values[i] * scale);
    return total;
}
/* The largest of some values that are not negative; infinite if one of them is not a number. */
static double top_of(const real* values, i64 n) {
    vec top = {0};
    ivec beyond = {0};
    i64 i = 0;
    for (; i + W <= n; i += W) {
        const vec v = load(values + i);
        beyond |= ~(v < each((real)INFINITY));
        top = larger(v, top);
    }
    double most = (double)largest_of(top);
    for (int j = 0; j < W; j++) if (beyond[j]) most = INFINITY;
    for (; i < n; i++) most = values[i] < (real)INFINITY ? MAX(most, (double)values[i]) : INFINITY;
    return most;
}

#endif
