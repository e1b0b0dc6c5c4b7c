/* The bytes of an entropy code: laconic.channel.entropy is its specification.
 *
 * A message is the number of its step, the two models, and a range code of a nonzero flag, a sign and a magnitude for
 * each code. The interval of the range coder is a pair of numbers of 32 bits. */
#ifndef RANGE_CODE_H
#define RANGE_CODE_H
#include "vec.h"

enum { LARGEST_CODE = 255, HALF_CHANCE = 2048, N_ZERO_MODELS = 16, N_MAGNITUDE_MODELS = 8 };
static const i32 NONZERO_CHANCES[N_ZERO_MODELS] = {4014, 3131, 2442, 1905, 1486, 1159, 904, 705, 550, 429, 335, 261, 204, 159, 124, 97};
static const i32 MORE_CHANCES[N_MAGNITUDE_MODELS] = {3686, 2212, 1327, 796, 478, 287, 172, 103};
/* What a yes and what a no cost with each model, in 65536ths of a bit. */
static const i64 NONZERO_PRICES[N_ZERO_MODELS][2] = {{1912, 369783}, {25401, 136683}, {48900, 85738}, {72380, 59155}, {95865, 42609}, {119363, 31449}, {142857, 23577}, {166364, 17859}, {189839, 13633}, {213331, 10461}, {236715, 8067}, {260315, 6225}, {283612, 4830}, {307175, 3743}, {330682, 2907}, {353900, 2266}};
static const i64 MORE_PRICES[N_MAGNITUDE_MODELS][2] = {{9972, 217614}, {58253, 73428}, {106565, 37018}, {154886, 20431}, {203105, 11732}, {251337, 6868}, {299744, 4056}, {348226, 2408}};
static const double FOURTHS[5] = {1.0, 1.189207115002721, 1.4142135623730951, 1.681792830507429, 2.0};

/* 2^((j - 128)/4): a power of two times one of four constants, the same double everywhere. */
INLINE double step_of(i64 j) { return ldexp(FOURTHS[j & 3], (int)(j >> 2) - 32); }

/* The j whose step is nearest to size; of two as near, the smaller. */
static i64 nearest_step(double size) {
    if (!(size < 4294967296.0)) return 255;
    if (!(size > 0)) return 0;
    int exponent;
    const double mantissa = frexp(size, &exponent);
    i64 j = 128 + 4 * ((i64)exponent - 1);
    for (int k = 0; k < 4; k++) j += 2 * mantissa > (FOURTHS[k] + FOURTHS[k + 1]) / 2;
    return j < 0 ? 0 : j > 255 ? 255 : j;
}
/* The model with which so many answers cost least; of two that cost the same, the first. */
static int cheapest_model(const i64 prices[][2], int n_models, i64 n_yes, i64 n_no) {
    int best = 0;
    i64 least = prices[0][0] * n_yes + prices[0][1] * n_no;
    for (int model = 1; model < n_models; model++) {
        const i64 price = prices[model][0] * n_yes + prices[model][1] * n_no;
        if (price < least) { best = model; least = price; }
    }
    return best;
}

typedef struct { u32 low, high; u8* out; i64 length; } RangeWriter;

INLINE void put_decision(RangeWriter* w, int yes, u32 chance) {
    const u32 middle = w->low + ((w->high - w->low) >> 12) * chance;
    if (yes) w->high = middle;
    else w->low = middle + 1;
    for (; (w->low ^ w->high) < (1u << 24); w->low <<= 8, w->high = w->high << 8 | 255) w->out[w->length++] = (u8)(w->high >> 24);
}
/* The shortest number in [low, high] with zeros behind it, and its bytes. */
static int shortest_ending(u32 low, u32 high, u32* number) {
    for (int size = 0; size < 4; size++) {
        const u64 rest = 0xFFFFFFFFu >> (8 * size), candidate = (low + rest) & ~rest;
        if (candidate <= high) { *number = (u32)candidate; return size; }
    }
    *number = low;
    return 4;
}
/* The message of these codes into out, which has room for the longest; returns how many bytes it has. */
static i64 write_codes(i64 step, const i64* codes, i64 n, u8* out) {
    i64 n_nonzero = 0, n_more = 0, n_ends = 0;
    for (i64 k = 0; k < n; k++) {
        const i64 size = codes[k] < 0 ? -codes[k] : codes[k];
        if (size) { n_nonzero++; n_more += size - 1; n_ends += size < LARGEST_CODE; }
    }
    const int zero = cheapest_model(NONZERO_PRICES, N_ZERO_MODELS, n_nonzero, n - n_nonzero);
    const int more = cheapest_model(MORE_PRICES, N_MAGNITUDE_MODELS, n_more, n_ends);
    RangeWriter w = {0, 0xFFFFFFFFu, out, 2};
    out[0] = (u8)step;
    out[1] = (u8)(zero << 3 | more);
    for (i64 k = 0; k < n; k++) {
        const i64 size = codes[k] < 0 ? -codes[k] : codes[k];
        put_decision(&w, size != 0, NONZERO_CHANCES[zero]);
        if (!size) continue;
        put_decision(&w, codes[k] < 0, HALF_CHANCE);
        for (i64 m = 1; m < size; m++) put_decision(&w, 1, MORE_CHANCES[more]);
        if (size < LARGEST_CODE) put_decision(&w, 0, MORE_CHANCES[more]);
    }
    u32 number;
    const int rest = shortest_ending(w.low, w.high, &number);
    for (int k = 0; k < rest; k++) out[w.length++] = (u8)(number >> (24 - 8 * k));
    return w.length;
}

typedef struct { u32 low, high, code; const u8* data; i64 length, shifted; int failed; } RangeReader;

/* Read a decision. A message that ends before its codes do has failed, and every later decision is no. */
INLINE int get_decision(RangeReader* r, u32 chance) {
    const u32 middle = r->low + ((r->high - r->low) >> 12) * chance;
    const int yes = r->code <= middle;
    if (yes) r->high = middle;
    else r->low = middle + 1;
    for (; (r->low ^ r->high) < (1u << 24); r->low <<= 8, r->high = r->high << 8 | 255) {
        if (r->shifted == r->length - 2) { r->failed = 1; return 0; }
        r->shifted++;
        const i64 next = r->shifted + 5;
        r->code = r->code << 8 | (next < r->length ? r->data[next] : 0);
    }
    return yes;
}
/* The codes in a message of some bytes; false if it is not the one message that these codes have. */
static int read_codes(const u8* data, i64 length, i64 n, i64* codes) {
    if (length < 2 || data[1] > 127) return 0;
    const u32 nonzero = NONZERO_CHANCES[data[1] >> 3], more = MORE_CHANCES[data[1] & 7];
    RangeReader r = {0, 0xFFFFFFFFu, 0, data, length, 0, 0};
    for (i64 k = 2; k < 6; k++) r.code = r.code << 8 | (k < length ? data[k] : 0);
    for (i64 k = 0; k < n; k++) {
        codes[k] = 0;
        const int present = get_decision(&r, nonzero);
        if (r.failed) return 0;
        if (!present) continue;
        const int negative = get_decision(&r, HALF_CHANCE);
        i64 size = 1;
        while (!r.failed && size < LARGEST_CODE && get_decision(&r, more)) size++;
        if (r.failed) return 0;
        codes[k] = negative ? -size : size;
    }
    u32 number;
    const int rest = shortest_ending(r.low, r.high, &number);
    int good = length - 2 - r.shifted == rest;
    for (int k = 0; good && k < rest; k++) good = data[2 + r.shifted + k] == (u8)(number >> (24 - 8 * k));
    return good;
}

#endif
