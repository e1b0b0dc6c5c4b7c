/* Eigenvalues of a symmetric matrix, and as much of its eigenvectors as a sender needs.
 *
 * Householder reflections make the matrix tridiagonal. A few eigenpairs are found by bisection and Rayleigh quotients,
 * a dozen at a time; all eigenvalues by QL with implicit shifts, whose rotations are kept and not multiplied out. */
#ifndef SPECTRUM_H
#define SPECTRUM_H
#include "linalg.h"

#define NEGLIGIBLE 1e-60 /* of squares: a row counts as zero long before its square and that of h underflow */

/* A = Q T Q' with T tridiagonal, Q = H_n-1 .. H_1 and H_i = I - v v' / h. */
typedef struct {
    i64 n, size;
    double* matrix;   /* padded; v of H_i is the first i entries of row i */
    double* diagonal;
    double* beside;   /* beside[k] is next to entries k and k + 1 */
    double* lengths;  /* h of H_i; 0: H_i = I */
} Tridiagonal;

/* T of a padded matrix, whose lower tiles are used up. */
static Tridiagonal tridiagonalise(double* matrix, i64 n, double** room) {
    const i64 size = padded(n);
    const Tridiagonal t = {n, size, matrix, take(room, n), take(room, n), take(room, n)};
    double *product = *room, *v = product + size, *q = v + size; /* v q' + q v' is still to be subtracted */
    clear_row(product, 3 * size);
    for (i64 i = n - 1; i > 0; i--) {
        double* own = matrix + i * size;
        const vec v_own = each(-v[i]), q_own = each(-q[i]);
        for (i64 k = 0; k <= i; k += W)
            store(own + k, fused(v_own, load(q + k), fused(q_own, load(v + k), load(own + k))));
        v[i] = q[i] = 0; /* so that it is subtracted once */
        t.diagonal[i] = own[i];
        for (i64 k = i; k < size; k++) own[k] = 0;
        const i64 length = padded(i);
        const double total = dot(own, own, length), edge = own[i - 1];
        const int negligible = total - edge * edge <= NEGLIGIBLE;
        const double root = negligible ? edge : edge >= 0 ? -sqrt(total) : sqrt(total), h = total - edge * root;
        if (!negligible) own[i - 1] = edge - root;
        t.beside[i - 1] = root;
        t.lengths[i] = negligible ? 0 : h;
        const Pass subtracting = {.v = v, .w = q, .x = own, .gain = product};
        pass((Lower){matrix, length, size}, subtracting, LOWER_TWICE | CROSS | GAIN);
        clear_row(v, length);
        if (negligible) continue;
        for (i64 k = i; k < length; k++) product[k] = 0;
        const vec half = each(-(dot(product, own, length) / (2 * h * h))), inverse = each(1 / h);
        for (i64 k = 0; k < length; k += W) {
            store(v + k, load(own + k));
            store(q + k, fused(half, load(own + k), inverse * load(product + k)));
        }
    }
    t.diagonal[0] = matrix[0] - 2 * v[0] * q[0];
    t.lengths[0] = 0;
    return t;
}

/* H_n-1 .. H_1 x, or H_1 .. H_n-1 x where `forward`; x is padded. */
static void apply_reflections(const Tridiagonal* t, int forward, double* x) {
    for (i64 step = 1; step < t->n; step++) {
        const i64 i = forward ? t->n - step : step, length = padded(i);
        const double* v = t->matrix + i * t->size;
        if (t->lengths[i] > 0) add_row(x, -(dot(x, v, length) / t->lengths[i]), v, length);
    }
}

