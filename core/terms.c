/* Messages of a wave: a sender finds terms in its sums, and both ends of a link derive the same sums from them.
 *
 * Only a sender decomposes, so any exact enough method gives the same codes: a half, which comes up, is rounded towards
 * zero. A receiver derives sums from codes in one written order, and nothing is fused. */
#include "reflections.h"
#include "rice.h"
#include "spectrum.h"
#include "terms.h"

#define MAX_CODE 0x1p40
#define MAX_FLOAT 3e38       /* that travels as a float32, or the upper half of one */
#define NO_HALF 0x1p-30      /* taken off before rounding, far above the error of a number */
#define LEAST_EIGENVALUE 0.5 /* that the root solves with */
#define POSITIVE 1e-6        /* if T is factorised without a look at its pivots, all eigenvalues are above this; */
#define SOUND_PIVOT 1e-3     /* otherwise pivots are above this */

INLINE double logarithm2(double x) { return log2(x); } /* of the library, in one place */
INLINE double least_of(double a, double b) { return b < a ? b : a; }
INLINE double most_of(double a, double b) { return b > a ? b : a; }

/* The byte of the largest 2^(j/4) that is at most x, as near as bytes go. */
static i64 step_near(double x) {
    return x > 0 ? (i64)least_of(127, most_of(-128, floor(4 * logarithm2(x)))) + 128 : 0;
}
/* 2^((step - 128)/4): a power of two times one of four constants. */
INLINE double step_size(i64 step) {
    static const double fourths[] = {1.0, 1.189207115002721, 1.4142135623730951, 1.681792830507429};
    const u64 bits = (u64)(1023 + (step >> 2) - 32) << 52;
    double power;
    memcpy(&power, &bits, 8);
    return fourths[step & 3] * power;
}
/* The whole number next to x, a half towards 0, within bounds; 0 for NaN. */
INLINE i64 rounded(double x) {
    return x != x ? 0 : (i64)rint(least_of(MAX_CODE, most_of(-MAX_CODE, x - copysign(NO_HALF, x))));
}
/* x <- k s */
INLINE void scale_codes(const i64* codes, i64 n, double size, double* x) {
    for (i64 i = 0; i < n; i++) x[i] = (double)codes[i] * size;
}

/* ---- Receivers, to the bit ---- */

/* Rows for the reflections that triangularise K G, G the first columns of a pivoted Cholesky factor of U. Returns how
 * many there are, at most `most` <= HEAD. Room for (1 + HEAD) n. */
EXPORT i64 make_reflections(const double* U, const double* lower, i64 n, i64 most, double* rows, double* room) {
    double *x = take(&room, n * HEAD), *diagonal = room;
    const i64 count = pivoted_columns(U, n, most, rows, diagonal);
    for (i64 i = 0; i < n; i++)
        for (i64 k = 0; k < HEAD; k++) x[i * HEAD + k] = k < count ? rows[k * n + i] : 0;
    solve_columns(lower, n, x);
    for (i64 k = 0; k < count; k++) {
        double* v = rows + k * n;
        for (i64 i = 0; i < n; i++) v[i] = x[i * HEAD + k];
        make_reflection(v, n, k);
        for (int c = 0; c < HEAD; c += W) reflect_four(v, n, x + c, HEAD);
    }
    return count;
}

