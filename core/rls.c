/* Recursive least squares: see rls.h. */
#include "rls.h"
#include "losses.h"

/* --- One agent ------------------------------------------------------------------------------------------------- */

INLINE Lower matrix_of(const Rls* a) { return (Lower){a->spread, a->size, a->stride}; }

/* P <- (P - u u')/f and g = P phi; n = 1 + s g.phi; w <- w + s g (z - w.phi)/n, and u u' = s g g'/n is pending. */
static void learn_sample(const Rls* a, const double* phi, const double* square) {
    const double weight = square[0];
    const Lower P = matrix_of(a);
    const Pass now = {.u = a->pending, .x = phi, .raised = 1.0 / a->forgetting, .gain = a->gain};
    if (weight == 0.0) {
        if (a->forgetting < 1.0) { pass(P, now, LOWER | RAISE); clear_row(a->pending, a->size); }
        return;
    }
    if (a->forgetting < 1.0) pass(P, now, LOWER | RAISE | GAIN);
    else pass(P, now, LOWER | GAIN);
    const double scale = weight / (1.0 + weight * dot(a->gain, phi, a->size));
    for (i64 k = 0; k < a->n_outputs; k++) {
        double* model = a->models + k * a->size;
        add_row(model, scale * (square[2 + k] - dot(model, phi, a->size)), a->gain, a->size);
    }
    scale_row(sqrt(scale), a->gain, a->pending, a->size);
}
/* Subtract from P what is pending. */
static void finish_matrix(const Rls* a) {
    pass(matrix_of(a), (Pass){.u = a->pending}, LOWER);
    clear_row(a->pending, a->size);
}
/* Learn samples again, from a model that a wave brought. */
static void replay_samples(const Rls* a, const Samples* s) {
    for (i64 row = s->first; row < s->stop; row += s->step)
        learn_sample(a, s->phi + row * a->size, s->squares + row * (2 + a->n_outputs));
    finish_matrix(a);
}
/* Predictions of one agent's models, with the bits of its rounds. */
EXPORT void predict_sample(const double* models, i64 n_outputs, i64 size, const double* phi, double* predictions) {
    for (i64 k = 0; k < n_outputs; k++) predictions[k] = dot(models + k * size, phi, size);
}

/* --- Rounds between waves -------------------------------------------------------------------------------------- */

#define FLATTEST 0.05
#define FARTHEST 8.0

/* The square s (z - m)^2 that stands for the loss at a prediction: a row of squares; s = 0 where there is no label, and
 * where one of several outputs has none. */
static void square_loss(i64 loss, const double* predictions, const double* labels, i64 n_outputs, double* square) {
    int labelled = 1;
    for (i64 k = 0; k < n_outputs; k++) labelled &= !isnan(labels[k]);
    square[0] = square[1] = labelled;
    for (i64 k = 0; k < n_outputs; k++) square[2 + k] = labelled ? labels[k] : 0.0;
    if (!labelled || loss == SQUARED || n_outputs > 1) return;
    const double label = labels[0];
    if (loss == SQUARED_HINGE) { square[0] = label * predictions[0] < 1.0; return; }
    const double near = MIN(MAX(predictions[0], -FARTHEST), FARTHEST), p = 1.0 / (1.0 + REAL_EXP(near));
    square[0] = MAX(p * (1.0 - p), FLATTEST);
    square[2] = near + label / (1.0 + REAL_EXP(label * near)) / square[0];
}

/* The mixture of an agent's arms, as one model. */
static void mix_arms_of(const Arms* a, i64 i, const double* wave, i64 size) {
    const double *stack = a->stack + i * N_ARMS, *shrunk = a->pair + 2 * i * size, *personal = shrunk + size;
    const double *recent = a->recent + i * size, *quick = a->quick + i * size;
    for (i64 k = 0; k < size; k += W) {
        vec mixed = each(stack[0]) * load(wave + k) + each(stack[1]) * load(shrunk + k);
        mixed = mixed + each(stack[2]) * load(personal + k) + each(stack[3]) * load(recent + k);
        store(a->models + i * size + k, mixed + each(stack[4]) * load(quick + k));
    }
}
EXPORT void mix_arms(const Arms* a, const double* weights, i64 n_agents, i64 size) {
    for (i64 i = 0; i < n_agents; i++) mix_arms_of(a, i, weights + i * size, size);
}
/* E <- 0.99 E + e e', g = E w; then w follows the exponentiated gradient: see laconic.waves.arms.Stack. Quotients of
 * infinite errors count as the least. */
