/* What each learner does to the row of one agent, in two halves: combine what neighbours sent, and learn from a sample.
 *
 * The specification of each is the step and hear of its class in laconic.learners. */
#ifndef LEARNERS_H
#define LEARNERS_H
#include "channel.h"
#include "experts.h"
#include "losses.h"
#include "rows.h"
#include "sums.h"

/* Learners by the names that their classes give to Kernel. */
enum { ODKLA, DOKL, COMBINE_THEN_ADAPT, ADAPT_THEN_COMBINE, LOCAL, EXPERTS };
#define LEARNER_NAMES "linearized proximal combine-then-adapt adapt-then-combine local experts"

INLINE int is_dual(const Run* run) { return run->algorithm == ODKLA || run->algorithm == DOKL; }
/* Whether a learner combines when all agents have sent; the others combine at the beginning of the next round. */
INLINE int combines_last(const Run* run) { return run->algorithm == ADAPT_THEN_COMBINE || run->algorithm == EXPERTS; }

/* ---- Combine ---- */

/* Some vectors of sum_j (theta-hat_i - theta-hat_j): they stay in registers from the first neighbour to the last. */
INLINE void disagree_part(int vectors, int half, const Run* run, i64 i, i64 k, i64 first, i64 last, real* pull) {
    const real* own = run->broadcast + i * run->size + k;
    vec o[6], s[6];
    for (int v = 0; v < vectors; v++) {
        o[v] = load_part(own + v * W, half);
        s[v] = each((real)-0.0); /* to which anything may be added that then is what it was */
    }
    for (i64 e = first; e < last; e++) {
        const real* other = run->broadcast + (i64)run->neighbours[e] * run->size + k;
        for (int v = 0; v < vectors; v++) s[v] += o[v] - load_part(other + v * W, half);
    }
    for (int v = 0; v < vectors; v++) store(pull + k + v * W, s[v]);
}
/* sum_j (theta-hat_i - theta-hat_j), in the order of the neighbour list. */
static void disagree(const Run* run, i64 i, real* pull) {
    const i64 first = run->starts[i], last = run->starts[i + 1], n = run->size;
    i64 k = 0;
    if (first == last) {
        for (; k < n; k += W) store(pull + k, (vec){0});
        return;
    }
    for (; k + 6 * W <= n; k += 6 * W) disagree_part(6, 0, run, i, k, first, last, pull);
    if (k + 5 * W <= n) { disagree_part(5, 0, run, i, k, first, last, pull); k += 5 * W; }
    else if (k + 4 * W <= n) { disagree_part(4, 0, run, i, k, first, last, pull); k += 4 * W; }
    else if (k + 3 * W <= n) { disagree_part(3, 0, run, i, k, first, last, pull); k += 3 * W; }
    else if (k + 2 * W <= n) { disagree_part(2, 0, run, i, k, first, last, pull); k += 2 * W; }
    else if (k + W <= n) { disagree_part(1, 0, run, i, k, first, last, pull); k += W; }
    if (k < n) disagree_part(1, 1, run, i, k, first, last, pull);
}
/* sum_j a_ij (theta-hat_j - theta-hat_i), in the order of the neighbour list. */
static void mix(const Run* run, i64 i, real* pull) {
    const i64 first = run->starts[i], last = run->starts[i + 1], n = run->size;
    const real* own = run->broadcast + i * n;
    if (first == last) clear_row(pull, n);
    for (i64 k = 0; first < last && k < n; k += 2 * W) {
        const int two = k + W < n;
        const vec o = load(own + k), p = two ? load(own + k + W) : o;
        vec s = {0}, t = {0};
        for (i64 e = first; e < last; e++) {
            const real* other = run->broadcast + (i64)run->neighbours[e] * n + k;
            const vec share = each(run->combination[e]);
            const vec a = share * (load(other) - o), b = two ? share * (load(other + W) - p) : a;
            s = e == first ? a : s + a;
            t = e == first ? b : t + b;
        }
        store(pull + k, s);
        if (two) store(pull + k + W, t);
    }
}
/* sum_j a_ij (theta-hat_j - theta_i) over the neighbours that sent in this round. */
static void mix_senders(const Run* run, i64 i, real* pull) {
    const i64 n = run->size;
    const real* own = run->weights + i * n;
    clear_row(pull, n);
    for (i64 e = run->starts[i]; e < run->starts[i + 1]; e++) {
        const i64 j = run->neighbours[e];
        if (!run->spoken[j]) continue;
        const vec share = each(run->combination[e]);
        for (i64 k = 0; k < n; k += W) store(pull + k, load(pull + k) + share * (load(run->broadcast + j * n + k) - load(own + k)));
    }
}