/* L k s of terms, a row each, the reflections undone; four at a time. Room for 4 n. */
static void spread_terms(const Message* m, double* spread, double* scaled) {
    const i64 n = m->factor->n, size = m->factor->size;
    clear_row(spread, padded(m->n_terms) * size);
    for (i64 first = 0; first < m->n_terms; first += TILE) {
        for (i64 t = 0; t < TILE; t++) {
            const i64* row = m->rows + at_most(first + t, m->n_terms - 1) * (n + 2);
            for (i64 j = 0; j < n; j++) scaled[j * TILE + t] = (double)row[2 + j] * step_size(row[1]);
        }
        for (i64 k = m->n_reflections - 1; k >= 0; k--) reflect_four(m->reflections + k * n, n, scaled, TILE);
        PANELS(i, c, size) { /* L' is an upper triangle */
            const Coefficients f = {scaled, 1, TILE};
            accumulate(ADD, c, f, m->factor->lower_t + i, size, at_most(i + c, n), spread + first * size + i, size);
        }
    }
}
/* made <- U + (1/n) sum sign (L k s)(L k s)', the terms from the first to the last. */
EXPORT void add_terms(const Message* m, double* made) {
    const i64 n = m->factor->n, size = m->factor->size;
    double *room = m->room, *spread = take(&room, padded(m->n_terms) * size);
    double *factors = take(&room, m->n_terms * TILE), *four = take(&room, TILE * size);
    spread_terms(m, spread, room);
    for (i64 i = 0; i < n; i += TILE) {
        for (i64 t = 0; t < m->n_terms; t++)
            store(factors + t * TILE, each((double)m->rows[t * (n + 2)]) * load(spread + t * size + i));
        clear_row(four, TILE * size);
        PANELS(k, c, i + TILE)
            accumulate(ADD, c, (Coefficients){factors, 1, TILE}, spread + k, size, m->n_terms, four + k, size);
        for (i64 k = 0; k <= i; k += TILE) {
            Tile t = load_tile(four + k, size), own = get_tile(m->base, n, i, k), over = get_tile(m->base, n, k, i);
            for (int r = 0; r < TILE; r++) t.row[r] = t.row[r] / each(m->n_samples);
            const Tile u = transposed(t);
            for (int r = 0; r < TILE; r++) own.row[r] = own.row[r] + t.row[r], over.row[r] = over.row[r] + u.row[r];
            put_tile(made, n, k, i, over);
            put_tile(made, n, i, k, own);
        }
    }
}
/* spread <- L x, x = k s with the reflections undone, those of the message's terms too. */
EXPORT void spread_vector(const Message* m, i64 step, const i64* codes, double* spread) {
    const i64 n = m->factor->n, size = m->factor->size;
    double *room = m->room, *x = take(&room, n), *total = take(&room, size), *more = room;
    scale_codes(codes, n, step_size(step), x);
    reflect(more, reflections_of_terms(m->rows, m->n_terms, n, m->n_reflections, more), n, 1, x);
    reflect(m->reflections, m->n_reflections, n, 1, x);
    for (i64 i = 0; i < size; i++) total[i] = -0.0; /* to which any number adds itself */
    for (i64 j = 0; j < n; j++) add_row(total, x[j], m->factor->lower_t + j * size, size);
    memcpy(spread, total, n * sizeof *spread);
}
/* x <- L'^-1 (k s), from the last entry to the first. */
EXPORT void solve_back(const double* lower, i64 n, i64 step, const i64* codes, double* x) {
    scale_codes(codes, n, step_size(step), x);
    for (i64 j = n - 1; j >= 0; j--) {
        const double known = x[j] /= lower[j * n + j];
        for (i64 i = 0; i < j; i++) x[i] -= lower[j * n + i] * known;
    }
}

/* ---- Senders ---- */

