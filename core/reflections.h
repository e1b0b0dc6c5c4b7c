/* Householder reflections H = I - v v' that both ends of a link derive from what they share.
 *
 * A reflection is a row v of n entries, not padded. A sum over coordinates has four parts, of those i = 0, 1, 2, 3
 * (mod 4), which meet as (p0 + p2) + (p1 + p3). Nothing is fused. */
#ifndef REFLECTIONS_H
#define REFLECTIONS_H
#include "linalg.h"
#include "rice.h"

#define SMALLEST_PIVOT 0x1p-20 /* of the largest entry on the diagonal */

INLINE double product_of(const double* a, const double* b, i64 n) {
    const i64 whole = n / W * W;
    vec p = {0};
    for (i64 i = 0; i < whole; i += W) p = p + load(a + i) * load(b + i);
    for (int k = 0; k < W - 1; k++) if (whole + k < n) p[k] += a[whole + k] * b[whole + k];
    return (p[0] + p[2]) + (p[1] + p[3]);
}
/* x <- H_k x for `count` reflections, k = 0, 1, ... or backwards. */
static void reflect(const double* rows, i64 count, i64 n, int backwards, double* x) {
    for (i64 k = 0; k < count; k++) {
        const double* v = rows + (backwards ? count - 1 - k : k) * n;
        const double share = product_of(v, x, n);
        for (i64 i = 0; i < n; i++) x[i] -= v[i] * share;
    }
}
/* The same reflection of four columns of x, which has rows of `stride` entries. */
static void reflect_four(const double* v, i64 n, double* x, i64 stride) {
    const i64 whole = n / W * W;
    vec p[W] = {{0}};
    for (i64 i = 0; i < whole; i += W)
        for (int k = 0; k < W; k++) p[k] = p[k] + each(v[i + k]) * load(x + (i + k) * stride);
    for (int k = 0; k < W - 1; k++)
        if (whole + k < n) p[k] = p[k] + each(v[whole + k]) * load(x + (whole + k) * stride);
    const vec total = (p[0] + p[2]) + (p[1] + p[3]);
    for (i64 i = 0; i < n; i++) store(x + i * stride, load(x + i * stride) - each(v[i]) * total);
}
/* v becomes the reflection that leaves nothing of v behind `place`; zero where that is not possible. */
static void make_reflection(double* v, i64 n, i64 place) {
    for (i64 i = 0; i < place; i++) v[i] = 0;
    const double square = product_of(v, v, n), root = sqrt(square), scale = 1 / sqrt(square + fabs(v[place]) * root);
    v[place] += v[place] >= 0 ? root : -root;
    for (i64 i = 0; i < n; i++) v[i] = square > 0 && square < INFINITY ? v[i] * scale : 0;
}
/* More reflections, of the first few terms of a message: the codes, reflected by those made before. A row of terms is
 * (sign, step, codes), and there are `known` other reflections. Returns how many. */
static i64 reflections_of_terms(const i64* terms, i64 n_terms, i64 n, i64 known, double* rows) {
    const i64 count = at_most(n_terms, (head_of(n) + 1) / 2);
    for (i64 k = 0; k < count; k++) {
        double* v = rows + k * n;
        for (i64 i = 0; i < n; i++) v[i] = (double)terms[k * (n + 2) + 2 + i];
        reflect(rows, k, n, 0, v);
        make_reflection(v, n, known + k);
    }
    return count;
}

INLINE i64 largest_at(const double* x, i64 n) {
    i64 at = 0;
    for (i64 i = 1; i < n; i++) if (x[i] > x[at]) at = i;
    return at;
}
/* The first columns of a pivoted Cholesky factor of a matrix, at most `most`, a row each. Returns how many. */
static i64 pivoted_columns(const double* matrix, i64 n, i64 most, double* rows, double* diagonal) {
    for (i64 i = 0; i < n; i++) diagonal[i] = matrix[i * n + i];
    const double least = SMALLEST_PIVOT * diagonal[largest_at(diagonal, n)];
    for (i64 count = 0; count < most; count++) {
        const i64 pivot = largest_at(diagonal, n);
        if (!(diagonal[pivot] > least)) return count;
        const double root = sqrt(diagonal[pivot]);
        double* row = rows + count * n;
        memcpy(row, matrix + pivot * n, n * sizeof *row);
        for (const double* before = rows; before < row; before += n) {
            const double share = before[pivot];
            for (i64 i = 0; i < n; i++) row[i] -= before[i] * share;
        }
        for (i64 i = 0; i < n; i++) {
            row[i] /= root;
            diagonal[i] -= row[i] * row[i];
        }
        diagonal[pivot] = 0;
    }
    return most;
}
/* x <- L^-1 x for eight columns. */
static void solve_columns(const double* lower, i64 n, double* x) {
    for (i64 i = 0; i < n; i += TILE) {
        const i64 end = at_most(i + TILE, n), first = end == i + TILE ? i : 0;
        if (first) accumulate(SUBTRACT, HEAD, (Coefficients){lower + i * n, n, 1}, x, HEAD, i, x + i * HEAD, HEAD);
        for (i64 r = i; r < end; r++) {
            for (i64 j = first; j < r; j++) add_row(x + r * HEAD, -lower[r * n + j], x + j * HEAD, HEAD);
            for (int c = 0; c < HEAD; c++) x[r * HEAD + c] /= lower[r * n + r];
        }
    }
}

#endif