/* ---- Clipped pulls: no neighbour pulls harder than a multiple of the median. The equations are in laconic._clipping ---- */

/* dot and distance of rows of sums, which are double in both precisions, in the order of vectors of four doubles. */
#if REAL_BITS == 64
#define dot_double dot
#define distance_double distance
#else
typedef double four __attribute__((vector_size(VECTOR_BYTES)));
typedef double unaligned_four __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));
INLINE four fused_four(four a, four b, four c) { four r; for (int j = 0; j < 4; j++) r[j] = __builtin_fma(a[j], b[j], c[j]); return r; }
INLINE double meet_four(const four s[4]) { const four v = (s[0] + s[2]) + (s[1] + s[3]); return ((v[0] + v[1]) + v[2]) + v[3]; }
static double dot_double(const double* a, const double* b, i64 n) {
    four s[4] = {{0}};
    i64 k = 0;
    for (; k + 16 <= n; k += 16) for (int j = 0; j < 4; j++) s[j] = fused_four(*(const unaligned_four*)(a + k + 4 * j), *(const unaligned_four*)(b + k + 4 * j), s[j]);
    for (; k < n; k += 4) s[0] = fused_four(*(const unaligned_four*)(a + k), *(const unaligned_four*)(b + k), s[0]);
    return meet_four(s);
}
static double distance_double(const double* a, const double* b, i64 n) {
    four s[4] = {{0}};
    i64 k = 0;
    for (; k + 16 <= n; k += 16) for (int j = 0; j < 4; j++) {
        const four e = *(const unaligned_four*)(a + k + 4 * j) - *(const unaligned_four*)(b + k + 4 * j);
        s[j] = fused_four(e, e, s[j]);
    }
    for (; k < n; k += 4) {
        const four e = *(const unaligned_four*)(a + k) - *(const unaligned_four*)(b + k);
        s[0] = fused_four(e, e, s[0]);
    }
    return meet_four(s);
}
#endif

/* The clip factor times the lower median of n lengths; one length alone is compared with own. */
static double clip_limit(const double* lengths, i64 n, double own, double factor, double* ordered) {
    if (n == 1) return factor * MIN(lengths[0], own);
    for (i64 k = 0; k < n; k++) { /* few, so this is quick */
        i64 at = k;
        for (; at > 0 && ordered[at - 1] > lengths[k]; at--) ordered[at] = ordered[at - 1];
        ordered[at] = lengths[k];
    }
    return factor * ordered[(n - 1) / 2];
}
/* By what factors the pull and the share of each neighbour are shortened; a third of lengths is room. */
static void clip_factors(const Run* run, i64 i, double* taken, double* kept, double* room) {
    const i64 first = run->starts[i], n = run->starts[i + 1] - first, size = run->size, of_sums = run->sums_size;
    const real* own = run->broadcast + i * size;
    const double* own_sum = run->sums + i * of_sums;
    for (i64 k = 0; k < n; k++) taken[k] = kept[k] = 1.0;
    if (n == 0) return;
    const double said = sqrt((double)dot(own, own, size));
    if (n == 1 && said == 0.0) return; /* nothing to compare with */
    for (i64 k = 0; k < n; k++) {
        const i64 j = run->neighbours[first + k];
        taken[k] = sqrt((double)distance(own, run->broadcast + j * size, size));
        kept[k] = sqrt(distance_double(own_sum, run->sums + j * of_sums, of_sums));
    }
    const double near = clip_limit(taken, n, said, run->clip, room);
    const double far = clip_limit(kept, n, sqrt(dot_double(own_sum, own_sum, of_sums)), run->clip, room);
    for (i64 k = 0; k < n; k++) {
        const double passes = kept[k] > far ? far / kept[k] : 1.0;
        kept[k] = passes * passes;
        taken[k] = kept[k] * (taken[k] > near ? near / taken[k] : 1.0);
    }
}
/* gamma = rho sum_j kept_j (S_i - S_j) */
static void clip_duals(const Run* run, i64 i, const double* kept) {
    const i64 first = run->starts[i], n = run->starts[i + 1] - first;
    real* dual = run->duals + i * run->size;
    for (i64 k = 0; k < run->size; k++) {
        real total = 0;
        for (i64 e = 0; e < n; e++) total += (real)(kept[e] * (run->sums[i * run->sums_size + k] - run->sums[(i64)run->neighbours[first + e] * run->sums_size + k]));
        dual[k] = (real)run->rho * total;
    }
}
/* The pull of neighbours, each shortened; and the dual that their shares make up, if it answers. */
static void combine_clipped(const Run* run, i64 i, int answers, double* lengths, real* pull) {
    const i64 first = run->starts[i], n = run->starts[i + 1] - first, size = run->size;
    double *taken = lengths, *kept = lengths + n;
    const real* own = run->broadcast + i * size;
    clip_factors(run, i, taken, kept, lengths + 2 * n);
    clear_row(pull, size);
    for (i64 e = 0; e < n; e++) {
        const real* other = run->broadcast + (i64)run->neighbours[first + e] * size;
        const vec factor = each(is_dual(run) ? (real)taken[e] : (real)taken[e] * run->combination[first + e]);
        for (i64 k = 0; k < size; k += W) {
            const vec apart = is_dual(run) ? load(own + k) - load(other + k) : load(other + k) - load(own + k);
            store(pull + k, load(pull + k) + factor * apart);
        }
    }
    if (answers && is_dual(run)) clip_duals(run, i, kept);
    if (answers && run->algorithm == ADAPT_THEN_COMBINE) add_row(run->weights + i * size, (real)run->mixing, pull, size);
}
/* What row i takes from the replicas of its neighbours, into pull. If it answers, its dual or model moves by that; of
 * ODKLA the dual moves with the model, in learn_odkla. */