/* matrix <- M - scale B + shift I, padded; both are read by tiles on and below their diagonals. */
static void subtract_matrix(const double* M, double scale, const double* B, double shift, double* matrix, i64 n) {
    const i64 size = padded(n), whole = n / TILE * TILE;
    for (i64 i = 0; i < n; i += TILE)
        for (i64 k = 0; k <= i; k += TILE) {
            Tile t = get_tile(M, n, i, k);
            const Tile b = get_tile(B, n, i, k);
            for (int r = 0; r < TILE; r++) t.row[r] = t.row[r] - each(scale) * b.row[r];
            store_tile(matrix + i * size + k, size, t);
            if (k < whole) store_tile(matrix + k * size + i, size, transposed(t));
        }
    for (i64 i = whole; i < n; i++) for (i64 k = whole; k < i; k++) matrix[k * size + i] = matrix[i * size + k];
    for (i64 i = 0; i < n; i++) matrix[i * size + i] += shift;
}
/* product <- A B of padded matrices, by tiles on and below the diagonal; A is a lower triangle, or B an upper one. */
static void multiply_matrices(const double* A, const double* B, i64 size, int upper, double* product) {
    for (i64 i = 0; i < size; i += TILE) {
        double* own = product + i * size;
        for (i64 r = 0; r < TILE; r++) clear_row(own + r * size, i + TILE);
        PANELS(k, c, i + TILE) {
            const i64 count = upper ? k + c : i + TILE;
            accumulate(FUSE, c, (Coefficients){A + i * size, size, 1}, B + k, size, count, own + k, size);
        }
    }
}
/* T of K (M - scale B + shift I) K'. */
static Tridiagonal reduce(
    const Factor* f, const double* M, double scale, const double* B, double shift, double** room) {
    const i64 size = f->size;
    double *matrix = take(room, size * size), *half = *room;
    subtract_matrix(M, scale, B, shift, matrix, f->n);
    multiply_matrices(f->inverse, matrix, size, 0, half);
    multiply_matrices(half, f->inverse_t, size, 1, matrix);
    for (i64 i = 0; i < size; i++)
        for (i64 j = i / TILE * TILE; j < i; j++) matrix[j * size + i] = matrix[i * size + j];
    return tridiagonalise(matrix, f->n, room);
}

/* Eigenvalues, less their origin, and columns over the entries of T, which become eigenvectors. Terms
 * are made of those in `order`; dozens before `first` hold none. */
typedef struct { i64 count, first, width, *order; double *sizes, *columns; } Found;

static Found make_found(i64 n, i64 count, i64 width, double** room) {
    return (Found){count, 0, width, take(room, n), take(room, n), take(room, n * width)};
}
/* Terms x v v' of eigenvalues x and eigenvectors v into a message's rows; returns how many do not round to nothing. */
static i64 code_terms(const Tridiagonal* t, const Message* m, const Sums* s, const Found* f) {
    const i64 n = t->n;
    i64 n_terms = 0;
    reflect_columns(t, f->first, f->columns, f->width);
    for (i64 at = 0; at < f->width; at += W)
        for (i64 k = 0; k < m->n_reflections; k++) reflect_four(m->reflections + k * n, n, f->columns + at, f->width);
    for (i64 k = 0; k < f->count; k++) {
        const double size = fabs(f->sizes[k]), *column = f->columns + f->order[k], root = sqrt(size);
        double total = 0;
        for (i64 i = 0; i < n; i++) total += column[i * f->width];
        const double scale = total >= 0 ? root : -root, shown = most_of(least_of(size, s->finest_size), s->tolerance);
        i64 *row = m->rows + n_terms * (n + 2), some = 0;
        row[0] = f->sizes[k] > 0 ? 1 : -1;
        row[1] = step_near(s->fineness * s->tolerance / sqrt(shown));
        const double unit = step_size(row[1]);
        for (i64 i = 0; i < n; i++) some |= row[2 + i] = rounded(scale * column[i * f->width] / unit);
        n_terms += some != 0;
    }
    return n_terms;
}

/* Terms by a search for the eigenvalues beyond the tolerance, if these are few and distinct; else -1. T is left. */
static i64 few_terms(const Tridiagonal* t, const Message* m, const Sums* s, double* room) {
    const i64 low = count_below(t, -s->tolerance), high = t->n - count_below(t, s->tolerance), count = low + high;
    if (count == 0) return 0;
    if (count > m->n_terms) return -1;
    const Found f = make_found(t->n, count, dozens(count), &room);
    Pairs p = {t, low, high, f.width, -s->tolerance, s->tolerance, take(&room, f.width), f.columns};
    if (!find_pairs(&p, s->tolerance, room)) return -1;
    for (i64 k = 0, first = 0, last = low; k < count; k++) { /* the farthest first */
        const int up = last < count && (first >= low || p.values[last] >= -p.values[first]);
        f.order[k] = up ? last++ : first++;
        f.sizes[k] = p.values[f.order[k]];
    }
    return code_terms(t, m, s, &f);
}

