/* Arithmetic over single rows: each sum in one written order, so that a row has the same bits in any company.
 *
 * Rows are padded with zeros to whole vectors, or to half of one; n is the padded length. */
#ifndef ROWS_H
#define ROWS_H
#include "vec.h"

INLINE real dot(const real* a, const real* b, i64 n) {
    vec s[4] = {{0}};
    OVER(n, s[S] = fused(load_part(a + K, HALF), load_part(b + K, HALF), s[S]););
    return meet(s);
}
/* |a - b|^2 */
INLINE real distance(const real* a, const real* b, i64 n) {
    vec s[4] = {{0}};
    OVER(n, vec e = load_part(a + K, HALF) - load_part(b + K, HALF); s[S] = fused(e, e, s[S]););
    return meet(s);
}
/* total <- total + factor row, not fused */
INLINE void add_row(real* total, real factor, const real* row, i64 n) {
    const vec f = each(factor);
    OVER(n, store_part(total + K, load_part(total + K, HALF) + f * load_part(row + K, HALF), HALF););
}
INLINE void subtract_rows(const real* a, const real* b, real* difference, i64 n) {
    for (i64 k = 0; k < n; k += W) store(difference + k, load(a + k) - load(b + k));
}
INLINE void copy_row(const real* source, real* target, i64 n) { for (i64 k = 0; k < n; k += W) store(target + k, load(source + k)); }
INLINE void clear_row(real* row, i64 n) { for (i64 k = 0; k < n; k += W) store(row + k, (vec){0}); }
INLINE real peak_of(const real* row, i64 n) {
    vec peak = {0};
    for (i64 k = 0; k < n; k += W) peak = larger(magnitude(load(row + k)), peak);
    return largest_of(peak);
}

#endif