/* How many eigenvalues of T are less than x (Sturm). */
static i64 count_below(const Tridiagonal* t, double x) {
    i64 count = 0;
    double pivot = 1;
    for (i64 k = 0; k < t->n; k++) {
        pivot = t->diagonal[k] - x - (k ? t->beside[k - 1] * t->beside[k - 1] / pivot : 0);
        if (pivot == 0) pivot = 1e-300;
        count += pivot < 0;
    }
    return count;
}
/* Pivots of T; returns the smallest magnitude of them. */
static double factor_tridiagonal(const Tridiagonal* t, double* pivots) {
    double least = fabs(pivots[0] = t->diagonal[0]);
    for (i64 k = 1; k < t->n; k++) {
        pivots[k] = t->diagonal[k] - t->beside[k - 1] / pivots[k - 1] * t->beside[k - 1];
        if (fabs(pivots[k]) < least) least = fabs(pivots[k]);
    }
    return least;
}
/* x <- T^-1 x */
static void solve_tridiagonal(const Tridiagonal* t, const double* pivots, double* x) {
    for (i64 k = 1; k < t->n; k++) x[k] -= t->beside[k - 1] / pivots[k - 1] * x[k - 1];
    x[t->n - 1] /= pivots[t->n - 1];
    for (i64 k = t->n - 2; k >= 0; k--) x[k] = (x[k] - t->beside[k] * x[k + 1]) / pivots[k];
}

/* ---- All eigenvalues: QL with implicit shifts ---- */

enum { MAX_SHIFTS = 60 /* for one eigenvalue */, ROTATIONS = 3 /* times n^2 are kept: one is usual */ };
typedef struct { double c, s; i64 place; } Rotation; /* of entries `place` and place + 1 */
typedef struct { Rotation* at; i64 count; } Rotations;

/* diagonal <- eigenvalues; `beside` is used up. Returns the rotations, none if there are more than fit. */
static Rotations diagonalise(const Tridiagonal* t, double** room) {
    const i64 n = t->n, most = ROTATIONS * n * n;
    double *d = t->diagonal, *e = t->beside;
    Rotations all = {take(room, most * (i64)(sizeof(Rotation) / sizeof(double))), 0};
    e[n - 1] = 0;
    for (i64 left = 0; left < n; left++)
        for (int shift = 0; shift < MAX_SHIFTS; shift++) {
            i64 m = left;
            while (m < n - 1 && fabs(e[m]) > 1e-16 * (fabs(d[m]) + fabs(d[m + 1]))) m++;
            if (m == left) break;
            if (all.count + m - left > most) return (Rotations){0};
            double g = (d[left + 1] - d[left]) / (2 * e[left]), r = sqrt(g * g + 1), s = 1, c = 1, p = 0;
            g = d[m] - d[left] + e[left] / (g + (g >= 0 ? r : -r));
            i64 i = m - 1;
            for (; i >= left; i--) {
                const double f = s * e[i], b = c * e[i];
                e[i + 1] = r = sqrt(f * f + g * g);
                if (r == 0) break;
                const double inverse = 1 / r;
                s = f * inverse;
                c = g * inverse;
                g = d[i + 1] - p;
                r = (d[i] - g) * s + 2 * c * b;
                p = s * r;
                d[i + 1] = g + p;
                g = c * r - b;
                all.at[all.count++] = (Rotation){c, s, i};
            }
            d[i + 1] -= p; /* i + 1 is `left`, unless a rotation vanished */
            if (i < left) e[left] = g;
            e[m] = 0;
        }
    return all;
}
/* Columns over the entries of T become coefficients of eigenvectors, or the reverse where `backwards`. */
static void rotate_rows(Rotations all, int backwards, double* columns, i64 width) {
    for (i64 k = 0; k < all.count; k++) {
        const Rotation r = all.at[backwards ? all.count - 1 - k : k];
        const vec c = each(r.c), s = each(backwards ? r.s : -r.s);
        double *upper = columns + r.place * width, *lower = upper + width;
        for (i64 j = 0; j < width; j += W) {
            const vec a = load(upper + j), b = load(lower + j);
            store(upper + j, fused(c, a, s * b));
            store(lower + j, fused(c, b, -s * a));
        }
    }
}

/* ---- A few eigenpairs, a dozen at a time ----
 *
 * Counting the eigenvalues below some points brings each of them near. Then T - x I is factorised from its top and from
 * its bottom, the eigenvector is read off where the two meet best, and its Rayleigh quotient is the next x. There is no
 * pivoting, so that a dozen go through the same instructions; the caller learns where that was not exact enough. */

