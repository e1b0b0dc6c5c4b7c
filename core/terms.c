/* Messages of a wave: what a sender finds in a matrix, and what both ends make of it.
 *
 * Only a sender decomposes, so any exact enough method gives the same codes: a half, which comes up, is rounded towards
 * zero. What a receiver makes of the codes has one written order, and nothing is fused. */
#include "reflections.h"
#include "rice.h"
#include "spectrum.h"
#include "terms.h"

#define MAX_CODE 0x1p40
#define NO_HALF 0x1p-30  /* taken off before rounding: far above what two ways to compute a number differ by */
#define MAX_FLOAT 3e38   /* that travels as a float32, or the upper half of one */
#define LEAST_EIGENVALUE 0.5  /* that the root solves with */
#define POSITIVE 1e-6    /* all eigenvalues are above it if T is factorised without a look at the pivots */
#define SOUND_PIVOT 1e-3 /* and pivots are above this otherwise */

/* The base-2 logarithm: in one place, so that no library need decide about it. */
INLINE double logarithm2(double x) { return log2(x); }

/* The byte of the largest 2^(j/4) that is at most x, as near as bytes go. */
static i64 step_near(double x) {
    if (!(x > 0)) return 0;
    const double j = floor(4 * logarithm2(x)), low = j > -128 ? j : -128;
    return (i64)(low < 127 ? low : 127) + 128;
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
    if (x != x) return 0;
    const double y = x - copysign(NO_HALF, x), low = y > -MAX_CODE ? y : -MAX_CODE;
    return (i64)rint(low < MAX_CODE ? low : MAX_CODE);
}
/* The upper half of a float32, rounded to the nearest, to the even one of two. */
static u32 upper_half(double x) {
    const float near = (float)(fabs(x) < MAX_FLOAT ? x : copysign(MAX_FLOAT, x));
    u32 bits;
    memcpy(&bits, &near, 4);
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}

/* ---- What a receiver makes of a message, to the bit ---- */

/* Rows for the reflections that triangularise K G, G the first columns of a pivoted Cholesky factor of U. Returns how
 * many there are, at most `most` <= HEAD. Room for (1 + HEAD) n. */
