/* Tiles of four rows by four columns, and registers of 64 bytes where there are any. */
#ifndef TILES_H
#define TILES_H
#include "rows.h"

enum { TILE = 4 };
typedef struct { vec row[TILE]; } Tile;

#if defined(__clang__)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (ivec){__VA_ARGS__})
#endif

INLINE Tile transposed(Tile t) {
    const vec a = SHUFFLE(t.row[0], t.row[1], 0, 4, 1, 5), b = SHUFFLE(t.row[0], t.row[1], 2, 6, 3, 7);
    const vec c = SHUFFLE(t.row[2], t.row[3], 0, 4, 1, 5), d = SHUFFLE(t.row[2], t.row[3], 2, 6, 3, 7);
    return (Tile){{SHUFFLE(a, c, 0, 1, 4, 5), SHUFFLE(a, c, 2, 3, 6, 7), SHUFFLE(b, d, 0, 1, 4, 5), SHUFFLE(b, d, 2, 3, 6, 7)}};
}
/* The sum of each row, its lanes from the first to the last. */
INLINE vec row_sums(Tile t) {
    const Tile c = transposed(t);
    return ((c.row[0] + c.row[1]) + c.row[2]) + c.row[3];
}

#if defined(__AVX512F__)
typedef double wide __attribute__((vector_size(64)));
typedef double unaligned_wide __attribute__((vector_size(64), aligned(8), may_alias));
INLINE wide load_wide(const double* p) { return *(const unaligned_wide*)p; }
INLINE void store_wide(double* p, wide v) { *(unaligned_wide*)p = v; }
INLINE wide each_wide(double x) { return x - (wide){0}; }
INLINE wide fused_wide(wide a, wide b, wide c) { return (wide)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c); }
INLINE wide twice(const double* p) { return (wide)_mm512_broadcast_f64x4(_mm256_loadu_pd(p)); }
INLINE wide lower_halves(wide a, wide b) { return (wide)_mm512_shuffle_f64x2((__m512d)a, (__m512d)b, 0x44); }
INLINE wide upper_halves(wide a, wide b) { return (wide)_mm512_shuffle_f64x2((__m512d)a, (__m512d)b, 0xEE); }
#endif

#endif