static void weigh_arms(const Arms* a, i64 i, const double* e) {
    double *stack = a->stack + i * N_ARMS, *E = a->errors + i * N_ARMS * N_ARMS;
    double slopes[N_ARMS], mean = 0.0, total = 0.0;
    for (int k = 0; k < N_ARMS; k++) {
        slopes[k] = 0.0;
        for (int m = 0; m < N_ARMS; m++) {
            E[k * N_ARMS + m] = 0.99 * E[k * N_ARMS + m] + e[k] * e[m];
            slopes[k] += E[k * N_ARMS + m] * stack[m];
        }
        mean += stack[k] * slopes[k];
    }
    if (!(mean > 0.0)) return;
    for (int k = 0; k < N_ARMS; k++) {
        stack[k] *= REAL_EXP(MIN(MAX((mean - slopes[k]) / mean, -5.0), 5.0));
        total += stack[k];
    }
    for (int k = 0; k < N_ARMS; k++) stack[k] = (1.0 - 0.003) * (stack[k] / total) + 0.003 * a->first[k];
}
INLINE Rls wave_of(const Rounds* r, i64 i, double* gain) {
    const i64 n = r->size, K = r->n_outputs;
    double *spread = r->spread + i * n * r->stride, *models = r->weights + i * K * n;
    return (Rls){n, r->stride, K, r->forgetting, spread, models, r->pending + i * n, gain};
}
/* The shrunk arm of agent i for k = 0, the personal one for k = 1. */
INLINE Rls arm_of(const Rounds* r, i64 i, i64 k, double* gain) {
    const i64 n = r->size, arm = 2 * i + k;
    double *spread = r->arms->pair_spread + arm * n * n, *model = r->arms->pair + arm * n;
    return (Rls){n, n, 1, r->forgetting, spread, model, r->arms->pending + (4 * i + k) * n, gain};
}
INLINE Forgetting recent_of(const Rounds* r, i64 i, double* gain) {
    const Arms* a = r->arms;
    const i64 n = r->size;
    const Lower spread = {a->recent_spread + i * n * n, n, n};
    double* pending = a->pending + (4 * i + 2) * n;
    return (Forgetting){spread, a->n_features, a->forgetting, a->ridge, gain, pending, pending + n};
}
/* Agent i's stack, and each of its arms, the wave's too, after one more sample. */
static void learn_arms(const Rounds* r, i64 i, const double* phi, const double* square, double* gain) {
    const i64 n = r->size;
    const Arms* a = r->arms;
    const Rls wave = wave_of(r, i, gain), shrunk = arm_of(r, i, 0, gain), personal = arm_of(r, i, 1, gain);
    const Forgetting f = recent_of(r, i, gain);
    double *recent = a->recent + i * n, *quick = a->quick + i * n, errors[N_ARMS];
    const double* models[N_ARMS] = {wave.models, shrunk.models, personal.models, recent, quick};
    for (int k = 0; k < N_ARMS; k++) errors[k] = dot(models[k], phi, n) - square[2];
    learn_sample(&wave, phi, square);
    learn_sample(&shrunk, phi, square);
    learn_sample(&personal, phi, square);
    if (square[0] > 0.0) {
        weigh_arms(a, i, errors);
        const Pass now = {.v = f.v, .w = f.w, .raised = a->raised[i], .x = phi, .gain = gain};
        pass(f.spread, now, RAISE | LOWER_TWICE | GAIN);
        learn_forgetting(&f, a->turns[i], recent, phi, errors[3], 1.0);
        a->raised[i] = 1.0 / a->forgetting;
        a->turns[i] = (a->turns[i] + 1) % a->n_features;
        const double length = dot(phi, phi, n);
        if (length > 0.0) add_row(quick, -(a->step * errors[4] / length), phi, n);
    }
    mix_arms_of(a, i, wave.models, n);
}
/* Nothing is pending of the matrices of agent i's own arms any more. */
EXPORT void settle_arms(const Rounds* r, i64 i) {
    const Rls shrunk = arm_of(r, i, 0, 0), personal = arm_of(r, i, 1, 0);
    const Forgetting f = recent_of(r, i, 0);
    finish_matrix(&shrunk);
    finish_matrix(&personal);
    pass(f.spread, (Pass){.v = f.v, .w = f.w, .raised = r->arms->raised[i]}, RAISE | LOWER_TWICE);
    clear_row(f.v, 2 * r->size);
    r->arms->raised[i] = 1.0;
}

/* Agent i takes over P and models of a wave, of n features without padding, and theta is these models. Then it learns
 * samples since. */
