/* x -> phi(x): scaling of inputs, a product, and a sine and cosine of each phase; a row has the same bits in any block.
 *
 * With raw inputs scaled, u = (x - centre) / spread of each column that varies, and the product takes [asinh(u), u]. */
#include "features.h"
#include "vec.h"

enum { TILE_ROWS = 4, TILE_VECTORS = 3 };

/* asinh and its logarithm are written out, since libraries differ in their last digit. */
#define LARGE 268435456.0 /* 2^28: from here on asinh(a) is log(2 a), to the last digit */

/* log y for y >= 1: y = 2^e m with m around 1, and log m = 2 atanh((m - 1)/(m + 1)) by its series. */
INLINE double logarithm(double y) {
    static const double odd[] = {1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1.0};
    const u64 mantissa = (1ULL << 52) - 1, one = 1023ULL << 52, magic = (1023ULL + 52) << 52;
    u64 bits, exponent_bits, m_bits;
    memcpy(&bits, &y, 8);
    const int high = (bits & mantissa) > 0x6A09E667F3BCDULL; /* of sqrt(2): m above it is halved */
    exponent_bits = (bits >> 52) | magic;
    m_bits = (bits & mantissa) | one;
    double exponent, m;
    memcpy(&exponent, &exponent_bits, 8);
    memcpy(&m, &m_bits, 8);
    exponent = exponent - (4503599627370496.0 + 1023.0) + (high ? 1.0 : 0.0);
    m *= high ? 0.5 : 1.0;
    const double r = (m - 1.0) / (m + 1.0), z = r * r;
    double series = odd[0];
    for (int k = 1; k < 12; k++) series = __builtin_fma(series, z, odd[k]);
    return __builtin_fma(exponent, 0.6931471803691238, __builtin_fma(2.0 * r, series, exponent * 1.9082149292705877e-10));
}
/* asinh u = sign(u) log1p(|u| + u^2/(1 + sqrt(1 + u^2))); an input that is not finite stays as it is. */
INLINE double inverse_sinh(double u) {
    const double a = fabs(u);
    const int near = a < LARGE;
    const double b = near ? a : 0.0, w = b + b * b / (1.0 + sqrt(__builtin_fma(b, b, 1.0))), y = 1.0 + w;
    const double rest = (w - (y - 1.0)) / y; /* what rounding took from 1 + w */
    const double value = logarithm(near ? y : a) + (near ? rest : 0.6931471805599453);
    return a < INFINITY ? copysign(value, u) : u;
}

/* lifted = [asinh(u), u], and the linear block of each row into its place in phi. A row with an entry that is not
 * finite, be it in a column that is ignored, is lifted to NaN, which its phases show. */
static void lift_rows(const Features* f, const real* x, i64 n_rows, real* lifted, real* phi) {
    const i64 d = f->n_columns, half = f->n_lifted / 2, block = 2 * f->n_frequencies;
    for (i64 row = 0; row < n_rows; row++, x += f->n_inputs, lifted += f->n_lifted, phi += f->size) {
        int finite = 1;
        for (i64 k = 0; k < f->n_inputs; k++) finite &= fabs((double)x[k]) < INFINITY;
        for (i64 k = 0; k < d; k++) {
            const double u = ((double)x[f->columns[k]] - f->centre[k]) / f->spread[k];
            lifted[k] = (real)inverse_sinh(u);
            lifted[half + k] = (real)u;
            if (f->n_direct) {
                const double low = u > -f->most ? u : -f->most;
                phi[block + k] = (real)((low < f->most ? low : f->most) * f->share);
            }
        }
        if (!finite) lifted[0] = (real)NAN;
        else if (!d) lifted[0] = 0;
        if (f->last) phi[block + f->n_direct] = 1;
    }
}

/* z = x w for some rows and vectors of columns. Every entry is a chain of fused operations over the inputs, in order. */
INLINE void tile(int rows, int vectors, const real* x, i64 d, const real* w, i64 stride, real* z) {
    vec s[TILE_ROWS][TILE_VECTORS] = {{{0}}};
    for (i64 k = 0; k < d; k++) {
        vec column[TILE_VECTORS];
        for (int c = 0; c < vectors; c++) column[c] = load(w + k * stride + c * W);
        for (int r = 0; r < rows; r++) {
            const vec factor = each(x[r * d + k]);
            for (int c = 0; c < vectors; c++) s[r][c] = fused(factor, column[c], s[r][c]);
        }
    }
    for (int r = 0; r < rows; r++) for (int c = 0; c < vectors; c++) store(z + r * stride + c * W, s[r][c]);
}
/* Four rows of inputs are in use while those behind them are asked for. */
static void project(const real* x, i64 n_rows, i64 d, const real* w, i64 stride, real* z) {
    i64 r = 0;
    for (; r + TILE_ROWS <= n_rows; r += TILE_ROWS) {
        prefetch(x + (r + TILE_ROWS) * d, TILE_ROWS * d);
        i64 c = 0;
        for (; c + TILE_VECTORS * W <= stride; c += TILE_VECTORS * W) tile(TILE_ROWS, TILE_VECTORS, x + r * d, d, w + c, stride, z + r * stride + c);
        for (; c < stride; c += W) tile(TILE_ROWS, 1, x + r * d, d, w + c, stride, z + r * stride + c);
    }
    for (; r < n_rows; r++) {
        i64 c = 0;
        for (; c + TILE_VECTORS * W <= stride; c += TILE_VECTORS * W) tile(1, TILE_VECTORS, x + r * d, d, w + c, stride, z + r * stride + c);
        for (; c < stride; c += W) tile(1, 1, x + r * d, d, w + c, stride, z + r * stride + c);
    }
}

