/* Bytes of strangers to the reader of message bodies: what it accepts must survive being written and read again.
 *
 *   clang -fsanitize=fuzzer,address,undefined -DLIBFUZZER tests/native/fuzz/body.c -lm -o fuzz-body
 *   cc -fsanitize=address,undefined tests/native/fuzz/body.c -lm -o fuzz-body && ./fuzz-body 60 1
 *
 * The second form needs no fuzzer: it writes bodies of random rows, damages them, and reads them for so many seconds.
 * The first three bytes of an input say how it is read. */
#define REAL_BITS 64
#include "../../../core/rice.c"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SHAPE_BYTES = 3, MAX_FEATURES = 100, MAX_TERMS = 12, MAX_VECTORS = 3, MAX_BYTES = 4096 };

static void fail(const char* what) {
    fprintf(stderr, "%s\n", what);
    abort();
}
static Body body_for(const u8* shape) {
    Body b = {.n_features = 1 + shape[0] % MAX_FEATURES, .n_terms = shape[1] % (MAX_TERMS + 1)};
    b.n_vectors = 1 + (shape[2] >> 2) % MAX_VECTORS;
    b.plain = shape[2] & 1;
    b.shifted = shape[2] >> 1 & 1;
    return b;
}
static i64* rows_of(const Body* b) {
    return calloc((size_t)((b->n_terms + b->n_vectors) * (b->n_features + 2)), sizeof(i64));
}
static i64 bytes_of(const Body* b) { return (b->n_terms + b->n_vectors) * (10 + 13 * b->n_features); }

int LLVMFuzzerTestOneInput(const u8* data, size_t n_bytes) {
    if (n_bytes < SHAPE_BYTES) return 0;
    Body b = body_for(data), again = b;
    const i64 n = (i64)n_bytes - SHAPE_BYTES, most = b.n_terms;
    u8* exact = malloc((size_t)n + !n); /* so that a byte too many is noticed */
    memcpy(exact, data + SHAPE_BYTES, (size_t)n);
    b.rows = rows_of(&b);
    const i64 found = read_body(&b, exact, n);
    if (found < -1 || found > most) fail("an impossible number of terms");
    if (found >= 0) {
        if (b.end < 0 || b.end > 8 * n || 8 * n - b.end > 7) fail("an impossible end");
        if (!b.shifted) b.rows[found * (b.n_features + 2)] = -1;
        b.n_terms = again.n_terms = found;
        u8* written = malloc((size_t)bytes_of(&b));
        const i64 length = (write_body(&b, written, 0) + 7) / 8;
        if (length > bytes_of(&b)) fail("written beyond its room");
        again.rows = rows_of(&again);
        if (!b.shifted) again.rows[found * (b.n_features + 2)] = -1;
        if (read_body(&again, written, length) != found) fail("not read again");
        const size_t n_rows = (size_t)(found + b.n_vectors);
        for (size_t k = 0; k < n_rows; k++) /* the first number of a vector is what was there before, mostly */
            if (memcmp(b.rows + k * (size_t)(b.n_features + 2) + 1, again.rows + k * (size_t)(b.n_features + 2) + 1,
                       (size_t)(b.n_features + 1) * sizeof(i64))) fail("read as something else");
        free(again.rows);
        free(written);
    }
    free(b.rows);
    free(exact);
    return 0;
}

#if !defined(LIBFUZZER)
static u64 state;

static u64 draw(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}
/* A body of random rows, most codes small and some as large as they may be, and its shape before it. */
static i64 write_random(u8* data) {
    for (int k = 0; k < SHAPE_BYTES; k++) data[k] = (u8)draw();
    Body b = body_for(data);
    const i64 length = b.n_features + 2;
    b.n_terms = (i64)(draw() % (u64)(b.n_terms + 1));
    b.rows = rows_of(&b);
    u8* written = malloc((size_t)bytes_of(&b));
    for (i64 k = 0; k < b.n_terms + b.n_vectors; k++) {
        i64* row = b.rows + k * length;
        const u64 digits = 1 + draw() % 41;
        row[0] = k < b.n_terms ? 1 - 2 * (i64)(draw() & 1) : k == b.n_terms && b.shifted ? (i64)(draw() & 255) : -1;
        row[1] = (i64)(draw() & 255);
        for (i64 i = 2; i < length; i++) row[i] = (i64)(draw() >> (63 - draw() % digits)) * (draw() & 1 ? 1 : -1);
    }
    const i64 n_bytes = (write_body(&b, written, 0) + 7) / 8, kept = at_most(n_bytes, MAX_BYTES - SHAPE_BYTES);
    memcpy(data + SHAPE_BYTES, written, (size_t)kept);
    free(written);
    free(b.rows);
    return SHAPE_BYTES + kept;
}
/* Flip bits, replace, remove or insert bytes, or cut the end off. */
static i64 damage(u8* data, i64 n) {
    for (u64 times = draw() % 4; times > 0 && n > 1; times--) {
        const i64 at = (i64)(draw() % (u64)n), some = 1 + (i64)(draw() % 8);
        switch (draw() % 5) {
        case 0: data[at] ^= (u8)(1 << draw() % 8); break;
        case 1: data[at] = (u8)(draw() % 3 ? draw() : 0); break;
        case 2: memmove(data + at, data + at + 1, (size_t)(n - at - 1)); n--; break;
        case 3:
            if (n == MAX_BYTES) break;
            memmove(data + at + 1, data + at, (size_t)(n++ - at));
            data[at] = (u8)draw();
            break;
        default: n = n > some ? n - some : 0;
        }
    }
    return n;
}
int main(int argc, char** argv) {
    static u8 data[MAX_BYTES];
    const double seconds = argc > 1 ? atof(argv[1]) : 10;
    const time_t start = time(0);
    state = 0x9E3779B97F4A7C15ULL * (argc > 2 ? (u64)atoll(argv[2]) + 1 : 1);
    i64 runs = 0;
    for (; runs % 256 || difftime(time(0), start) < seconds; runs++) {
        i64 n = write_random(data);
        if (draw() % 8 == 0) for (i64 k = 0; k < n; k++) data[k] = (u8)draw();
        LLVMFuzzerTestOneInput(data, (size_t)damage(data, n));
    }
    printf("%lld bodies\n", (long long)runs);
    return 0;
}
#endif