EXPORT void adopt_wave(const Rounds* r, i64 i, const double* spread, const double* models, i64 n,
                       const Samples* since) {
    const Rls a = wave_of(r, i, r->gain);
    double* theta = r->theta + i * a.n_outputs * a.size;
    clear_row(a.pending, a.size);
    for (i64 j = 0; j < n; j++)
        memcpy(a.spread + j * a.stride, spread + j * n, MIN(n, j / TILE * TILE + TILE) * sizeof(double));
    for (i64 k = 0; k < a.n_outputs; k++) {
        memcpy(a.models + k * a.size, models + k * n, n * sizeof(double));
        memcpy(theta + k * a.size, models + k * n, n * sizeof(double));
    }
    replay_samples(&a, since);
}
/* Its shrunk or personal arm, k = 0 or 1, learns samples since. */
EXPORT void replay_arm(const Rounds* r, i64 i, i64 k, const Samples* since) {
    const Rls arm = arm_of(r, i, k, r->gain);
    replay_samples(&arm, since);
}
/* Nothing of agent i's P is pending any more. */
EXPORT void finish_agent(const Rounds* r, i64 i) {
    const Rls wave = wave_of(r, i, r->gain);
    finish_matrix(&wave);
}

/* Models of agent i before round t of the block. */
INLINE double* kept(double* history, const Rounds* r, i64 t, i64 i) {
    return history + ((t - r->opened) * r->n_agents + i) * r->n_outputs * r->size;
}
INLINE double* predicting(const Rounds* r) { return r->arms ? r->arms->models : r->weights; }

/* Ask for matrices that the next group of agents needs, in each round of a block for other rows of them. */
INLINE void prefetch_matrices(const Rounds* r, i64 t, i64 i) {
    const i64 n = r->size, rounds = r->until - r->opened, part = t - r->opened;
    if (i >= r->n_agents) return;
    for (i64 j = n * part / rounds; j < n * (part + 1) / rounds; j++) {
        const i64 length = j / TILE * TILE + TILE;
        prefetch(r->spread + (i * n + j) * r->stride, length);
        if (!r->arms) continue;
        prefetch(r->arms->pair_spread + (2 * i * n + j) * n, length);
        prefetch(r->arms->pair_spread + ((2 * i + 1) * n + j) * n, length);
        prefetch(r->arms->recent_spread + (i * n + j) * n, length);
    }
}
/* Agents begin to end learn the rounds of a block, each from where it is. Returns the first row that diverges, or the
 * number of rows. */
static i64 learn_group(const Rounds* r, i64 begin, i64 end, double* gain) {
    const i64 n = r->size, K = r->n_outputs, N = r->n_agents;
    for (i64 t = r->opened; t < r->until; t++) {
        const double limit = DIVERGENCE * r->limits[t - r->opened];
        for (i64 i = begin; i < end; i++) {
            if (r->learned[i] > t) continue;
            const i64 row = t * N + i;
            const double *phi = r->phi + row * n, *models = predicting(r) + i * K * n;
            double *predictions = r->predictions + row * K, *square = r->squares + row * (2 + K);
            for (i64 k = 0; k < K; k++) {
                predictions[k] = dot(models + k * n, phi, n);
                if (!(fabs(predictions[k]) <= limit)) return row;
            }
            prefetch_matrices(r, t, i + end - begin);
            square_loss(r->loss, predictions, r->targets + row * K, K, square);
            if (r->arms) {
                const Arms* a = r->arms;
                const double* shared = (a->adopted[i] ? a->shared : r->weights) + i * n;
                if (r->scores) copy_row(shared, kept(r->scored, r, t, i), n);
                memcpy(a->stacks + row * N_ARMS, a->stack + i * N_ARMS, N_ARMS * sizeof(double));
                learn_arms(r, i, phi, square, gain);
            } else {
                const Rls wave = wave_of(r, i, gain);
                learn_sample(&wave, phi, square);
            }
            copy_row(models, kept(r->history, r, t + 1, i), K * n);
            r->learned[i] = t + 1;
        }
    }
    return r->until * N;
}
/* Distance of models from their mean, their energy, and their distance from theta; whether the energy is finite. */
EXPORT i64 measure_models(const Rounds* r, const double* models, i64 t, double* mean) {
    const i64 n = r->size, K = r->n_outputs;
    const double share = 1.0 / (double)r->n_agents;
    double apart = 0.0, energy = 0.0, off = 0.0;
    for (i64 k = 0; k < K; k++) {
        const double *first = models + k * n, *end = models + r->n_agents * K * n;
        clear_row(mean, n);
        for (const double* model = first; model < end; model += K * n) add_row(mean, share, model, n);
        for (const double* model = first; model < end; model += K * n) {
            apart += distance(model, mean, n);
            energy += dot(model, model, n);
            off += distance(model, r->theta + (model - models), n);
        }
    }
    r->found[3 * t] = sqrt(apart);
    r->found[3 * t + 1] = energy;
    r->found[3 * t + 2] = sqrt(off);
    return isfinite(energy);
}
/* Every agent's model on every agent's sample of round t: mean square and mean loss of each. */
static void score_round(const Rounds* r, const double* models, i64 t) {
    const i64 n = r->size, K = r->n_outputs, N = r->n_agents;
    for (i64 i = 0; i < N; i++) {
        double square = 0.0, total = 0.0, scored = 0.0;
        for (i64 j = 0; j < N; j++) for (i64 k = 0; k < K; k++) {
            const double label = r->labels[(t * N + j) * K + k];
            if (isnan(label)) continue;
            const double margin = dot(models + (i * K + k) * n, r->phi + (t * N + j) * n, n);
            square += (margin - label) * (margin - label);
            total += value_of(r->loss, margin, label);
            scored += 1.0;
        }
        r->scores[t * N + i] = scored > 0.0 ? square / scored : NAN;
        r->scores[(r->n_rounds + t) * N + i] = scored > 0.0 ? total / scored : NAN;
    }
}