enum { LANES = 12, GROUPS = 3 /* vectors, whose divisions overlap */ };
enum { RESCALED = 16 /* steps until determinants are brought back to about 1 */, QUOTIENTS = 3, MAX_QUOTIENTS = 5 };
#define FINER 0x1p-16        /* of the tolerance: how near eigenvalues are brought by counting */
#define RESIDUAL_LIMIT 1e-14 /* of the largest entry, that may be left of T z - x z */
#define TINY 1e-300
#define GROUP for (int g = 0; g < GROUPS; g++)

/* The `low` least eigenvalues, all under `below`, and the `high` largest, above `above`, each the farthest first; and
 * eigenvectors of length 1 in columns. There is room for whole dozens. */
typedef struct {
    const Tridiagonal* t;
    i64 low, high, width;
    double below, above;
    double *values, *columns;
    double bound;         /* of all eigenvalues */
    double* squares;      /* squares[k] is next to entries k - 1 and k */
    double *under, *over; /* the brackets of eigenvalues */
    double *top, *bottom; /* pivots, a row of a dozen for each entry */
} Pairs;

INLINE i64 dozens(i64 count) { return (count + LANES - 1) / LANES * LANES; }

/* How many eigenvalues are below each of a dozen points: how often det(T_k - x I) changes its sign with k. In units of
 * `bound` all is at most 1, so determinants need to be brought back now and then only. */
static void count_each(const Pairs* p, const double* points, i64* counts) {
    const Tridiagonal* t = p->t;
    const double unit = 1 / p->bound;
    vec x[GROUPS], last[GROUPS], before[GROUPS];
    ivec count[GROUPS];
    GROUP x[g] = load(points + g * W), last[g] = each(1), before[g] = each(0), count[g] = (ivec){0};
    for (i64 first = 0; first < t->n; first += RESCALED) {
        for (i64 k = first; k < at_most(first + RESCALED, t->n); k++) {
            const vec d = each(t->diagonal[k] * unit), e = each(-p->squares[k] * unit * unit);
            GROUP {
                const vec next = fused(d - x[g], last[g], e * before[g]);
                count[g] -= ((ivec)next ^ (ivec)last[g]) < 0;
                before[g] = last[g];
                last[g] = next;
            }
        }
        GROUP {
            const vec scale = each(1) / larger(larger(magnitude(last[g]), magnitude(before[g])), each(TINY));
            before[g] = scale * before[g];
            last[g] = scale * last[g];
        }
    }
    GROUP memcpy(counts + g * W, &count[g], sizeof count[g]);
}

/* Narrow the brackets of a dozen eigenvalues from the first on until they are `finest`. Where they are fewer, each has
 * several points at a time. */
static void narrow_brackets(const Pairs* p, i64 first, double finest) {
    const i64 low = p->low, few = at_most(LANES, low + p->high - first), n_points = LANES / few;
    double *under = p->under + first, *over = p->over + first, points[LANES] = {0}, widest = 0;
    i64 counts[LANES];
    for (i64 k = 0; k < few; k++) if (over[k] - under[k] > widest) widest = over[k] - under[k];
    for (; widest > finest; widest /= (double)(n_points + 1)) {
        for (i64 k = 0; k < few; k++) {
            const double part = (over[k] - under[k]) / (double)(n_points + 1);
            for (i64 i = 0; i < n_points; i++)
                points[k * n_points + i] = (under[k] + (double)(i + 1) * part) / p->bound;
        }
        count_each(p, points, counts);
        for (i64 k = 0; k < few; k++) {
            const i64 own = first + k, index = own < low ? own : p->t->n - 1 - (own - low);
            i64 inside = 0; /* points that it is above */
            while (inside < n_points && counts[k * n_points + inside] <= index) inside++;
            const double part = (over[k] - under[k]) / (double)(n_points + 1);
            under[k] += (double)inside * part;
            over[k] = under[k] + part;
        }
    }
    for (i64 k = few; k < LANES; k++) under[k] = under[few - 1], over[k] = over[few - 1];
}