/* Sine and cosine of phases below 1e4: reduction to a quadrant (Cody and Waite), and the minimax polynomials of
 * tools/sincos_coefficients.py. Adding MAGIC rounds to a whole number and leaves that in the lowest bits. */
#if REAL_BITS == 64
#define MAGIC 6755399441055744.0
#define TWO_OVER_PI 0.63661977236758138
#define HALF_PI 1.5707963267959713
#define HALF_PI_REST -1.0746346554971943e-12
static const real SINE[] = {1.5888585987655027e-10, -2.5050600239548635e-08, 2.755731254478094e-06, -0.0001984126982593414, 0.008333333333316482, -0.166666666666666};
static const real COSINE[] = {-1.1359669909795541e-11, 2.0875723685258083e-09, -2.7557314355248004e-07, 2.480158728949185e-05, -0.0013888888888874138, 0.0416666666666666};
enum { N_TERMS = 6 };
#else
#define MAGIC 12582912.0f
#define TWO_OVER_PI 0.636619772367581343f
#define HALF_PI 1.5707963705062866f
#define HALF_PI_REST -4.371138828673793e-08f
static const real SINE[] = {-0.000194956359337084f, 0.00833197869360447f, -0.16666650772094727f};
static const real COSINE[] = {2.4438451873720624e-05f, -0.001388736767694354f, 0.04166664555668831f};
enum { N_TERMS = 3 };
#endif

#define LANE_BYTES 32
#define LANED(f) f##_32
#include "sincos.h"
#if defined(__AVX512F__) /* registers of 64 bytes: lanes do not meet, so the bits are the same */
#define LANE_BYTES 64
#define LANED(f) f##_64
#include "sincos.h"
enum { WIDE = 1 };
#else
#define put_waves_64 put_waves_32
enum { WIDE = 0 };
#endif

/* Waves of a row, some vectors at a time: the last ones end where the row does, and repeat some of those before. */
INLINE void put_row(int wide, const real* phases, i64 L, real scale, real* phi) {
    const i64 step = wide ? 2 * W : W;
    for (i64 k = 0; k < L; k += step) {
        const i64 at = k < L - step ? k : L - step;
        if (wide) put_waves_64(phases + at, scale, phi + at, phi + L + at);
        else put_waves_32(phases + at, scale, phi + at, phi + L + at);
    }
}
/* phi = scale [cos, sin] of rows of phases; returns how many rows precede the first with a phase that is not finite.
 */
static i64 wave_rows(const Features* f, const real* phases, i64 n_rows, real* phi) {
    const i64 L = f->n_frequencies;
    const real scale = (real)f->scale;
    ivec beyond = {0};
    for (i64 k = 0; k < n_rows * f->stride; k += W) beyond |= ~(magnitude(load(phases + k)) < each(1e4));
    int inside = 1;
    for (int j = 0; j < W; j++) inside &= beyond[j] == 0;
    for (i64 row = 0; row < n_rows; row++, phases += f->stride, phi += f->size) {
        if (WIDE && L >= 2 * W) put_row(1, phases, L, scale, phi);
        else if (L >= W) put_row(0, phases, L, scale, phi);
        else {
            real cosines[W], sines[W];
            put_waves_32(phases, scale, cosines, sines);
            memcpy(phi, cosines, L * sizeof(real));
            memcpy(phi + L, sines, L * sizeof(real));
        }
        for (i64 k = 0; !inside && k < L; k++) { /* rare: the reduction of the polynomials ends at 1e4, the library's does not */
            const real z = phases[k];
            if (fabs((double)z) < 1e4) continue;
            if (!isfinite(z)) return row;
            phi[k] = scale * (sizeof(real) == 8 ? (real)cos(z) : (real)cosf(z));
            phi[L + k] = scale * (sizeof(real) == 8 ? (real)sin(z) : (real)sinf(z));
        }
    }
    return n_rows;
}

/* phi of some rows; phases and lifted are room for them. Returns how many precede the first that is not finite. */
static i64 map_block(const Features* f, const real* x, i64 n_rows, real* phases, real* lifted, real* phi) {
    if (f->scaled) lift_rows(f, x, n_rows, lifted, phi);
    project(f->scaled ? lifted : x, n_rows, f->n_lifted, f->frequencies, f->stride, phases);
    return wave_rows(f, phases, n_rows, phi);
}

/* phi of all rows, through room for block rows; returns how many precede the first that is not finite. */
EXPORT i64 NAME(map_rows)(const Features* f, const void* x, i64 n_rows, i64 block, void* phases, void* lifted, void* phi) {
    for (i64 row = 0; row < n_rows; row += block) {
        const i64 some = n_rows - row < block ? n_rows - row : block;
        const i64 good = map_block(f, (const real*)x + row * f->n_inputs, some, phases, lifted, (real*)phi + row * f->size);
        if (good < some) return row + good;
    }
    return n_rows;
}
