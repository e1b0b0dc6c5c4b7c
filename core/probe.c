/* Single functions of the core, for checks that compare them with their specification. */
#include "learners.h"

#if REAL_BITS == 64
EXPORT const char* loss_names(void) { return LOSS_NAMES; }
EXPORT const char* learner_names(void) { return LEARNER_NAMES; }
#endif

/* For each of n margins and labels the loss, its slope, and its proximal slope at a and c: three rows of found. */
EXPORT void NAME(probe_loss)(i64 loss, i64 n, const real* margin, const real* label, const real* a, const real* c, double* found) {
    for (i64 k = 0; k < n; k++) {
        found[k] = value_of(loss, margin[k], label[k]);
        found[n + k] = slope_of(loss, margin[k], label[k]);
        found[2 * n + k] = proximal_slope(loss, a[k], c[k], label[k]);
    }
}

/* Which of n innovations of these norms a budget sends, for how many bits; memory is that of one agent. */
EXPORT void NAME(probe_budget)(const Run* run, i64 n, const double* norms, const i64* bits, double* memory, u8* sent) {
    for (i64 k = 0; k < n; k++) sent[k] = admits(run, norms[k], 0.0, memory) && pays(run, norms[k], bits[k], memory);
}
/* hat + Q(theta - hat) with this scale, and the message that says so. */
EXPORT i64 NAME(probe_quantize)(const Run* run, const real* theta, real* hat, double scale, u8* packed) {
    const Lattice lattice = lattice_for(run, (real)scale);
    const i64 length = pack_codes(run, theta, hat, lattice, packed);
    quantize_row(run, theta, hat, lattice, 0, 0);
    return length;
}
EXPORT i64 NAME(probe_unpack)(const Run* run, const u8* packed, double scale, real* hat) { return add_packed(run, packed, lattice_for(run, (real)scale), hat); }
EXPORT double NAME(probe_scale)(double peak) { return (double)upward_float(peak); }

/* The entropy code of an innovation; returns its bytes, beyond gets how many entries exceed the largest code. */
EXPORT i64 NAME(probe_encode)(const Run* run, const real* innovation, i64* codes, u8* written, i64* beyond) {
    const i64 step = choose_codes(run, innovation, codes, beyond);
    return write_codes(step, codes, run->n_features, written);
}
EXPORT i64 NAME(probe_decode)(const u8* data, i64 length, i64 n, i64* codes) { return read_codes(data, length, n, codes); }

EXPORT void NAME(probe_asinh)(i64 n, const double* values, double* found) { for (i64 k = 0; k < n; k++) found[k] = inverse_sinh(values[k]); }
