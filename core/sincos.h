/* Sines and cosines of as many phases as LANE_BYTES hold; included by features.c for each length of a register. */
typedef real LANED(lanes) __attribute__((vector_size(LANE_BYTES)));
typedef real LANED(unaligned_lanes) __attribute__((vector_size(LANE_BYTES), aligned(sizeof(real)), may_alias));
typedef whole LANED(ilanes) __attribute__((vector_size(LANE_BYTES)));

INLINE LANED(lanes) LANED(all)(real x) { return x - (LANED(lanes)){0}; }
INLINE LANED(lanes) LANED(fma)(LANED(lanes) a, LANED(lanes) b, LANED(lanes) c) {
#if defined(__clang__)
    return __builtin_elementwise_fma(a, b, c);
#elif LANE_BYTES == VECTOR_BYTES
    return (LANED(lanes))fused((vec)a, (vec)b, (vec)c);
#elif REAL_BITS == 64
    return (LANED(lanes))_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#else
    return (LANED(lanes))_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#endif
}

INLINE void LANED(put_waves)(const real* phases, real scale, real* cosines, real* sines) {
    const LANED(lanes) phase = *(const LANED(unaligned_lanes)*)phases;
    const LANED(lanes) shifted = LANED(fma)(phase, LANED(all)(TWO_OVER_PI), LANED(all)(MAGIC)), turns = shifted - LANED(all)(MAGIC);
    const LANED(ilanes) quadrant = (LANED(ilanes))shifted, one = (LANED(ilanes)){0} + 1, two = one + one;
    const LANED(lanes) r = LANED(fma)(turns, LANED(all)(-HALF_PI_REST), LANED(fma)(turns, LANED(all)(-HALF_PI), phase)), z = r * r;
    LANED(lanes) s = LANED(all)(SINE[0]), c = LANED(all)(COSINE[0]);
    for (int k = 1; k < N_TERMS; k++) {
        s = LANED(fma)(s, z, LANED(all)(SINE[k]));
        c = LANED(fma)(c, z, LANED(all)(COSINE[k]));
    }
    s = LANED(fma)(s * z, r, r);
    c = LANED(fma)(LANED(fma)(c, z, LANED(all)((real)-0.5)), z, LANED(all)(1));
    const LANED(ilanes) odd = -(quadrant & one), sine = (LANED(ilanes))s, cosine = (LANED(ilanes))c;
    const LANED(ilanes) a = ((cosine & odd) | (sine & ~odd)) ^ ((quadrant & two) << (REAL_BITS - 2));
    const LANED(ilanes) b = ((sine & odd) | (cosine & ~odd)) ^ (((quadrant + one) & two) << (REAL_BITS - 2));
    *(LANED(unaligned_lanes)*)cosines = LANED(all)(scale) * (LANED(lanes))b;
    *(LANED(unaligned_lanes)*)sines = LANED(all)(scale) * (LANED(lanes))a;
}
#undef LANE_BYTES
#undef LANED