INLINE void combine(const Run* run, i64 i, int answers, double* lengths, real* pull) {
    if (run->clip > 0.0) combine_clipped(run, i, answers, lengths, pull);
    else if (run->algorithm == ODKLA) disagree(run, i, pull);
    else if (run->algorithm == DOKL) {
        disagree(run, i, pull);
        if (answers) add_row(run->duals + i * run->size, (real)run->rho, pull, run->size);
    } else if (run->algorithm != LOCAL) {
        if (run->senders_only) mix_senders(run, i, pull);
        else mix(run, i, pull);
        if (answers && run->algorithm == ADAPT_THEN_COMBINE) add_row(run->weights + i * run->size, (real)run->mixing, pull, run->size);
    }
}

/* ---- Learn ---- */

/* What is found of a model while it is at hand. */
typedef struct { real square, peak; } Innovation;

/* gamma <- gamma + rho g, if it answers; theta <- theta - gain [slope phi + shrink theta + rho g + gamma]. Tallies the
 * model, and finds its innovation's square and largest entry. */
INLINE Innovation learn_odkla(const Run* run, i64 i, int answers, int asks, const real* pull, const real* phi, real slope, real gain,
                              double scale, whole* units, real* top) {
    const i64 n = run->size;
    real *theta = run->weights + i * n, *gamma = run->duals + i * n;
    const real* hat = run->broadcast + i * n;
    const vec slopes = each(slope), shrink = each((real)run->shrink), rho = each((real)run->rho), gains = each(gain);
    const vec factor = each((real)scale), rounder = each(ROUNDER);
    vec s[4] = {{0}}, peak = {0}, most = load(top);
    OVER(n, vec t = load_part(theta + K, HALF); vec g = load_part(gamma + K, HALF);
         const vec force = rho * load_part(pull + K, HALF);
         if (answers) { g = g + force; store_part(gamma + K, g, HALF); }
         t = t - gains * ((slopes * load(phi + K) + shrink * t) + (force + g));
         store_part(theta + K, t, HALF);
         *(unaligned_ivec*)(units + K) += (ivec)fused(t, factor, rounder); most = larger(magnitude(t), most);
         if (asks) { const vec h = t - load_part(hat + K, HALF); peak = larger(magnitude(h), peak); s[S] = fused(h, h, s[S]); });
    store(top, most);
    return asks ? (Innovation){meet(s), largest_of(peak)} : (Innovation){0, 0};
}
/* theta <- (v - s phi)/c with v = eta theta + rho (2 d theta-hat - g) - gamma, s = l'(m) where m = (phi.v - s |phi|^2)/c. */
INLINE void learn_dokl(const Run* run, i64 i, const real* pull, const real* phi, real square, real label, real eta, real degree, real* v) {
    const i64 n = run->size;
    real* theta = run->weights + i * n;
    const real *gamma = run->duals + i * n, *hat = run->broadcast + i * n;
    const real rho = (real)run->rho, twice = (real)2 * degree, curvature = eta + twice * rho + (real)run->shrink;
    for (i64 k = 0; k < n; k += W) {
        const vec together = each(twice) * load(hat + k) - load(pull + k);
        store(v + k, each(eta) * load(theta + k) + each(rho) * together - load(gamma + k));
    }
    const vec slope = each((real)proximal_slope(run->loss, dot(phi, v, n) / square, curvature / square, label));
    const vec inverse = each((real)1 / curvature);
    for (i64 k = 0; k < n; k += W) store(theta + k, (load(v + k) - slope * load(phi + k)) * inverse);
}
/* psi = theta + mixing pull, if it mixes; theta <- psi - rate [slope phi + shrink psi]. */
INLINE void learn_descent(const Run* run, i64 i, int mixes, const real* pull, const real* phi, real slope, real rate) {
    real* theta = run->weights + i * run->size;
    const vec mixing = each((real)run->mixing), slopes = each(slope), shrink = each((real)run->shrink), rates = each(rate);
    for (i64 k = 0; k < run->size; k += W) {
        vec psi = load(theta + k);
        if (mixes) psi = psi + mixing * load(pull + k);
        store(theta + k, psi - rates * (slopes * load(phi + k) + shrink * psi));
    }
}