/* A block of rounds is opened, learned by agents, measured, and closed. Agents begin to end, and rounds from to to, may be
 * parts of all: threads can share them, each with a row of its own as room.
 *
 * An agent that diverges stops, and the others learn the whole block. Then models that predict are put back to that
 * round, matrices are not. A caller that gives the agent another model resumes there, the others where they are. */
EXPORT void open_block(Rounds* r, i64 start, i64 stop) {
    double top = r->limits[0] = r->largest;
    r->opened = start;
    r->until = stop;
    for (i64 i = 0; i < r->n_agents; i++) r->learned[i] = start;
    for (i64 t = start; t < stop; t++) {
        const double* labels = r->labels + t * r->n_agents * r->n_outputs;
        for (i64 k = 0; k < r->n_agents * r->n_outputs; k++) top = fabs(labels[k]) > top ? fabs(labels[k]) : top;
        r->limits[t + 1 - start] = top;
    }
}
/* Agents that are at round t keep their models, others get back those that they had learned. */
EXPORT void enter_block(const Rounds* r, i64 t) {
    const i64 own = r->n_outputs * r->size;
    for (i64 i = 0; i < r->n_agents; i++) {
        double* models = predicting(r) + i * own;
        if (r->learned[i] == t) copy_row(models, kept(r->history, r, t, i), own);
        else copy_row(kept(r->history, r, r->learned[i], i), models, own);
    }
}
EXPORT i64 learn_block(const Rounds* r, i64 begin, i64 end, double* gain) {
    const i64 group = r->arms ? MAX(r->group / 4, 1) : r->group; /* arms have three matrices more */
    i64 bad = r->until * r->n_agents;
    for (; begin < end; begin += group) {
        const i64 row = learn_group(r, begin, MIN(begin + group, end), gain);
        bad = MIN(bad, row);
    }
    return bad;
}
/* Returns the first round after which models are not finite, or to. */
EXPORT i64 measure_block(const Rounds* r, i64 from, i64 to, double* mean) {
    for (; from < to; from++) {
        if (r->scores) score_round(r, kept(r->scored, r, from, 0), from);
        if (!measure_models(r, kept(r->history, r, from + 1, 0), from, mean)) break;
    }
    return from;
}
/* Round t again, after agents that stopped behind it were given other models. */
EXPORT i64 measure_again(const Rounds* r, i64 t, double* mean) {
    const i64 own = r->n_outputs * r->size;
    for (i64 i = 0; i < r->n_agents; i++)
        if (r->learned[i] == t + 1) copy_row(predicting(r) + i * own, kept(r->history, r, t + 1, i), own);
    return measure_models(r, kept(r->history, r, t + 1, 0), t, mean);
}
/* From the first row that diverges and the rounds that were measured: the row at which the block ends. */
EXPORT i64 close_block(Rounds* r, i64 bad, i64 measured) {
    const i64 N = r->n_agents, reached = bad / N;
    r->spoiled = measured < reached;
    const i64 t = r->spoiled ? measured + 1 : reached;
    r->largest = r->limits[t - r->opened];
    const int diverges = r->spoiled || bad < r->until * N;
    if (diverges) copy_row(kept(r->history, r, t, 0), predicting(r), N * r->n_outputs * r->size);
    return r->spoiled ? measured * N : bad;
}
/* Rounds start to stop; resumes a block that start lies in. Returns the row at which they diverge, or stop N. */
EXPORT i64 advance_rounds(Rounds* r, i64 start, i64 stop, int resumes, double* gain) {
    i64 row = start * r->n_agents;
    for (int diverges = 0; start < stop && !diverges; start = r->until, resumes = 0) {
        if (!resumes) open_block(r, start, MIN(start + r->block, stop));
        enter_block(r, start);
        const i64 bad = learn_block(r, 0, r->n_agents, gain);
        row = close_block(r, bad, measure_block(r, start, bad / r->n_agents, gain));
        diverges = row < r->until * r->n_agents;
    }
    return row;
}
