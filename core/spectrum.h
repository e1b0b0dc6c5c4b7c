/* Eigenvalues of a symmetric matrix and what a sender asks of its eigenvectors.
 *
 * Householder reflections make the matrix tridiagonal. A few eigenpairs are found by bisection and Rayleigh quotients,
 * a dozen at a time; all eigenvalues by QL with implicit shifts, whose rotations are kept and not multiplied out. */
#ifndef SPECTRUM_H
#define SPECTRUM_H
#include "linalg.h"

/* A = Q T Q' with T tridiagonal, Q = H_n-1 .. H_1 and H_i = I - v v' / h. */
typedef struct {
    i64 n, size;
    double* matrix;   /* padded; v of H_i is the first i entries of row i */
    double* diagonal;
    double* beside;   /* beside[k] is next to entries k and k + 1 */
    double* lengths;  /* h of H_i; 0: H_i = I */
} Tridiagonal;

#define NEGLIGIBLE 1e-60 /* of squares: a row is zero long before its square and that of h underflow */

/* A tile loses v q' + q v'. */
INLINE Tile reduced_tile(double* p, i64 stride, vec v, vec q, const vec vs[TILE], const vec qs[TILE]) {
    Tile t;
    for (int r = 0; r < TILE; r++) t.row[r] = fused(-vs[r], q, fused(-qs[r], v, load(p + r * stride)));
    store_tile(p, stride, t);
    return t;
}
/* A <- A - v q' - q v' in its first `length` rows and columns, then product <- A x, while a tile is at hand. */
static void reduce_and_multiply(double* matrix, i64 size, i64 length, const double* x, double* product) {
    const double *v = product + size, *q = v + size;
    clear_row(product, length);
    for (i64 j = 0; j < length; j += TILE) {
        vec xs[TILE], vs[TILE], qs[TILE];
        Tile sums = {{{0}}};
        for (int r = 0; r < TILE; r++) xs[r] = each(x[j + r]), vs[r] = each(v[j + r]), qs[r] = each(q[j + r]);
        for (i64 k = 0; k <= j; k += W) {
            const Tile t = reduced_tile(matrix + j * size + k, size, load(v + k), load(q + k), vs, qs);
            for (int r = 0; r < TILE; r++) sums.row[r] = fused(t.row[r], load(x + k), sums.row[r]);
            const vec more = k < j ? fused(t.row[1], xs[1], t.row[0] * xs[0]) + fused(t.row[3], xs[3], t.row[2] * xs[2]) : row_sums(sums);
            store(product + k, load(product + k) + more);
        }
    }
}