/* Terms of the eigenvalues beyond the tolerance from 0, the farthest first, or of those above 1 by more than that. */
static i64 all_terms(const Tridiagonal* t, Rotations all, const Message* m, const Sums* s, int above_1, double* room) {
    const double origin = above_1 ? 1 : 0;
    const i64 n = t->n, most = at_most(m->n_terms, n);
    i64 *chosen = take(&room, n), *taken = take(&room, n), count = 0;
    memset(taken, 0, n * sizeof *taken);
    for (i64 best = 0; count < most && best >= 0; ) {
        double farthest = s->tolerance;
        best = -1;
        for (i64 k = 0; k < n; k++) {
            const double x = t->diagonal[k] - origin;
            if ((x > farthest || (-x > farthest && !above_1)) && !taken[k]) best = k, farthest = fabs(x);
        }
        if (best >= 0) taken[best] = 1, chosen[count++] = best;
    }
    const Found f = make_found(n, count, dozens(count), &room);
    memset(f.columns, 0, n * f.width * sizeof *f.columns);
    for (i64 k = 0; k < count; k++) {
        f.order[k] = k;
        f.sizes[k] = t->diagonal[chosen[k]] - origin;
        f.columns[chosen[k] * f.width + k] = 1;
    }
    rotate_rows(all, 1, f.columns, f.width);
    return code_terms(t, m, s, &f);
}

/* Terms of K (S - n U) K' beyond the tolerance, reflected, into the message's rows. Returns how many there are. */
EXPORT i64 find_terms(const Message* m, const Sums* s) {
    if (!(m->n_samples > 0)) return 0;
    double* room = m->room;
    const Tridiagonal t = reduce(m->factor, s->information, m->n_samples, m->base, 0, &room);
    const i64 found = few_terms(&t, m, s, room);
    if (found >= 0) return found;
    const Rotations all = diagonalise(&t, &room);
    return all_terms(&t, all, m, s, 0, room);
}

/* whitened <- K r. Room for a padded row. */
static void whiten_vector(const Factor* f, const double* r, double* whitened, double* row) {
    clear_row(row, f->size);
    memcpy(row, r, f->n * sizeof *row);
    for (i64 i = 0; i < f->n; i++) whitened[i] = dot(f->inverse + i * f->size, row, f->size);
}
INLINE u8* put_half(u8* at, u32 half) {
    at[0] = (u8)(half >> 8);
    at[1] = (u8)half;
    return at + 2;
}
INLINE u32 float_bits(double x) {
    const float near = (float)(fabs(x) < MAX_FLOAT ? x : copysign(MAX_FLOAT, x));
    u32 bits;
    memcpy(&bits, &near, 4);
    return bits;
}
/* A number as the upper half of a float32, to the nearest, to the even one of two; that value is put back. */
static u8* put_number(u8* at, double* x) {
    const u32 bits = float_bits(*x), half = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16, whole = half << 16;
    float left;
    memcpy(&left, &whole, 4);
    *x = left;
    return put_half(at, half);
}
/* A message up as bytes: 16 bits `first`, n, four numbers of each output, terms, and the vectors K r. Rows of `numbers`
 * are those four, which become the values that travel, and the sizes of steps. Returns how many terms there are. */
