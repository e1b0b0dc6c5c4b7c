/* Vectors of 32 bytes of the working precision, and the arithmetic that every compiler compiles to the same bits.
 *
 * A file of rows is compiled once for double and once for float: REAL_BITS is 64 or 32, NAME(f) is f_f64 or f_f32.
 * Products and sums are fused only where fused() says so (-ffp-contract=off), sums over a row have one written order,
 * and no flag allows the compiler to change either. So results do not depend on compiler, processor or vector length.
 */
#ifndef VEC_H
#define VEC_H
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(__FMA__) && defined(__AVX2__)
#include <immintrin.h>
#endif

typedef int64_t i64;
typedef int32_t i32;
typedef uint32_t u32;
typedef uint64_t u64;
typedef uint8_t u8;

#define INLINE static inline __attribute__((always_inline))
#define EXPORT __attribute__((visibility("default")))
#define VECTOR_BYTES 32

#ifndef REAL_BITS
#define REAL_BITS 64
#endif
#if REAL_BITS == 64
typedef double real;
typedef int64_t whole;  /* the integer of the same width */
typedef uint64_t bits_t;
#define NAME(f) f##_f64
#else
typedef float real;
typedef int32_t whole;
typedef uint32_t bits_t;
#define NAME(f) f##_f32
#endif
#define W ((i64)(VECTOR_BYTES / sizeof(real)))

typedef real vec __attribute__((vector_size(VECTOR_BYTES)));
typedef real unaligned_vec __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(real)), may_alias));
typedef whole ivec __attribute__((vector_size(VECTOR_BYTES)));
typedef whole unaligned_ivec __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(real)), may_alias));

INLINE vec load(const real* p) { return *(const unaligned_vec*)p; }
INLINE void store(real* p, vec v) { *(unaligned_vec*)p = v; }
INLINE vec each(real x) { return x - (vec){0}; }  /* x in every lane; x - 0 is x, its sign too */
INLINE vec choose(ivec mask, vec a, vec b) { return (vec)(((ivec)a & mask) | ((ivec)b & ~mask)); }
INLINE vec larger(vec a, vec b) { return choose(a > b, a, b); }
INLINE vec smaller(vec a, vec b) { return choose(a < b, a, b); }
INLINE vec magnitude(vec a) { return (vec)((ivec)a & ~(ivec)each((real)-0.0)); }

#if REAL_BITS == 64
INLINE double fused1(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
INLINE float fused1(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#endif

#if defined(__clang__)
INLINE vec fused(vec a, vec b, vec c) { return __builtin_elementwise_fma(a, b, c); }
INLINE vec floored(vec a) { return __builtin_elementwise_floor(a); }
#elif defined(__FMA__) && defined(__AVX2__) && REAL_BITS == 64  /* GCC has no name for these on vectors */
INLINE vec fused(vec a, vec b, vec c) { return (vec)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c); }
INLINE vec floored(vec a) { return (vec)_mm256_floor_pd((__m256d)a); }
#elif defined(__FMA__) && defined(__AVX2__)
INLINE vec fused(vec a, vec b, vec c) { return (vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
INLINE vec floored(vec a) { return (vec)_mm256_floor_ps((__m256)a); }
#else
INLINE vec fused(vec a, vec b, vec c) { vec r; for (int j = 0; j < W; j++) r[j] = fused1(a[j], b[j], c[j]); return r; }
INLINE vec floored(vec a) { vec r; for (int j = 0; j < W; j++) r[j] = sizeof(real) == 8 ? floor(a[j]) : floorf(a[j]); return r; }
#endif

/* The lanes from the first to the last: the one order in which a sum over a row ends. */
INLINE real sum_of(vec v) { real s = v[0]; for (int j = 1; j < W; j++) s += v[j]; return s; }
INLINE real largest_of(vec v) { real m = v[0]; for (int j = 1; j < W; j++) m = m > v[j] ? m : v[j]; return m; }
INLINE int all_less(vec v, vec limit) { ivec m = v < limit; whole all = m[0]; for (int j = 1; j < W; j++) all &= m[j]; return all != 0; }

INLINE i64 at_most(i64 a, i64 b) { return a < b ? a : b; }
INLINE bits_t bits_of(real x) { bits_t b; memcpy(&b, &x, sizeof b); return b; }
INLINE void prefetch(const real* p, i64 n) { for (i64 k = 0; k < n; k += 64 / (i64)sizeof(real)) __builtin_prefetch(p + k, 0, 2); }

/* The first half of a vector and zeros, or all of it; half is a constant where this is compiled. */
typedef real half_vec __attribute__((vector_size(VECTOR_BYTES / 2)));
typedef real unaligned_half __attribute__((vector_size(VECTOR_BYTES / 2), aligned(sizeof(real)), may_alias));
INLINE vec load_part(const real* p, int half) {
    if (!half) return load(p);
    const half_vec h = *(const unaligned_half*)p;
#if REAL_BITS == 64
    return __builtin_shufflevector(h, (half_vec){0}, 0, 1, 2, 3);
#else
    return __builtin_shufflevector(h, (half_vec){0}, 0, 1, 2, 3, 4, 5, 6, 7);
#endif
}
INLINE void store_part(real* p, vec v, int half) {
    if (!half) store(p, v);
#if REAL_BITS == 64
    else *(unaligned_half*)p = __builtin_shufflevector(v, v, 0, 1);
#else
    else *(unaligned_half*)p = __builtin_shufflevector(v, v, 0, 1, 2, 3);
#endif
}

/* For each vector of a row of n entries: K is its first entry, S which of four running sums takes it. They meet
 * pairwise (meet), so the order of a sum is the same for every n. Where rows are many, the last vector may be HALF. */
#define OVER(n, ...) do { i64 K = 0; \
    for (; K + 4 * W <= (n); ) { \
        { enum { S = 0, HALF = 0 }; __VA_ARGS__ } K += W; { enum { S = 1, HALF = 0 }; __VA_ARGS__ } K += W; \
        { enum { S = 2, HALF = 0 }; __VA_ARGS__ } K += W; { enum { S = 3, HALF = 0 }; __VA_ARGS__ } K += W; } \
    for (; K + W <= (n); K += W) { enum { S = 0, HALF = 0 }; __VA_ARGS__ } \
    if (K < (n)) { enum { S = 0, HALF = 1 }; __VA_ARGS__ } } while (0)
INLINE real meet(const vec s[4]) { return sum_of((s[0] + s[2]) + (s[1] + s[3])); }

#endif