EXPORT i64 make_reflections(const double* information, const double* lower, i64 n, i64 most, double* rows, double* room) {
    double *diagonal = take(&room, n), *x = take(&room, n * HEAD);
    const i64 count = pivoted_columns(information, n, most, rows, diagonal);
    for (i64 i = 0; i < n; i++) for (i64 k = 0; k < HEAD; k++) x[i * HEAD + k] = k < count ? rows[k * n + i] : 0;
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
static void spread_terms(const Message* m, double* spread, double* room) {
    const i64 n = m->factor->n, size = m->factor->size;
    for (i64 first = 0; first < m->n_terms; first += TILE) {
        for (i64 t = 0; t < TILE; t++) {
            const i64* row = m->rows + at_most(first + t, m->n_terms - 1) * (n + 2);
            const double step = step_size(row[1]);
            for (i64 j = 0; j < n; j++) room[j * TILE + t] = (double)row[2 + j] * step;
        }
        for (i64 k = m->n_reflections - 1; k >= 0; k--) reflect_four(m->reflections + k * n, n, room, TILE);
        for (i64 i = 0; i < size; i += W) { /* below the tiles on the diagonal L' is 0 */
            vec sums[TILE][2];
            for (int t = 0; t < TILE; t++) sums[t][0] = each(-0.0); /* to which any number adds itself */
            accumulate(ADD, 1, (Factors){room, 1, TILE}, m->factor->lower_t + i, size, at_most(i + TILE, n), sums);
            for (int t = 0; t < TILE; t++) store(spread + (first + t) * size + i, sums[t][0]);
        }
    }
}
/* Tiles of B + (1/n) sum of terms at row i, in one or two vectors of columns from k on, and transposed. */
INLINE void raise_tiles(int vectors, const Message* m, const double* factors, const double* spread, i64 i, i64 k, double* made) {
    const i64 n = m->factor->n;
    vec sums[TILE][2] = {{{0}}};
    accumulate(ADD, vectors, (Factors){factors, 1, TILE}, spread + k, m->factor->size, m->n_terms, sums);
    for (int c = 0; c < vectors; c++) {
        Tile t, own = get_tile(m->base, n, i, k + c * W), over = get_tile(m->base, n, k + c * W, i);
        for (int r = 0; r < TILE; r++) t.row[r] = sums[r][c] / each(m->n_samples);
        const Tile turned = transposed(t);
        for (int r = 0; r < TILE; r++) own.row[r] = own.row[r] + t.row[r], over.row[r] = over.row[r] + turned.row[r];
        put_tile(made, n, k + c * W, i, over);
        put_tile(made, n, i, k + c * W, own);
    }
}
/* made <- B + (1/n) sum sign (L k s)(L k s)', the terms from the first to the last. */
EXPORT void add_terms(const Message* m, double* made) {
    const i64 n = m->factor->n, size = m->factor->size;
    double* room = m->room;
    double *spread = take(&room, (m->n_terms + 3) / 4 * 4 * size), *factors = take(&room, m->n_terms * TILE);
    spread_terms(m, spread, room);
    for (i64 i = 0; i < n; i += TILE) {
        for (i64 t = 0; t < m->n_terms; t++)
            store(factors + t * TILE, each((double)m->rows[t * (n + 2)]) * load(spread + t * size + i));
        i64 k = 0;
        for (; k < i; k += 2 * W) raise_tiles(2, m, factors, spread, i, k, made);
        if (k == i) raise_tiles(1, m, factors, spread, i, k, made);
    }
}

/* spread <- L x, x = k s with the reflections undone, of the message's terms too. */
EXPORT void spread_vector(const Message* m, i64 step, const i64* codes, double* spread) {
    const i64 n = m->factor->n, size = m->factor->size;
    double* room = m->room;
    double *scaled = take(&room, n), *total = take(&room, size), *more = room;
    const double width = step_size(step);
    for (i64 j = 0; j < n; j++) scaled[j] = (double)codes[j] * width;
    reflect(more, reflections_of_terms(m->rows, m->n_terms, n, m->n_reflections, more), n, 1, scaled);
    reflect(m->reflections, m->n_reflections, n, 1, scaled);
    for (i64 i = 0; i < size; i += W) store(total + i, each(-0.0));
    for (i64 j = 0; j < n; j++) add_row(total, scaled[j], m->factor->lower_t + j * size, size);
    memcpy(spread, total, n * sizeof *spread);
}

/* solution <- L'^-1 (k s), from the last entry to the first. */
EXPORT void solve_back(const double* lower, i64 n, i64 step, const i64* codes, double* solution) {
    const double width = step_size(step);
    for (i64 j = 0; j < n; j++) solution[j] = (double)codes[j] * width;
    for (i64 j = n - 1; j >= 0; j--) {
        const double x = solution[j] /= lower[j * n + j];
        for (i64 i = 0; i < j; i++) solution[i] -= lower[j * n + i] * x;
    }
}

/* ---- What a sender finds ---- */

/* matrix <- M - scale B + shift I, padded; both are read by tiles on and below their diagonals. */
static void subtract_matrix(const double* M, double scale, const double* B, double shift, double* matrix, i64 n) {
    const i64 size = padded(n);
    for (i64 i = 0; i < n; i += TILE)
        for (i64 k = 0; k <= i; k += TILE) {
            Tile t = get_tile(M, n, i, k);
            const Tile b = get_tile(B, n, i, k);
            for (int r = 0; r < TILE; r++) t.row[r] = t.row[r] - each(scale) * b.row[r];
            store_tile(matrix + i * size + k, size, t);
            if (i + TILE <= n || k < i) store_tile(matrix + k * size + i, size, transposed(t));
        }
    for (i64 i = n / TILE * TILE; i < n; i++) for (i64 k = n / TILE * TILE; k < i; k++) matrix[k * size + i] = matrix[i * size + k];
    for (i64 i = 0; i < n; i++) matrix[i * size + i] += shift;
}

/* Rows i to i + 3 of a product of padded matrices, in one or two vectors of columns; `count` rows of `other` count. */
INLINE void multiply_tile(int vectors, const double* one, const double* other, i64 size, i64 count, double* product) {
    vec sums[TILE][2] = {{{0}}};
    accumulate(FUSE, vectors, (Factors){one, size, 1}, other, size, count, sums);
    for (int r = 0; r < TILE; r++) for (int c = 0; c < vectors; c++) store(product + r * size + c * W, sums[r][c]);
}
/* The same up to column i + 3; where `triangular`, the other matrix is an upper triangle. */
static void multiply_rows(const double* one, const double* other, i64 size, i64 i, int triangular, double* product) {
    const i64 end = i + TILE;
    i64 k = 0;
    for (; k + 2 * W <= end; k += 2 * W) multiply_tile(2, one + i * size, other + k, size, triangular ? k + 2 * W : end, product + i * size + k);
    if (k < end) multiply_tile(1, one + i * size, other + k, size, end, product + i * size + k);
}
/* matrix <- K X K', by tiles on and below the diagonal. Room for a matrix. */
static void whiten(const Factor* f, double* matrix, double* half) {
    const i64 size = f->size;
    for (i64 i = 0; i < size; i += TILE) multiply_rows(f->inverse, matrix, size, i, 0, half);
    for (i64 i = 0; i < size; i += TILE) multiply_rows(half, f->inverse_t, size, i, 1, matrix);
    for (i64 i = 0; i < size; i++) for (i64 j = i / TILE * TILE; j < i; j++) matrix[j * size + i] = matrix[i * size + j];
}

/* Rows of terms x v v' for `count` eigenvalues x and eigenvectors v, columns, in an order; returns how many do not round to nothing. */
static i64 code_terms(const Sums* sums, i64 count, const double* sizes, const i64* order, const double* columns, i64 width, i64 n, i64* rows) {
    i64 found = 0;
    for (i64 k = 0; k < count; k++) {
        const double size = fabs(sizes[k]), *column = columns + order[k];
        double total = 0;
        for (i64 i = 0; i < n; i++) total += column[i * width];
        const double scale = total >= 0 ? sqrt(size) : -sqrt(size), most = sums->finest_size < size ? sums->finest_size : size;
        const i64 step = step_near(sums->fineness * sums->tolerance / sqrt(sums->tolerance > most ? sums->tolerance : most));
        const double unit = step_size(step);
        i64 *row = rows + found * (n + 2), some = 0;
        for (i64 i = 0; i < n; i++) some |= row[2 + i] = rounded(scale * column[i * width] / unit);
        row[0] = sizes[k] > 0 ? 1 : -1;
        row[1] = step;
        found += some != 0;
    }
    return found;
}

/* Terms by a search for the eigenvalues beyond the tolerance, if there are few and they are distinct; else -1. What the
 * matrix was reduced to is left as it is. */
static i64 few_terms(const Tridiagonal* t, const Message* m, const Sums* s, double* room) {
    const i64 n = t->n, low = count_below(t, -s->tolerance), high = n - count_below(t, s->tolerance), count = low + high;
    const i64 width = dozens(count);
    if (count == 0) return 0;
    if (count > m->n_terms) return -1;
    const Pairs p = {low, high, width, -s->tolerance, s->tolerance, take(&room, width), take(&room, n * width)};
    if (!find_pairs(t, &p, s->tolerance, room)) return -1;
    i64* order = take(&room, count);
    double* sizes = take(&room, count);
    for (i64 k = 0, first = 0, last = low; k < count; k++) { /* the farthest first */
        const int up = last < count && (first >= low || p.values[last] >= -p.values[first]);
        order[k] = up ? last++ : first++;
        sizes[k] = p.values[order[k]];
    }
    reflect_columns(t, 0, p.columns, width);
    for (i64 at = 0; at < width; at += W)
        for (i64 k = 0; k < m->n_reflections; k++) reflect_four(m->reflections + k * n, n, p.columns + at, width);
    return code_terms(s, count, sizes, order, p.columns, width, n, m->rows);
}

/* All eigenvalues of T, and the rotations that lead to them. */
typedef struct { const Tridiagonal* t; Rotation* rotations; i64 n_rotations; } Spectrum;

static Spectrum find_spectrum(const Tridiagonal* t, double** room) {
    Rotation* rotations = take(room, ROTATIONS * t->n * t->n * (i64)(sizeof(Rotation) / sizeof(double)));
    return (Spectrum){t, rotations, diagonalise(t, rotations)};
}
/* A row for each eigenvalue beyond the tolerance from `origin`, the farthest first, those above only if so wanted. */
static i64 all_terms(const Spectrum* spectrum, const Message* m, const Sums* s, double origin, int only_above, double* room) {
    const Tridiagonal* t = spectrum->t;
    const i64 n = t->n;
    i64 *chosen = take(&room, n), *order = take(&room, n), count = 0;
    double *sizes = take(&room, n), *taken = take(&room, n);
    memset(taken, 0, n * sizeof *taken);
    for (; count < at_most(m->n_terms, n); count++) {
        i64 best = -1;
        double farthest = s->tolerance;
        for (i64 k = 0; k < n; k++) {
            const double x = t->diagonal[k] - origin;
            if ((x > farthest || (-x > farthest && !only_above)) && !taken[k]) best = k, farthest = fabs(x);
        }
        if (best < 0) break;
        taken[best] = 1;
        chosen[count] = best;
        order[count] = count;
        sizes[count] = t->diagonal[best] - origin;
    }
    const i64 width = dozens(count);
    double* columns = take(&room, n * width);
    memset(columns, 0, n * width * sizeof *columns);
    for (i64 k = 0; k < count; k++) columns[chosen[k] * width + k] = 1;
    rotate_rows(spectrum->rotations, spectrum->n_rotations, 1, columns, width);
    reflect_columns(t, 0, columns, width);
    for (i64 at = 0; at < width; at += W)
        for (i64 k = 0; k < m->n_reflections; k++) reflect_four(m->reflections + k * n, n, columns + at, width);
    return code_terms(s, count, sizes, order, columns, width, n, m->rows);
}

/* T of a matrix that is used up. */
static Tridiagonal reduce(double* matrix, i64 n, double** room) {
    const Tridiagonal t = {n, padded(n), matrix, take(room, n), take(room, n), take(room, n)};
    tridiagonalise(&t, *room);
    return t;
}

/* Terms of K (S - n B) K' beyond the tolerance, reflected, into the message's rows. Returns how many there are. */
EXPORT i64 find_terms(const Message* m, const Sums* s) {
    const i64 n = m->factor->n, size = m->factor->size;
    if (!(m->n_samples > 0)) return 0;
    double *room = m->room, *matrix = take(&room, size * size);
    subtract_matrix(s->information, m->n_samples, m->base, 0, matrix, n);
    whiten(m->factor, matrix, room);
    const Tridiagonal t = reduce(matrix, n, &room);
    const i64 found = few_terms(&t, m, s, room);
    if (found >= 0) return found;
    const Spectrum all = find_spectrum(&t, &room);
    return all_terms(&all, m, s, 0, 0, room);
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
/* A message up as bytes: 16 bits `first`, n, four numbers of each output, terms, and the vectors K r. `numbers` are
 * five rows of outputs: those four, of which what is left after rounding is put back, and the size of a vector's step.
 * Returns how many terms there are. */
EXPORT i64 encode_sums(const Message* m, Sums* s, u32 first, double* numbers, u8* data) {
    const i64 n = m->factor->n, found = find_terms(m, s);
    double *room = m->room, *row = take(&room, m->factor->size), *whitened = take(&room, n), *more = room;
    const i64 n_more = reflections_of_terms(m->rows, found, n, m->n_reflections, more);
    const float samples = (float)(m->n_samples < MAX_FLOAT ? m->n_samples : MAX_FLOAT);
    u32 bits;
    memcpy(&bits, &samples, 4);
    u8* at = put_half(put_half(put_half(data, first), bits >> 16), bits);
    for (i64 k = 0; k < s->n_outputs; k++) {
        i64* own = m->rows + (found + k) * (n + 2);
        whiten_vector(m->factor, s->moments + k * n, whitened, row);
        reflect(m->reflections, m->n_reflections, n, 0, whitened);
        reflect(more, n_more, n, 0, whitened);
        own[0] = -1;
        own[1] = step_near(numbers[4 * s->n_outputs + k]);
        for (i64 i = 0; i < n; i++) own[2 + i] = rounded(whitened[i] / step_size(own[1]));
        for (int which = 0; which < 4; which++) {
            double* number = numbers + which * s->n_outputs + k;
            const u32 half = upper_half(*number), whole = half << 16;
            float left;
            memcpy(&left, &whole, 4);
            *number = left;
            at = put_half(at, half);
        }
    }
    s->n_bits = write_body(&(Body){n, found, s->n_outputs, 0, 0, m->rows, 0}, data, at - data);
    return found;
}

/* Inner products of x and the first `count` columns, and 0 for those that fill a vector. */
static void take_shares(const double* columns, i64 width, i64 n, i64 count, const double* x, double* shares) {
    for (i64 j = 0; j < count; j += W) {
        vec total = {0};
        for (i64 i = 0; i < n; i++) total = fused(each(x[i]), load(columns + i * width + j), total);
        store(shares + j, total);
    }
    for (i64 j = count; j < padded(count); j++) shares[j] = 0;
}
/* x <- x - columns shares */
static void take_out(const double* columns, i64 width, i64 n, i64 count, const double* shares, double* x) {
    for (i64 i = 0; i < n; i++) {
        vec total = {0};
        for (i64 j = 0; j < count; j += W) total = fused(load(shares + j), load(columns + i * width + j), total);
        x[i] -= sum_of(total);
    }
}
/* Terms, and rows solved, by the eigenvalues above 1 + tolerance and those under 1/2, which count as 1/2; -1 if that
 * fails. For what is left of a row without the eigenvectors of the latter T^-1 is right, also where some of these are
 * negative, as long as no pivot comes near 0. */
static i64 solve_by_few(const Tridiagonal* t, const Message* m, const Sums* s, double* rows, double* room) {
    const i64 n = t->n, low = count_below(t, LEAST_EIGENVALUE), high = n - count_below(t, 1 + s->tolerance);
    if (high > m->n_terms || 2 * (low + high) > n) return -1;
    if (count_below(t, POSITIVE) > 0 && !(least_pivot(t) > SOUND_PIVOT)) return -1;
    const i64 width = dozens(low + high);
    const Pairs p = {low, high, width, LEAST_EIGENVALUE, 1 + s->tolerance, take(&room, width), take(&room, n * width)};
    if (width && !find_pairs(t, &p, LEAST_EIGENVALUE, room)) return -1;
    double *shares = take(&room, width), *left = take(&room, width), *sizes = take(&room, high);
    i64* order = take(&room, high);
    for (i64 k = 0; k < s->n_outputs; k++) {
        double* x = rows + k * t->size;
        take_shares(p.columns, width, n, low, x, shares);
        take_out(p.columns, width, n, low, shares, x);
        solve_tridiagonal(t, x, room);
        take_shares(p.columns, width, n, low, x, left); /* what rounding left there, many times as large by now */
        for (i64 j = 0; j < low; j++) left[j] -= shares[j] / LEAST_EIGENVALUE;
        take_out(p.columns, width, n, low, left, x);
    }
    for (i64 j = 0; j < high; j++) order[j] = low + j, sizes[j] = p.values[low + j] - 1;
    reflect_columns(t, low / LANES * LANES, p.columns, width);
    return code_terms(s, high, sizes, order, p.columns, width, n, m->rows);
}
/* The same by all eigenvalues, those under 1/2 raised to it. */
static i64 solve_by_all(const Tridiagonal* t, const Message* m, const Sums* s, double* rows, double* room) {
    const i64 n = t->n, width = padded(s->n_outputs);
    const Spectrum all = find_spectrum(t, &room);
    const i64 found = all_terms(&all, m, s, 1, 1, room);
    double* columns = take(&room, n * width);
    for (i64 i = 0; i < n; i++) for (i64 k = 0; k < width; k++) columns[i * width + k] = k < s->n_outputs ? rows[k * t->size + i] : 0;
    rotate_rows(all.rotations, all.n_rotations, 0, columns, width);
    for (i64 i = 0; i < n; i++)
        for (i64 k = 0; k < width; k++) columns[i * width + k] /= t->diagonal[i] < LEAST_EIGENVALUE ? LEAST_EIGENVALUE : t->diagonal[i];
    rotate_rows(all.rotations, all.n_rotations, 1, columns, width);
    for (i64 i = 0; i < n; i++) for (i64 k = 0; k < s->n_outputs; k++) rows[k * t->size + i] = columns[i * width + k];
    return found;
}
/* Terms of W = K (S + shift I) K' beyond I, upwards, and K' W^-1 K r of each output, W with eigenvalues of at least 1/2.
 * Returns how many terms there are. */
EXPORT i64 solve_sums(const Message* m, const Sums* s, double shift, double* solution) {
    const i64 n = m->factor->n, size = m->factor->size;
    double *room = m->room, *matrix = take(&room, size * size), *rows = take(&room, s->n_outputs * size);
    subtract_matrix(s->information, 0, s->information, shift, matrix, n);
    whiten(m->factor, matrix, room);
    const Tridiagonal t = reduce(matrix, n, &room);
    memset(rows, 0, s->n_outputs * size * sizeof *rows);
    for (i64 k = 0; k < s->n_outputs; k++) {
        whiten_vector(m->factor, s->moments + k * n, rows + k * size, room);
        apply_reflections(&t, 1, rows + k * size);
    }
    i64 found = solve_by_few(&t, m, s, rows, room);
    if (found < 0) found = solve_by_all(&t, m, s, rows, room);
    memset(solution, 0, s->n_outputs * n * sizeof *solution);
    for (i64 k = 0; k < s->n_outputs; k++) {
        double *x = rows + k * size, *own = solution + k * n;
        apply_reflections(&t, 0, x);
        for (i64 i = 0; i < n; i++) for (i64 j = 0; j <= i; j++) own[j] += x[i] * m->factor->inverse[i * size + j];
    }
    return found;
}

/* ---- The root's step ---- */

typedef struct {
    const double* information; /* C (n, n) */
    i64 n, n_outputs;
    double n_samples, shift;
    const double *change, *residual; /* (n_outputs, n) */
    const double *damping, *step;    /* of each output: damping, and the size of a step */
} RootStep;

/* lower <- chol(n C + shift I), and for each output (step, codes) of L'd, shortened, in a row; moved <- L'^-1 k s,
 * squares <- |k s|^2. Returns whether a pivot was raised. Room for a matrix. */
EXPORT i64 take_step(const RootStep* r, double* lower, i64* rows, double* moved, double* squares, double* room) {
    const i64 n = r->n;
    const i64 raised = factor_matrix(r->information, n, r->n_samples, r->shift, r->shift, lower, room);
    double* x = room;
    for (i64 k = 0; k < r->n_outputs; k++) {
        const double *d = r->change + k * n, *residual = r->residual + k * n;
        i64* own = rows + k * (n + 1);
        double told = 0, known = 0;
        memset(x, 0, n * sizeof *x);
        for (i64 i = 0; i < n; i++) {
            told += d[i] * residual[i];
            for (i64 j = 0; j <= i; j++) x[j] += d[i] * lower[i * n + j];
        }
        for (i64 i = 0; i < n; i++) known += x[i] * x[i];
        const double share = known > 0 ? told / known : 1;
        const double shorter = share > 0 ? sqrt(share < 1 ? share : 1) / r->damping[k] : 0;
        own[0] = step_near(r->step[k]);
        const double unit = step_size(own[0]);
        squares[k] = 0;
        for (i64 i = 0; i < n; i++) {
            own[1 + i] = rounded(x[i] * shorter / unit);
            squares[k] += (double)own[1 + i] * unit * ((double)own[1 + i] * unit);
        }
        solve_back(lower, n, own[0], own + 1, moved + k * n);
    }
    return raised;
}

/* How many doubles of room a message of so many terms and vectors takes, and any matrix on the way. */
EXPORT i64 message_room(i64 n, i64 n_terms, i64 n_outputs) {
    const i64 size = padded(n), spread = (n_terms + 3) / 4 * 4 * size + 4 * n_terms + 4 * n;
    const i64 spectrum = 3 * ROTATIONS * n * n + n * dozens(n) + 4 * dozens(n) + 64 * n + (size + n) * (n_outputs + 4) + 512;
    return 2 * size * size + (spread > spectrum ? spread : spectrum);
}
