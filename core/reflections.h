/* Householder reflections H = I - v v' that both ends of a link derive from what they share.
 *
 * A reflection is a row v of n entries, not padded. A sum over coordinates has four parts, of those i = 0, 1, 2, 3
 * (mod 4), which meet as (p0 + p2) + (p1 + p3). Nothing is fused. */
#ifndef REFLECTIONS_H
#define REFLECTIONS_H
#include "linalg.h"

enum { HEAD = 8 };                   /* columns that are reflected together, at most */
#define SMALLEST_PIVOT 0x1p-20       /* of the largest entry on the diagonal */

/* How many numbers of a term are its head, and how many reflections follow from a matrix. */
INLINE i64 head_of(i64 n) { return at_most(HEAD, n / HEAD); }

INLINE double product_of(const double* a, const double* b, i64 n) {
    vec parts = {0};
    i64 i = 0;
    for (; i + 4 <= n; i += 4) parts = parts + load(a + i) * load(b + i);
    for (int k = 0; i + k < n; k++) parts[k] += a[i + k] * b[i + k];
    return (parts[0] + parts[2]) + (parts[1] + parts[3]);
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
    vec p[4] = {{0}};
    i64 i = 0;
    for (; i + 4 <= n; i += 4) for (int k = 0; k < 4; k++) p[k] = p[k] + each(v[i + k]) * load(x + (i + k) * stride);
    for (int k = 0; k < 3; k++) if (i + k < n) p[k] = p[k] + each(v[i + k]) * load(x + (i + k) * stride);
    const vec total = (p[0] + p[2]) + (p[1] + p[3]);
    for (i = 0; i < n; i++) store(x + i * stride, load(x + i * stride) - each(v[i]) * total);
}

/* v becomes the reflection that leaves nothing of v behind `place`, and zeros where v is zero there. */
static void make_reflection(double* v, i64 n, i64 place) {
    for (i64 i = 0; i < place; i++) v[i] = 0;
    const double square = product_of(v, v, n);
    const int usable = square > 0 && square < INFINITY;
    const double root = sqrt(square), scale = 1 / sqrt(square + fabs(v[place]) * root);
    v[place] += v[place] >= 0 ? root : -root;
    for (i64 i = 0; i < n; i++) v[i] = usable ? v[i] * scale : 0;
}

/* The first columns of a pivoted Cholesky factor of a matrix, at most `most`, a row each. Returns how many. */
static i64 pivoted_columns(const double* matrix, i64 n, i64 most, double* rows, double* diagonal) {
    i64 count = 0, pivot = 0;
    for (i64 i = 0; i < n; i++) {
        diagonal[i] = matrix[i * n + i];
        if (diagonal[i] > diagonal[pivot]) pivot = i;
    }
    for (const double least = SMALLEST_PIVOT * diagonal[pivot]; count < most && diagonal[pivot] > least; count++) {
        double* row = rows + count * n;
        memcpy(row, matrix + pivot * n, n * sizeof *row);
        for (i64 k = 0; k < count; k++) {
            const double* before = rows + k * n;
            const double share = before[pivot];
            for (i64 i = 0; i < n; i++) row[i] -= before[i] * share;
        }
        const double root = sqrt(diagonal[pivot]);
        for (i64 i = 0; i < n; i++) {
            row[i] /= root;
            diagonal[i] -= row[i] * row[i];
        }
        diagonal[pivot] = 0;
        pivot = 0;
        for (i64 i = 0; i < n; i++) if (diagonal[i] > diagonal[pivot]) pivot = i;
    }
    return count;
}

/* x <- L^-1 x for eight columns. */
static void solve_columns(const double* lower, i64 n, double* x) {
    for (i64 i = 0; i < n; i += TILE) {
        const i64 end = at_most(i + TILE, n), first = end == i + TILE ? i : 0;
        if (first) {
            vec sums[TILE][2];
            for (int r = 0; r < TILE; r++) for (int c = 0; c < 2; c++) sums[r][c] = load(x + (i + r) * HEAD + c * W);
            accumulate(SUBTRACT, 2, (Factors){lower + i * n, n, 1}, x, HEAD, i, sums);
            for (int r = 0; r < TILE; r++) for (int c = 0; c < 2; c++) store(x + (i + r) * HEAD + c * W, sums[r][c]);
        }
        for (i64 own = i; own < end; own++)
            for (int c = 0; c < HEAD; c += W) {
                vec total = load(x + own * HEAD + c);
                for (i64 j = first; j < own; j++) total = total - each(lower[own * n + j]) * load(x + j * HEAD + c);
                store(x + own * HEAD + c, total / each(lower[own * n + own]));
            }
    }
}

/* More reflections, of the first few terms of a message: the codes, reflected by those made before. A row of `terms`
 * is (sign, step, codes), and there are `known` others. Returns how many. */
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

#endif