/* Room for 3 size: A v, and v and q of the reflection that is still to be subtracted. */
static void tridiagonalise(const Tridiagonal* t, double* room) {
    const i64 n = t->n, size = t->size;
    double *product = room, *v = room + size, *q = v + size;
    clear_row(room, 3 * size);
    for (i64 i = n - 1; i > 0; i--) {
        double* own = t->matrix + i * size;
        const vec v_own = each(-v[i]), q_own = each(-q[i]);
        for (i64 k = 0; k <= i; k += W) store(own + k, fused(v_own, load(q + k), fused(q_own, load(v + k), load(own + k))));
        v[i] = q[i] = 0; /* so that it is subtracted once */
        t->diagonal[i] = own[i];
        for (i64 k = i; k < size; k++) own[k] = 0;
        const i64 length = padded(i);
        const double total = dot(own, own, length), edge = own[i - 1];
        const int negligible = total - edge * edge <= NEGLIGIBLE;
        const double root = negligible ? edge : edge >= 0 ? -sqrt(total) : sqrt(total);
        if (!negligible) own[i - 1] = edge - root;
        const double h = total - edge * root;
        t->beside[i - 1] = root;
        t->lengths[i] = negligible ? 0 : h;
        reduce_and_multiply(t->matrix, size, length, own, product);
        clear_row(v, length);
        if (negligible) continue;
        for (i64 k = i; k < length; k++) product[k] = 0;
        const vec half = each(-(dot(product, own, length) / (2 * h * h))), inverse = each(1 / h);
        for (i64 k = 0; k < length; k += W) {
            store(v + k, load(own + k));
            store(q + k, fused(half, load(own + k), inverse * load(product + k)));
        }
    }
    t->diagonal[0] = t->matrix[0] - 2 * v[0] * q[0];
    t->lengths[0] = 0;
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
/* The smallest magnitude of the pivots that T is factorised with. */
static double least_pivot(const Tridiagonal* t) {
    double pivot = t->diagonal[0], least = fabs(pivot);
    for (i64 k = 1; k < t->n; k++) {
        pivot = t->diagonal[k] - t->beside[k - 1] / pivot * t->beside[k - 1];
        if (fabs(pivot) < least) least = fabs(pivot);
    }
    return least;
}
/* x <- T^-1 x, with sound pivots. Room for n. */
static void solve_tridiagonal(const Tridiagonal* t, double* x, double* pivots) {
    const i64 n = t->n;
    pivots[0] = t->diagonal[0];
    for (i64 k = 1; k < n; k++) {
        const double share = t->beside[k - 1] / pivots[k - 1];
        pivots[k] = t->diagonal[k] - share * t->beside[k - 1];
        x[k] -= share * x[k - 1];
    }
    x[n - 1] /= pivots[n - 1];
    for (i64 k = n - 2; k >= 0; k--) x[k] = (x[k] - t->beside[k] * x[k + 1]) / pivots[k];
}

/* ---- All eigenvalues: QL with implicit shifts ---- */

enum { MAX_SHIFTS = 60 /* for one eigenvalue */, ROTATIONS = 3 /* kept, times n^2: one is usual */ };
typedef struct { double c, s; i64 place; } Rotation; /* of entries `place` and place + 1 */

/* diagonal <- eigenvalues; `beside` is used up. Returns the number of rotations, -1 if there are more than fit. */
static i64 diagonalise(const Tridiagonal* t, Rotation* rotations) {
    const i64 n = t->n;
    double *d = t->diagonal, *e = t->beside;
    i64 count = 0;
    e[n - 1] = 0;
    for (i64 left = 0; left < n; left++)
        for (int shift = 0; shift < MAX_SHIFTS; shift++) {
            i64 m = left;
            while (m < n - 1 && fabs(e[m]) > 1e-16 * (fabs(d[m]) + fabs(d[m + 1]))) m++;
            if (m == left) break;
            if (count + m - left > ROTATIONS * n * n) return -1;
            double g = (d[left + 1] - d[left]) / (2 * e[left]), r = sqrt(g * g + 1), s = 1, c = 1, p = 0;
            g = d[m] - d[left] + e[left] / (g + (g >= 0 ? r : -r));
            i64 i = m - 1;
            for (; i >= left; i--) {
                const double f = s * e[i], b = c * e[i];
                e[i + 1] = r = sqrt(f * f + g * g);
                if (r == 0) {
                    d[i + 1] -= p;
                    e[m] = 0;
                    break;
                }
                const double inverse = 1 / r;
                s = f * inverse;
                c = g * inverse;
                g = d[i + 1] - p;
                r = (d[i] - g) * s + 2 * c * b;
                p = s * r;
                d[i + 1] = g + p;
                g = c * r - b;
                rotations[count++] = (Rotation){c, s, i};
            }
            if (i >= left) continue;
            d[left] -= p;
            e[left] = g;
            e[m] = 0;
        }
    return count;
}
/* Columns over the entries of T become coefficients of eigenvectors, or the reverse where `backwards`. */
static void rotate_rows(const Rotation* rotations, i64 count, int backwards, double* columns, i64 width) {
    for (i64 k = 0; k < count; k++) {
        const Rotation r = rotations[backwards ? count - 1 - k : k];
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
    i64 low, high, width;
    double below, above;
    double *values, *columns;
} Pairs;
typedef struct {
    const Tridiagonal* t;
    const Pairs* pairs;
    double bound;                  /* of all eigenvalues */
    double *squares;               /* squares[k] is next to entries k - 1 and k */
    double *under, *over;          /* the brackets of eigenvalues */
    double *top, *bottom, *starts; /* a row of a dozen for each entry */
} Search;

INLINE i64 dozens(i64 count) { return (count + LANES - 1) / LANES * LANES; }

/* How many eigenvalues are below each of a dozen points: how often det(T_k - x I) changes its sign with k. In units of
 * `bound` all is at most 1, so determinants need to be brought back now and then only. */
static void count_each(const Search* s, const double* points, i64* counts) {
    const Tridiagonal* t = s->t;
    const double unit = 1 / s->bound;
    vec x[GROUPS], last[GROUPS], before[GROUPS];
    ivec count[GROUPS];
    GROUP x[g] = load(points + g * W), last[g] = each(1), before[g] = each(0), count[g] = (ivec){0};
    for (i64 first = 0; first < t->n; first += RESCALED) {
        for (i64 k = first; k < at_most(first + RESCALED, t->n); k++) {
            const vec d = each(t->diagonal[k] * unit), e = each(-s->squares[k] * unit * unit);
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
static void narrow_brackets(const Search* s, i64 first, double finest) {
    const i64 n = s->t->n, low = s->pairs->low, few = at_most(LANES, low + s->pairs->high - first), n_points = LANES / few;
    double *under = s->under + first, *over = s->over + first, points[LANES] = {0}, widest = 0;
    i64 counts[LANES];
    for (i64 k = 0; k < few; k++) if (over[k] - under[k] > widest) widest = over[k] - under[k];
    for (; widest > finest; widest /= (double)(n_points + 1)) {
        for (i64 k = 0; k < few; k++) {
            const double part = (over[k] - under[k]) / (double)(n_points + 1);
            for (i64 p = 0; p < n_points; p++) points[k * n_points + p] = (under[k] + (double)(p + 1) * part) / s->bound;
        }
        count_each(s, points, counts);
        for (i64 k = 0; k < few; k++) {
            const i64 own = first + k, index = own < low ? own : n - 1 - (own - low);
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
static void factorise(const Search* s, const double* values) {
    const i64 n = s->t->n;
    vec x[GROUPS], p[GROUPS], q[GROUPS];
    GROUP x[g] = load(values + g * W), p[g] = q[g] = each(1);
    for (i64 k = 0; k < n; k++) {
        const i64 m = n - 1 - k;
        const vec d = each(s->t->diagonal[k]), e = each(s->squares[k]);
        const vec d_up = each(s->t->diagonal[m]), e_up = each(s->squares[m + 1]);
        GROUP store(s->top + k * LANES + g * W, p[g] = d - x[g] - e / p[g]);
        GROUP store(s->bottom + m * LANES + g * W, q[g] = d_up - x[g] - e_up / q[g]);
    }
}

/* Eigenvectors of a dozen x from the first on, for which T z - x z is 0 but where the factors meet; x by their
 * quotients. Returns the most that is there. Entries grow from the place where the factors meet, at which `starts` is
 * 1, to both ends. Vectors get the length 1 where they may be the last. */
static double improve_pairs(const Search* s, i64 first, int last) {
    const i64 n = s->t->n, width = s->pairs->width;
    const double *diagonal = s->t->diagonal, *beside = s->t->beside, *top = s->top, *bottom = s->bottom;
    double *values = s->pairs->values + first, *columns = s->pairs->columns + first, *starts = s->starts;
    const vec tiny = each(TINY); /* a pivot is never 0: beyond where the factors meet, 0 times a quotient is to be 0 */
    vec x[GROUPS], least[GROUPS], z[GROUPS], square[GROUPS];
    ivec meet[GROUPS];
    GROUP x[g] = load(values + g * W), least[g] = each(INFINITY), meet[g] = (ivec){0};
    for (i64 k = 0; k < n; k++) GROUP {
        const vec gap = magnitude(load(top + k * LANES + g * W) + load(bottom + k * LANES + g * W) - (each(diagonal[k]) - x[g]));
        const ivec nearer = gap < least[g];
        meet[g] = (nearer & k) | (~nearer & meet[g]);
        least[g] = choose(nearer, gap, least[g]);
    }
    GROUP for (int j = 0; j < W; j++) starts[meet[g][j] * LANES + g * W + j] = 1;
    GROUP store(columns + (n - 1) * width + g * W, z[g] = load(starts + (n - 1) * LANES + g * W));
    for (i64 k = n - 2; k >= 0; k--) {
        const vec b = each(-beside[k]);
        GROUP {
            z[g] = fused(z[g], b / (load(top + k * LANES + g * W) + tiny), load(starts + k * LANES + g * W));
            store(columns + k * width + g * W, z[g]);
        }
    }
    GROUP {
        const vec y = load(columns + g * W);
        square[g] = y * y;
        z[g] = load(starts + g * W);
    }
    for (i64 k = 1; k < n; k++) {
        const vec b = each(-beside[k - 1]);
        GROUP {
            z[g] = z[g] * (b / (load(bottom + k * LANES + g * W) + tiny));
            const vec y = load(columns + k * width + g * W) + z[g];
            z[g] = z[g] + load(starts + k * LANES + g * W);
            square[g] = fused(y, y, square[g]);
            store(columns + k * width + g * W, y);
        }
    }
    double left = 0, scales[LANES];
    for (int lane = 0; lane < LANES; lane++) {
        const i64 k = meet[lane / W][lane % W];
        const double total = square[lane / W][lane % W], at = values[lane];
        const double gap = top[k * LANES + lane] + bottom[k * LANES + lane] - (diagonal[k] - at);
        starts[k * LANES + lane] = 0;
        scales[lane] = 1 / sqrt(total);
        if (!(total < INFINITY)) left = INFINITY;
        if (fabs(gap) * scales[lane] > left) left = fabs(gap) * scales[lane];
        values[lane] = at + gap / total;
    }
    for (i64 k = 0; last && k < n; k++)
        GROUP store(columns + k * width + g * W, load(scales + g * W) * load(columns + k * width + g * W));
    return left;
}

/* Find the pairs, brought near to a fraction of `tolerance` before they are made exact. Returns whether they were found
 * and are distinct. Room for n + 1 + 2 width + 3 n LANES. */
static int find_pairs(const Tridiagonal* t, const Pairs* pairs, double tolerance, double* room) {
    const i64 n = t->n, count = pairs->low + pairs->high, width = pairs->width;
    Search s = {.t = t, .pairs = pairs, .squares = take(&room, n + 1), .under = take(&room, width), .over = take(&room, width)};
    s.top = take(&room, n * LANES), s.bottom = take(&room, n * LANES), s.starts = take(&room, n * LANES);
    clear_row(s.starts, n * LANES);
    s.squares[0] = s.squares[n] = 0;
    double largest = fabs(t->diagonal[0]);
    for (i64 k = 1; k < n; k++) {
        const double square = t->beside[k - 1] * t->beside[k - 1];
        s.squares[k] = square < 1e-290 ? 1e-290 : square; /* never 0, so that nothing is 0 divided by 0 */
        largest = fmax(largest, fmax(fabs(t->diagonal[k]), fabs(t->beside[k - 1])));
    }
    s.bound = 3 * largest;
    if (!(s.bound < INFINITY)) return 0;
    for (i64 k = 0; k < width; k++) {
        const int is_low = at_most(k, count - 1) < pairs->low;
        s.under[k] = is_low ? -s.bound : pairs->above;
        s.over[k] = is_low ? pairs->below : s.bound;
    }
    for (i64 first = 0; first < width; first += LANES) {
        narrow_brackets(&s, first, tolerance * FINER);
        for (i64 k = first; k < first + LANES; k++) pairs->values[k] = 0.5 * (s.under[k] + s.over[k]);
        double left = INFINITY;
        for (int step = 1; step <= MAX_QUOTIENTS && !(step > QUOTIENTS && left <= RESIDUAL_LIMIT * largest); step++) {
            factorise(&s, pairs->values + first);
            left = improve_pairs(&s, first, step >= QUOTIENTS);
        }
        if (!(left <= RESIDUAL_LIMIT * largest)) return 0;
    }
    for (i64 k = 0; k < count; k++) {
        const double x = pairs->values[k], part = s.over[k] - s.under[k];
        if (!(s.under[k] - part <= x && x <= s.over[k] + part)) return 0;
        if (k > 0 && k != pairs->low && fabs(x - pairs->values[k - 1]) <= 4 * part) return 0;
    }
    return 1;
}

/* H_n-1 .. H_1 x of dozens of columns from `first` on. While one reflection is subtracted, the next is multiplied with
 * what is left: columns pass once. */
static void reflect_columns(const Tridiagonal* t, i64 first, double* columns, i64 width) {
    for (i64 at = first; at < width; at += LANES) {
        i64 before = 0; /* the reflection that is still to be subtracted, and by how much */
        vec share[GROUPS] = {{0}};
        for (i64 i = 1; i <= t->n; i++) {
            if (i < t->n && !(t->lengths[i] > 0)) continue;
            const i64 after = i < t->n ? i : before; /* beyond the last there is none */
            const double *u = t->matrix + before * t->size, *v = t->matrix + after * t->size;
            vec sum[GROUPS] = {{0}};
            for (i64 j = 0; j < after; j++) {
                double* own = columns + j * width + at;
                if (j < before) GROUP store(own + g * W, fused(each(u[j]), share[g], load(own + g * W)));
                GROUP sum[g] = fused(each(v[j]), load(own + g * W), sum[g]);
            }
            const vec scale = each(i < t->n ? -1 / t->lengths[after] : 0);
            GROUP share[g] = scale * sum[g];
            before = after;
        }
    }
}

#endif