static real learn_mixture(const Run* run, i64 i, double limit, const real* phi, real label, Scratch* s) {
    const i64 n = run->size;
    real* theta = run->weights + i * n;
    const real margin = dot(theta, phi, n);
    if (!(fabs((double)margin) <= limit) || isnan(label)) return margin;
    const ExpertRoom room = expert_room(s->expert, n);
    for (i64 k = 0; k < n; k++) room.phi[k] = (double)phi[k];
    learn_experts(run->experts, run->loss, i, n, run->n_features, (double)label, &room);
    mix_experts(run->experts, i, n, &room);
    for (i64 k = 0; k < n; k++) theta[k] = (real)room.gain[k];
    return margin;
}
static void combine_mixture(const Run* run, i64 i, Scratch* s) {
    const i64 n = run->size;
    const ExpertRoom room = expert_room(s->expert, n);
    mix_senders(run, i, s->pull);
    for (i64 k = 0; k < n; k++) room.gain[k] = (double)((real)run->mixing * s->pull[k]);
    move_experts(run->experts, i, n, &room);
    mix_experts(run->experts, i, n, &room);
    for (i64 k = 0; k < n; k++) run->weights[i * n + k] = (real)room.gain[k];
}

/* What a round asks of the learner of row i, and what it finds. */
typedef struct { double limit; real rate, degree; int answers, asks; double scale; } Task;

/* Predict, then learn; returns the prediction. Where that is beyond the limit the run diverges, and nothing is learned.
 * Unless features are of unit length, a gradient is divided by their square, if that is above 1. */
INLINE real learn(const Run* run, i64 i, const Task* task, const real* phi, real label, Scratch* s, Innovation* innovation) {
    const i64 n = run->size;
    if (run->algorithm == EXPERTS) return learn_mixture(run, i, task->limit, phi, label, s);
    const real margin = dot(run->weights + i * n, phi, n);
    if (!(fabs((double)margin) <= task->limit)) return margin;
    const real square = run->unit ? (real)1 : dot(phi, phi, n), ease = (real)1 / MAX((real)1, square);
    if (run->algorithm == DOKL) {
        learn_dokl(run, i, s->pull, phi, square, label, task->rate, task->degree, s->spare);
        return margin;
    }
    const int mixes = run->algorithm == COMBINE_THEN_ADAPT;
    const real at = mixes ? margin + (real)run->mixing * dot(s->pull, phi, n) : margin;
    const real slope = ease * (real)slope_of(run->loss, at, label);
    if (run->algorithm == ODKLA) {
        const real gain = (real)1 / (task->rate + (real)2 * (real)run->rho * task->degree);
        const int answers = task->answers && run->clip == 0.0;
        /* Constants where this is compiled: what is asked for no row is then asked for no vector. */
        if (answers && task->asks) *innovation = learn_odkla(run, i, 1, 1, s->pull, phi, slope, gain, task->scale, s->units, s->tops);
        else if (answers) *innovation = learn_odkla(run, i, 1, 0, s->pull, phi, slope, gain, task->scale, s->units, s->tops);
        else *innovation = learn_odkla(run, i, 0, 1, s->pull, phi, slope, gain, task->scale, s->units, s->tops);
    } else learn_descent(run, i, mixes, s->pull, phi, slope, task->rate);
    return margin;
}

#endif
