/* Terms and vectors of a message as bits. A vector is 4 bits for an order p, then each code, zigzag, in the Rice code
 * of order p: u >> p zeros, a one, and the lowest p bits of u. From u >> p = STEEP on, STEEP zeros are followed by
 * (u >> p) - STEEP + 1: as many zeros as it has binary digits but one, and these digits. Bits start at the highest of
 * each byte. */
#include "rice.h"

enum { ORDERS = 16, STEEP = 6, MAX_DIGITS = 42 /* of u, that a reader accepts */ };

INLINE u64 zigzag(i64 k) { return k > 0 ? 2 * (u64)k - 1 : -2 * (u64)k; }
INLINE int digits_of(u64 x) { return x ? 64 - __builtin_clzll(x) : 0; }
/* The length of a vector's head after so many terms. */
INLINE i64 longer_head(i64 head, i64 n_terms) { return head + at_most(n_terms, (head + 1) / 2); }

/* Bits of codes in an order, without the order itself; more than `most` where it is longer. First as if what is rare
 * took no longer than the shortest of it, since that is found for several codes at a time. */
static i64 length_in(const i64* codes, i64 n, int order, i64 most) {
    i64 length = (order + 1) * n;
    for (i64 k = 0; k < n; k++) length += at_most((i64)(zigzag(codes[k]) >> order), STEEP);
    for (i64 k = 0; k < n && length <= most; k++) {
        const u64 high = zigzag(codes[k]) >> order;
        if (high > STEEP) length += 2 * digits_of(high - STEEP + 1) - 2;
    }
    return length;
}
/* The order whose code is shortest, the smallest of several. */
static int cheapest_order(const i64* codes, i64 n) {
    u64 total = 0;
    for (i64 k = 0; k < n; k++) total += zigzag(codes[k]);
    const int guess = (int)at_most(ORDERS - 1, digits_of(total / (2 * (u64)n)));
    int order = guess;
    i64 best = length_in(codes, n, guess, INT64_MAX);
    for (int p = 0; p < ORDERS && (p + 1) * n <= best; p++) {
        const i64 length = p == guess ? best : length_in(codes, n, p, best);
        if (length < best || (length == best && p < order)) order = p, best = length;
    }
    return order;
}

typedef struct { u8* data; u64 last; int n_last; } Writer; /* the last n_last < 8 bits fill no byte yet */

/* The lowest `width` <= 56 bits of a value. */
INLINE void put_bits(Writer* w, u64 value, int width) {
    w->last = w->last << width | value;
    for (w->n_last += width; w->n_last >= 8; ) *w->data++ = (u8)(w->last >> (w->n_last -= 8));
}
static void put_vector(Writer* w, const i64* codes, i64 n) {
    const int order = cheapest_order(codes, n);
    put_bits(w, (u64)order, 4);
    for (i64 k = 0; k < n; k++) {
        const u64 u = zigzag(codes[k]), high = u >> order, low = u & ((1ULL << order) - 1);
        if (high < STEEP) {
            put_bits(w, 1ULL << order | low, (int)high + 1 + order);
        } else {
            const int digits = digits_of(high - STEEP + 1);
            put_bits(w, 0, STEEP + digits - 1);
            put_bits(w, high - STEEP + 1, digits);
            put_bits(w, low, order);
        }
    }
}
/* The step of a row, and its codes, of which the first few have an order of their own. */
static void put_row(Writer* w, const i64* row, i64 n, i64 head) {
    put_bits(w, (u64)row[1], 8);
    if (head) put_vector(w, row + 2, head);
    put_vector(w, row + 2 + head, n - head);
}

/* Write a body from byte `at` on. Returns where its bits end, counted from the beginning of data. */
EXPORT i64 write_body(const Body* b, u8* data, i64 at) {
    const i64 n = b->n_features, head = b->plain ? 0 : head_of(n), *row = b->rows;
    Writer w = {.data = data + at};
    for (i64 k = 0; k < b->n_terms; k++, row += n + 2) {
        put_bits(&w, row[0] > 0 ? 3 : 2, 2);
        put_row(&w, row, n, head);
    }
    put_bits(&w, 0, 1);
    if (row[0] >= 0) put_bits(&w, (u64)row[0], 8);
    for (i64 k = 0; k < b->n_vectors; k++, row += n + 2) put_row(&w, row, n, longer_head(head, b->n_terms));
    const i64 end = 8 * (w.data - data) + w.n_last;
    put_bits(&w, 0, 7); /* fills the last byte */
    return end;
}

typedef struct { const u8* data; i64 n_bits, at; int failed; } Reader;

/* The bits from the reader's place on, at least 57, in the highest of the result; beyond the end they are zero. */
INLINE u64 next_bits(const Reader* r) {
    const u8* from = r->data + (r->at >> 3);
    const i64 n_bytes = (r->n_bits >> 3) - (r->at >> 3);
    u64 bits = 0;
    if (n_bytes >= 8) for (int k = 0; k < 8; k++) bits = bits << 8 | from[k];
    else for (int k = 0; k < 8; k++) bits = bits << 8 | (k < n_bytes ? from[k] : 0);
    return bits << (r->at & 7);
}
/* The next `width` bits as a number, from 1 to 57 of them. */
INLINE u64 get_bits(Reader* r, int width) {
    if (width > r->n_bits - r->at) r->failed = 1;
    if (r->failed) return 0;
    const u64 bits = next_bits(r) >> (64 - width);
    r->at += width;
    return bits;
}
static void get_vector(Reader* r, i64* codes, i64 n) {
    const int order = (int)get_bits(r, 4);
    for (i64 k = 0; k < n && !r->failed; k++) {
        const u64 bits = next_bits(r);
        const int zeros = bits ? __builtin_clzll(bits) : 64, digits = (zeros > STEEP ? zeros - STEEP : 0) + 1;
        r->at += zeros;
        if (digits + order > MAX_DIGITS) r->failed = 1;
        const u64 rest = get_bits(r, digits + order), high = rest >> order, low = rest & ((1ULL << order) - 1);
        const u64 u = (zeros < STEEP ? (u64)zeros : high + STEEP - 1) << order | low;
        codes[k] = u & 1 ? (i64)((u + 1) >> 1) : -(i64)(u >> 1);
    }
}
static void get_row(Reader* r, i64* row, i64 n, i64 head) {
    row[1] = (i64)get_bits(r, 8);
    if (head) get_vector(r, row + 2, head);
    get_vector(r, row + 2 + head, n - head);
}

/* Read a body of at most n_terms terms into its rows, from a stranger's bytes. Returns how many terms there are, -1
 * where the bytes are none. */
EXPORT i64 read_body(Body* b, const u8* data, i64 n_bytes) {
    const i64 n = b->n_features, head = b->plain ? 0 : head_of(n);
    Reader r = {.data = data, .n_bits = 8 * n_bytes};
    i64 n_terms = 0, *row = b->rows;
    for (; get_bits(&r, 1); n_terms++, row += n + 2) {
        if (n_terms == b->n_terms) return -1;
        row[0] = get_bits(&r, 1) ? 1 : -1;
        get_row(&r, row, n, head);
    }
    if (b->shifted) row[0] = (i64)get_bits(&r, 8);
    for (i64 k = 0; k < b->n_vectors; k++, row += n + 2) get_row(&r, row, n, longer_head(head, n_terms));
    b->end = r.at;
    return r.failed || r.n_bits - r.at > 7 || next_bits(&r) ? -1 : n_terms;
}