EXPORT i64 encode_sums(const Message* m, Sums* s, u32 first, double* numbers, u8* data) {
    const i64 n = m->factor->n, found = find_terms(m, s), outputs = s->n_outputs;
    double *room = m->room, *row = take(&room, m->factor->size), *x = take(&room, n), *more = room;
    const i64 n_more = reflections_of_terms(m->rows, found, n, m->n_reflections, more);
    const u32 samples = float_bits(m->n_samples);
    u8* at = put_half(put_half(put_half(data, first), samples >> 16), samples);
    for (i64 k = 0; k < outputs; k++) {
        i64* own = m->rows + (found + k) * (n + 2);
        whiten_vector(m->factor, s->moments + k * n, x, row);
        reflect(m->reflections, m->n_reflections, n, 0, x);
        reflect(more, n_more, n, 0, x);
        own[0] = -1;
        own[1] = step_near(numbers[4 * outputs + k]);
        const double unit = step_size(own[1]);
        for (i64 i = 0; i < n; i++) own[2 + i] = rounded(x[i] / unit);
        for (int which = 0; which < 4; which++) at = put_number(at, numbers + which * outputs + k);
    }
    s->n_bits = write_body(&(Body){n, found, outputs, 0, 0, m->rows, 0}, data, at - data);
    return found;
}

/* shares <- inner products of x and the first `count` columns, 0 for those that fill a vector. */
static void take_shares(const Found* f, i64 n, i64 count, const double* x, double* shares) {
    for (i64 j = 0; j < count; j += W) {
        vec total = {0};
        for (i64 i = 0; i < n; i++) total = fused(each(x[i]), load(f->columns + i * f->width + j), total);
        store(shares + j, total);
    }
    for (i64 j = count; j < padded(count); j++) shares[j] = 0;
}
/* x <- x - columns shares */
static void take_out(const Found* f, i64 n, i64 count, const double* shares, double* x) {
    for (i64 i = 0; i < n; i++) {
        vec total = {0};
        for (i64 j = 0; j < count; j += W) total = fused(load(shares + j), load(f->columns + i * f->width + j), total);
        x[i] -= sum_of(total);
    }
}
/* Terms, and rows solved, by the eigenvalues above 1 + tolerance and those under 1/2, which count as 1/2; -1 if that
 * fails. Once a row has lost its parts along the eigenvectors of the latter, T^-1 is right for it, also where some of
 * these are negative, as long as no pivot comes near 0. */
static i64 solve_by_few(const Tridiagonal* t, const Message* m, const Sums* s, double* rows, double* room) {
    const double above = 1 + s->tolerance;
    const i64 n = t->n, low = count_below(t, LEAST_EIGENVALUE), high = n - count_below(t, above);
    double* pivots = take(&room, n);
    if (high > m->n_terms || 2 * (low + high) > n) return -1;
    if (!(factor_tridiagonal(t, pivots) > SOUND_PIVOT) && count_below(t, POSITIVE) > 0) return -1;
    Found f = make_found(n, high, dozens(low + high), &room);
    Pairs p = {t, low, high, f.width, LEAST_EIGENVALUE, above, take(&room, f.width), f.columns};
    if (f.width && !find_pairs(&p, LEAST_EIGENVALUE, room)) return -1;
    double *shares = take(&room, f.width), *left = take(&room, f.width);
    for (double* x = rows; x < rows + s->n_outputs * t->size; x += t->size) {
        take_shares(&f, n, low, x, shares);
        take_out(&f, n, low, shares, x);
        solve_tridiagonal(t, pivots, x);
        take_shares(&f, n, low, x, left); /* left by rounding, many times as large by now */
        for (i64 j = 0; j < low; j++) left[j] -= shares[j] / LEAST_EIGENVALUE;
        take_out(&f, n, low, left, x);
    }
    for (i64 j = 0; j < high; j++) f.order[j] = low + j, f.sizes[j] = p.values[low + j] - 1;
    f.first = low / LANES * LANES;
    return code_terms(t, m, s, &f);
}
/* The same by all eigenvalues, those under 1/2 raised to it. */
static i64 solve_by_all(const Tridiagonal* t, const Message* m, const Sums* s, double* rows, double* room) {
    const i64 n = t->n, outputs = s->n_outputs, width = padded(outputs);
    const Rotations all = diagonalise(t, &room);
    const i64 found = all_terms(t, all, m, s, 1, room);
    double* x = room;
    for (i64 i = 0; i < n; i++)
        for (i64 k = 0; k < width; k++) x[i * width + k] = k < outputs ? rows[k * t->size + i] : 0;
    rotate_rows(all, 0, x, width);
    for (i64 i = 0; i < n; i++)
        for (i64 k = 0; k < width; k++) x[i * width + k] /= most_of(t->diagonal[i], LEAST_EIGENVALUE);
    rotate_rows(all, 1, x, width);
    for (i64 i = 0; i < n; i++) for (i64 k = 0; k < outputs; k++) rows[k * t->size + i] = x[i * width + k];
    return found;
}
/* Terms of W = K (S + shift I) K' beyond I, upwards, and solution <- K' W^-1 K r of each output, W with eigenvalues of
 * at least 1/2. Returns how many terms there are. */