/* Pivots of T - x I from the top and from the bottom, for a dozen x. */
static void factorise(const Pairs* p, i64 first) {
    const i64 n = p->t->n;
    vec x[GROUPS], down[GROUPS], up[GROUPS];
    GROUP x[g] = load(p->values + first + g * W), down[g] = up[g] = each(1);
    for (i64 k = 0, m = n - 1; k < n; k++, m--) {
        const vec d = each(p->t->diagonal[k]), e = each(p->squares[k]);
        const vec d_up = each(p->t->diagonal[m]), e_up = each(p->squares[m + 1]);
        GROUP store(p->top + k * LANES + g * W, down[g] = d - x[g] - e / down[g]);
        GROUP store(p->bottom + m * LANES + g * W, up[g] = d_up - x[g] - e_up / up[g]);
    }
}

INLINE vec one_at(ivec place, i64 k) { return (vec)((place == k) & (ivec)each(1)); }

/* Eigenvectors of a dozen x from the first on, for which T z - x z is 0 but where the factors meet, and z is 1; x by
 * their quotients. Returns the most that is there. Vectors get the length 1 where they may be the last. */
static double improve_pairs(const Pairs* p, i64 first, int last) {
    const i64 n = p->t->n, width = p->width;
    const double *diagonal = p->t->diagonal, *beside = p->t->beside;
    double *values = p->values + first, *columns = p->columns + first;
    const vec tiny = each(TINY); /* so that no pivot is 0: beyond where the factors meet, z is 0 times a quotient */
    vec x[GROUPS], least[GROUPS], z[GROUPS], square[GROUPS];
    ivec meet[GROUPS];
    GROUP x[g] = load(values + g * W), least[g] = each(INFINITY), meet[g] = (ivec){0};
    for (i64 k = 0; k < n; k++) GROUP {
        const i64 at = k * LANES + g * W;
        const vec gap = magnitude(load(p->top + at) + load(p->bottom + at) - (each(diagonal[k]) - x[g]));
        const ivec nearer = gap < least[g];
        meet[g] = (nearer & k) | (~nearer & meet[g]);
        least[g] = choose(nearer, gap, least[g]);
    }
    GROUP store(columns + (n - 1) * width + g * W, z[g] = one_at(meet[g], n - 1));
    for (i64 k = n - 2; k >= 0; k--) {
        const vec b = each(-beside[k]);
        GROUP {
            z[g] = fused(z[g], b / (load(p->top + k * LANES + g * W) + tiny), one_at(meet[g], k));
            store(columns + k * width + g * W, z[g]);
        }
    }
    GROUP square[g] = load(columns + g * W) * load(columns + g * W), z[g] = one_at(meet[g], 0);
    for (i64 k = 1; k < n; k++) {
        const vec b = each(-beside[k - 1]);
        GROUP {
            z[g] = z[g] * (b / (load(p->bottom + k * LANES + g * W) + tiny));
            const vec y = load(columns + k * width + g * W) + z[g];
            z[g] = z[g] + one_at(meet[g], k);
            square[g] = fused(y, y, square[g]);
            store(columns + k * width + g * W, y);
        }
    }
    double left = 0, scales[LANES];
    for (int lane = 0; lane < LANES; lane++) {
        const i64 k = meet[lane / W][lane % W], at = k * LANES + lane;
        const double total = square[lane / W][lane % W];
        const double gap = p->top[at] + p->bottom[at] - (diagonal[k] - values[lane]);
        scales[lane] = 1 / sqrt(total);
        if (!(total < INFINITY)) left = INFINITY;
        if (fabs(gap) * scales[lane] > left) left = fabs(gap) * scales[lane];
        values[lane] += gap / total;
    }
    for (i64 k = 0; last && k < n; k++)
        GROUP store(columns + k * width + g * W, load(scales + g * W) * load(columns + k * width + g * W));
    return left;
}

