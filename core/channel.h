/* The channel over single rows: censor, then quantize; and the codes that travel. The specification is laconic.channel. */
#ifndef CHANNEL_H
#define CHANNEL_H
#include "losses.h"
#include "range_code.h"
#include "rows.h"

/* The least float that is not below peak (at most the largest finite one): the scale that travels. */
INLINE float upward_float(double peak) {
    if (peak > (double)FLT_MAX) return FLT_MAX;
    float rounded = (float)peak;
    if ((double)rounded < peak) {
        u32 b;
        memcpy(&b, &rounded, 4);
        b++;
        memcpy(&rounded, &b, 4);
    }
    return rounded;
}

/* ---- Censor ---- */

enum { THRESHOLD, CREDIT, PRICE }; /* of a budget's memory */

/* Whether to send for this price; the memory is then that of the next round. */
static int spend(const Run* run, double* memory, double norm, int wish, double price) {
    if (memory[THRESHOLD] == 0 && norm > 0) memory[THRESHOLD] = norm;
    if (wish) memory[PRICE] = price;
    const double cost = memory[PRICE], most = MAX(run->burst, cost), earned = memory[CREDIT] + run->income;
    const double credit = MIN(most, earned), rate = MIN(1.0, run->income / cost);
    const int sent = wish && credit >= cost;
    memory[CREDIT] = sent ? credit - cost : credit;
    memory[THRESHOLD] *= exp(run->gain * ((wish ? 1.0 : 0.0) - rate));
    return sent;
}
/* Whether the censor lets an innovation of that norm through; where bits are paid for, pays decides. */
INLINE int admits(const Run* run, double norm, double threshold, double* memory) {
    if (run->budget == BY_ROUND) return !(norm < threshold);
    const int wish = norm > 0 && norm >= memory[THRESHOLD];
    return (wish && run->budget == BY_BIT) || spend(run, memory, norm, wish, 1.0);
}
INLINE int pays(const Run* run, double norm, i64 bits, double* memory) {
    return run->budget != BY_BIT || spend(run, memory, norm, 1, (double)bits);
}

/* ---- Quantizer of fixed width ---- */

/* A lattice: its lower edge, and base, shift, width such that code k stands for base + (k + shift) width. */
typedef struct { real edge, base, shift, width; } Lattice;

INLINE Lattice lattice_of(const Run* run, real low, real high) {
    if (run->rounding == RISE) return (Lattice){low, low, (real)0.5, (high - low) / (real)run->cells};
    const real width = (high - low) / (real)(run->cells - 1), lowest = (real)rint((double)(real)(low / width));
    return (Lattice){(lowest - (real)0.5) * width, 0, lowest, width};
}
/* The lattice of a message with this scale: that of an adaptive range, which is one where low equals high. */
INLINE Lattice lattice_for(const Run* run, real scale) {
    return run->low == run->high ? lattice_of(run, -scale, scale) : lattice_of(run, (real)run->low, (real)run->high);
}
INLINE vec cells_of(vec h, const Lattice* l, vec last) {
    const vec cell = floored((h - each(l->edge)) / each(l->width));
    return smaller(larger(cell, (vec){0}), last);
}
INLINE vec values_of(vec cell, const Lattice* l) { return each(l->base) + (cell + each(l->shift)) * each(l->width); }

/* How many entries of an innovation lie outside the range and so saturate. */
static i64 count_outside(const real* theta, const real* hat, i64 n_features, real low, real high) {
    i64 outside = 0;
    for (i64 k = 0; k < n_features; k++) {
        const real h = theta[k] - hat[k];
        outside += (h < low) | (h > high);
    }
    return outside;
}
/* theta-hat <- theta-hat + Q(theta - theta-hat); returns the squared distance of theta from it then. Where mean is
 * given, apart gets the squared distance of theta from that. Padding stays zero, which need not be a value. */
INLINE real quantize_row(const Run* run, const real* theta, real* hat, Lattice l, const real* mean, real* apart) {
    const vec last = each((real)(run->cells - 1));
    vec s[4] = {{0}}, d[4] = {{0}};
    OVER(run->size, const vec t = load_part(theta + K, HALF); vec h = load_part(hat + K, HALF);
         const vec q = values_of(cells_of(t - h, &l, last), &l);
         h = h + (vec)((ivec)q & *(const unaligned_ivec*)(run->mask + K)); store_part(hat + K, h, HALF);
         const vec e = t - h; s[S] = fused(e, e, s[S]);
         if (mean) { const vec a = t - load(mean + K); d[S] = fused(a, a, d[S]); });
    if (mean) *apart = meet(d);
    return meet(s);
}
/* The codes of theta - theta-hat, bits each, the first in the lowest bits; returns how many bytes they take. */
static i64 pack_codes(const Run* run, const real* theta, const real* hat, Lattice l, u8* packed) {
    const vec last = each((real)(run->cells - 1));
    u64 waiting = 0;
    i64 n_waiting = 0, at = 0;
    for (i64 k = 0; k < run->n_features; k += W) {
        const i64 some = MIN(W, run->n_features - k);
        vec h = {0};
        for (i64 j = 0; j < some; j++) h[j] = theta[k + j] - hat[k + j];
        const vec cell = cells_of(h, &l, last);
        for (i64 j = 0; j < some; j++) {
            waiting |= (u64)cell[j] << n_waiting;
            for (n_waiting += run->bits; n_waiting >= 8; n_waiting -= 8, waiting >>= 8) packed[at++] = (u8)waiting;
        }
    }
    if (n_waiting) packed[at++] = (u8)waiting;
    return at;
}
/* hat <- hat + the values of packed codes; false if the bits left over at the end are not zero. The caller has seen to
 * it that there are (n_features * bits + 7) / 8 bytes. */
static int add_packed(const Run* run, const u8* packed, Lattice l, real* hat) {
    const u64 mask = (1ULL << run->bits) - 1;
    u64 waiting = 0;
    i64 n_waiting = 0;
    for (i64 k = 0; k < run->n_features; k++) {
        for (; n_waiting < run->bits; n_waiting += 8) waiting |= (u64)*packed++ << n_waiting;
        hat[k] = hat[k] + (l.base + ((real)(waiting & mask) + l.shift) * l.width);
        waiting >>= run->bits;
        n_waiting -= run->bits;
    }
    return waiting == 0;
}

/* ---- Entropy code ---- */

/* The codes of an innovation and the number of its step; beyond gets how many entries exceed the largest code. */
static i64 choose_codes(const Run* run, const real* innovation, i64* codes, i64* beyond) {
    const i64 n = run->n_features;
    double square = 0.0;
    for (i64 k = 0; k < n; k++) square += (double)innovation[k] * (double)innovation[k];
    const i64 j = nearest_step(run->coarseness * sqrt(square / (double)n));
    const double step = step_of(j), limit = ((double)(LARGEST_CODE + 1) - run->dead_zone) * step;
    *beyond = 0;
    for (i64 k = 0; k < n; k++) {
        const double value = (double)innovation[k], ratio = fabs(value) / step + run->dead_zone;
        const i64 code = ratio < LARGEST_CODE ? (i64)ratio : LARGEST_CODE;
        *beyond += fabs(value) > limit;
        codes[k] = value < 0 ? -code : code;
    }
    return j;
}
/* hat <- hat + k step, rounded once to the working precision. */
INLINE void add_codes(i64 j, const i64* codes, i64 n, real* hat) {
    const double step = step_of(j);
    for (i64 k = 0; k < n; k++) hat[k] += (real)((double)codes[k] * step);
}

#endif