EXPORT i64 solve_sums(const Message* m, const Sums* s, double shift, double* solution) {
    const i64 n = m->factor->n, size = m->factor->size, outputs = s->n_outputs;
    double *room = m->room, *rows = take(&room, outputs * size);
    const Tridiagonal t = reduce(m->factor, s->information, 0, s->information, shift, &room);
    clear_row(rows, outputs * size);
    for (i64 k = 0; k < outputs; k++) {
        whiten_vector(m->factor, s->moments + k * n, rows + k * size, room);
        apply_reflections(&t, 1, rows + k * size);
    }
    i64 found = solve_by_few(&t, m, s, rows, room);
    if (found < 0) found = solve_by_all(&t, m, s, rows, room);
    memset(solution, 0, outputs * n * sizeof *solution);
    for (i64 k = 0; k < outputs; k++) {
        double *x = rows + k * size, *own = solution + k * n;
        apply_reflections(&t, 0, x);
        for (i64 i = 0; i < n; i++) for (i64 j = 0; j <= i; j++) own[j] += x[i] * m->factor->inverse[i * size + j];
    }
    return found;
}

/* lower <- chol(n C + shift I), and for each output (step, codes) of L'd, shortened, in a row; moved <- L'^-1 k s,
 * squares <- |k s|^2. Returns whether a pivot was raised. Room for a matrix. */
EXPORT i64 take_step(const RootStep* r, double* lower, i64* rows, double* moved, double* squares, double* room) {
    const i64 n = r->n, raised = factor_matrix(r->information, n, r->n_samples, r->shift, r->shift, lower, room);
    double* x = room;
    for (i64 k = 0; k < r->n_outputs; k++) {
        const double *d = r->change + k * n, *residual = r->residual + k * n;
        i64* own = rows + k * (n + 1);
        double told = 0, known = 0, square = 0;
        memset(x, 0, n * sizeof *x);
        for (i64 i = 0; i < n; i++) {
            told += d[i] * residual[i];
            for (i64 j = 0; j <= i; j++) x[j] += d[i] * lower[i * n + j];
        }
        for (i64 i = 0; i < n; i++) known += x[i] * x[i];
        const double share = known > 0 ? told / known : 1;
        const double shorter = share > 0 ? sqrt(least_of(1, share)) / r->damping[k] : 0;
        own[0] = step_near(r->sizes[k]);
        const double unit = step_size(own[0]);
        for (i64 i = 0; i < n; i++) own[1 + i] = rounded(x[i] * shorter / unit);
        solve_back(lower, n, own[0], own + 1, moved + k * n);
        scale_codes(own + 1, n, unit, x);
        for (i64 i = 0; i < n; i++) square += x[i] * x[i];
        squares[k] = square;
    }
    return raised;
}

/* How many doubles of room a message of so many terms and vectors takes, and any matrix on the way. */
EXPORT i64 message_room(i64 n, i64 n_terms, i64 n_outputs) {
    const i64 size = padded(n), width = dozens(n), spread = (padded(n_terms) + 8) * size + 4 * n_terms;
    const i64 spectrum = 3 * ROTATIONS * n * n + n * width + 6 * width + 40 * n + (2 * size + n) * (n_outputs + 4);
    return 2 * size * size + (spread > spectrum ? spread : spectrum) + 512;
}