/* Find the pairs, brought near to a fraction of `tolerance` before they are made exact. Returns whether they were
 * found and are distinct. Room for n + 2 width + 2 n LANES and a little. */
static int find_pairs(Pairs* p, double tolerance, double* room) {
    const i64 n = p->t->n, count = p->low + p->high;
    double largest = fabs(p->t->diagonal[0]);
    p->squares = take(&room, n + 1), p->under = take(&room, p->width), p->over = take(&room, p->width);
    p->top = take(&room, n * LANES), p->bottom = take(&room, n * LANES);
    p->squares[0] = p->squares[n] = 0;
    for (i64 k = 1; k < n; k++) {
        const double d = fabs(p->t->diagonal[k]), e = fabs(p->t->beside[k - 1]), square = e * e;
        p->squares[k] = square < 1e-290 ? 1e-290 : square; /* never 0, so that nothing is 0 divided by 0 */
        largest = d > largest ? d : largest;
        largest = e > largest ? e : largest;
    }
    p->bound = 3 * largest;
    if (!(p->bound < INFINITY)) return 0;
    for (i64 k = 0; k < p->width; k++) {
        const int low = at_most(k, count - 1) < p->low;
        p->under[k] = low ? -p->bound : p->above;
        p->over[k] = low ? p->below : p->bound;
    }
    const double enough = RESIDUAL_LIMIT * largest;
    for (i64 first = 0; first < p->width; first += LANES) {
        narrow_brackets(p, first, tolerance * FINER);
        for (i64 k = first; k < first + LANES; k++) p->values[k] = 0.5 * (p->under[k] + p->over[k]);
        double left = INFINITY;
        for (int step = 1; step <= QUOTIENTS || (step <= MAX_QUOTIENTS && !(left <= enough)); step++) {
            factorise(p, first);
            left = improve_pairs(p, first, step >= QUOTIENTS);
        }
        if (!(left <= enough)) return 0;
    }
    for (i64 k = 0; k < count; k++) {
        const double x = p->values[k], part = p->over[k] - p->under[k];
        if (!(p->under[k] - part <= x && x <= p->over[k] + part)) return 0;
        if (k > 0 && k != p->low && fabs(x - p->values[k - 1]) <= 4 * part) return 0;
    }
    return 1;
}

/* H_n-1 .. H_1 x of some vectors of columns. While one reflection is subtracted, the next is multiplied with the
 * remainder: columns pass once. */
INLINE void reflect_vectors(const Tridiagonal* t, int vectors, double* columns, i64 width) {
    vec share[2 * GROUPS] = {{0}}, sum[2 * GROUPS];
    i64 before = 0; /* the reflection that is still to be subtracted, `share` of it */
    for (i64 i = 1; i <= t->n; i++) {
        if (i < t->n && !(t->lengths[i] > 0)) continue;
        const i64 after = i < t->n ? i : before; /* beyond the last there is none */
        const double *u = t->matrix + before * t->size, *v = t->matrix + after * t->size;
        for (int g = 0; g < vectors; g++) sum[g] = (vec){0};
        for (i64 j = 0; j < after; j++) {
            const vec u_j = each(u[j]), v_j = each(v[j]);
            for (int g = 0; g < vectors; g++) {
                double* at = columns + j * width + g * W;
                vec x = load(at);
                if (j < before) store(at, x = fused(u_j, share[g], x));
                sum[g] = fused(v_j, x, sum[g]);
            }
        }
        const vec scale = each(i < t->n ? -1 / t->lengths[after] : 0);
        for (int g = 0; g < vectors; g++) share[g] = scale * sum[g];
        before = after;
    }
}
/* The same of dozens of columns from `first` on, two dozens at a time. */
static void reflect_columns(const Tridiagonal* t, i64 first, double* columns, i64 width) {
    for (; first + 2 * LANES <= width; first += 2 * LANES) reflect_vectors(t, 2 * GROUPS, columns + first, width);
    if (first < width) reflect_vectors(t, GROUPS, columns + first, width);
}

#endif
