/* The rounds of many agents, cut into stages, so that rows can be shared out: each stage is done for a range of rows,
 * and between two of them all rows must be through. A thread that is alone calls all stages of many rounds at once.
 *
 *     CHECK    are the inputs numbers?                                               a range of rows
 *     LEARN    combine what was sent last, predict, learn, decide what to send       a range of rows
 *     APPLY    agents that have sent move their replicas; after MEAN, but see below  a range of rows, replicas too
 *     COMBINE  learners that combine last do so; duals, before a state is taken      a range of rows
 *     MEAN     the mean of all models, from the sums that LEARN or COMBINE has left  once
 *     MEASURE  how far each model is from it                                         a range of rows
 *     TOPS, UNITS, FINISH  sums over agents, and what is recorded of them            once
 *
 * Replicas are read in LEARN and COMBINE and written in APPLY. Most learners combine at the beginning of the next round,
 * where their rows are at hand anyway: a round goes over models, duals and replicas once, and over the replicas of those
 * that have sent a second time. There the message, a function of model and replica, is made again instead of kept, and
 * the distance to the mean is measured. Learners that combine last apply first, and are measured when they have.
 *
 * Sums over agents have the same bits in any order, everything else is one row's own: results do not depend on how rows
 * are numbered or shared out. */
#include "learners.h"

enum { CHECK = 1, LEARN = 2, APPLY = 4, COMBINE = 8, MEAN = 16, MEASURE = 32, TOPS = 64, UNITS = 128, FINISH = 256, ALL = 511 };
enum { RESUM = 512 }; /* instead of MEAN's sums, those of the models as they are: when LEARN's had the wrong scale */

/* Beyond so many bytes models do not stay in the cache from one round to the next, and rows are asked for ahead. */
enum { CACHED = 1 << 21, OWN_AHEAD = 12, NEAR = 256, GROUP = 8, GROUPS_AHEAD = 8 };
#define APPLY_AHEAD (2048 / (i64)sizeof(real))

/* Rows are asked for in their order: an agent's own some rows ahead, replicas so far ahead that they are there when the
 * first neighbour reads them. Neighbours that are far away in memory are listed, by groups of rows. */
INLINE void prefetch_rows(const Run* run, i64 i, int hears) {
    const i64 n = run->size, group = i / GROUP + GROUPS_AHEAD;
    prefetch(run->weights + (i + OWN_AHEAD) * n, n);
    if (run->duals) prefetch(run->duals + (i + OWN_AHEAD) * n, n);
    prefetch(run->broadcast + (i + NEAR) * n, n);
    if (hears && i % GROUP == 0 && group + 1 < run->n_groups)
        for (i64 e = run->distant_starts[group]; e < run->distant_starts[group + 1]; e++) prefetch(run->broadcast + (i64)run->distant[e] * n, n);
}

/* ---- Learn and send ---- */

/* What an agent sends: SILENT, SENT or SAME, its bits, and how many entries saturate. */
typedef struct { int sent; i64 bits, outside; } Message;

/* Decide what row i sends. Its replica stays as it is; run->errors gets the squared error of that, or of a message with
 * an adaptive range its scale, until apply_rows knows the error. */
static Message decide(Run* run, i64 i, double threshold, Innovation found, Scratch* s) {
    const i64 n = run->size;
    const real *theta = run->weights + i * n, *hat = run->broadcast + i * n;
    const real low = (real)run->low, high = (real)run->high;
    double* memory = run->memory + i * N_REMEMBERED;
    const double norm = (double)REAL_SQRT(found.square);
    run->errors[i] = found.square;
    if (!admits(run, norm, threshold, memory)) return (Message){SILENT, 0, 0};
    if (run->rounding == ENTROPY) {
        if (!(norm < INFINITY)) return (Message){SAME, 0, 0}; /* the run has diverged, which its energy tells */
        i64 outside;
        subtract_rows(theta, hat, s->innovation, n);
        const i64 step = choose_codes(run, s->innovation, s->codes, &outside), bits = 8 * write_codes(step, s->codes, run->n_features, s->written);
        return pays(run, norm, bits, memory) ? (Message){SENT, bits, outside} : (Message){SILENT, 0, 0};
    }
    if (!pays(run, norm, run->message_bits, memory)) return (Message){SILENT, 0, 0};
    if (run->rounding == DENSE) {
        run->errors[i] = 0;
        return (Message){SENT, run->message_bits, 0};
    }
    if (low != high) {
        const int beyond = found.peak > MIN(high, -low);
        return (Message){SENT, run->message_bits, beyond ? count_outside(theta, hat, run->n_features, low, high) : 0};
    }
    if (!(found.peak > 0)) return (Message){SAME, run->message_bits, 0}; /* h = 0, and so is Q(h) */
    const real scale = (real)upward_float((double)found.peak);
    run->errors[i] = scale;
    return (Message){SENT, run->message_bits, found.peak > scale ? count_outside(theta, hat, run->n_features, -scale, scale) : 0};
}
static Innovation innovation_of(const Run* run, i64 i) {
    const real *theta = run->weights + i * run->size, *hat = run->broadcast + i * run->size;
    vec s[4] = {{0}}, peak = {0};
    OVER(run->size, const vec h = load_part(theta + K, HALF) - load_part(hat + K, HALF); peak = larger(magnitude(h), peak); s[S] = fused(h, h, s[S]););
    return (Innovation){meet(s), largest_of(peak)};
}

/* LEARN for rows begin to end of round t, whose features begin at phi; the row that diverged, or -1. */
static i64 learn_rows(Run* run, const Stream* stream, Scratch* s, i64 t, i64 begin, i64 end, const real* phi, i64 phi_size) {
    const int talks = run->algorithm != LOCAL, odkla = run->algorithm == ODKLA, last = combines_last(run);
    const int direct = run->rounding == DENSE && !stream->thresholds && run->budget == BY_ROUND;
    const int far = run->n_rows * run->size * (i64)sizeof(real) > CACHED;
    const double threshold = stream->thresholds ? stream->thresholds[t] : 0.0;
    Task task = {DIVERGENCE * run->largest, stream->rates[t], 0, run->pending > 0.0, !direct, run->scale};
    for (i64 i = begin; i < end; i++, phi += phi_size) {
        const i64 at = t * run->n_rows + i, degree = run->starts[i + 1] - run->starts[i];
        if (far) prefetch_rows(run, i, talks && !last);
        if (talks && !last) combine(run, i, task.answers, s->lengths, s->pull);
        task.degree = (real)degree;
        Innovation innovation = {0, 0};
        const real margin = learn(run, i, &task, phi, stream->labels[at], s, &innovation);
        stream->predictions[at] = margin;
        if (!(fabs((double)margin) <= task.limit)) return at;
        if (direct && talks) {
            run->spoken[i] = SENT;
            stream->sent[at] = degree > 0;
        } else if (talks) {
            if (!odkla) innovation = innovation_of(run, i);
            const Message message = decide(run, i, threshold, innovation, s);
            run->spoken[i] = (u8)message.sent;
            stream->sent[at] = message.sent != SILENT && degree > 0;
            if (message.outside && degree > 0) stream->outside[at] = (i32)message.outside; /* else it stays zero */
            if (stream->message_sizes) stream->message_sizes[at] = degree > 0 ? message.bits : 0;
        }
        if (!odkla && !last) tally(run->weights + i * run->size, run->size, run->scale, s->units, s->tops);
    }
    return -1;
}

/* ---- Apply, combine, measure ---- */

/* APPLY for agents that learn here; measures how far they are from the mean, if asked to. */
static void apply_rows(Run* run, i64 begin, i64 end, int measures, Scratch* s) {
    const i64 n = run->size;
    const int quantized = run->rounding == RISE || run->rounding == TREAD, adaptive = run->low == run->high;
    const int far = run->n_rows * n * (i64)sizeof(real) > CACHED;
    const Lattice fixed = quantized && !adaptive ? lattice_for(run, 0) : (Lattice){0, 0, 0, 0};
    for (i64 i = begin; i < end; i++) {
        real *theta = run->weights + i * n, *hat = run->broadcast + i * n, apart = 0;
        if (far) { prefetch(theta + APPLY_AHEAD, n); prefetch(hat + APPLY_AHEAD, n); }
        int measured = 0;
        if (run->spoken[i] == SENT) {
            if (quantized) {
                run->errors[i] = measures ? quantize_row(run, theta, hat, adaptive ? lattice_for(run, run->errors[i]) : fixed, run->mean, &apart)
                                          : quantize_row(run, theta, hat, adaptive ? lattice_for(run, run->errors[i]) : fixed, 0, 0);
                measured = measures;
            } else if (run->rounding == ENTROPY) {
                i64 outside;
                subtract_rows(theta, hat, s->innovation, n);
                const i64 step = choose_codes(run, s->innovation, s->codes, &outside);
                add_codes(step, s->codes, run->n_features, hat);
                run->errors[i] = distance(theta, hat, n);
            } else OVER(n, store_part(hat + K, load_part(theta + K, HALF), HALF););
        }
        if (measures) run->distances[i] = measured ? apart : distance(theta, run->mean, n);
        if (run->clip > 0.0) for (i64 k = 0; k < n; k++) run->sums[i * run->sums_size + k] += (double)hat[k];
    }
}
/* COMBINE for learners that combine last: they tally their models then. */
static void combine_rows(Run* run, i64 begin, i64 end, Scratch* s) {
    const int far = run->n_rows * run->size * (i64)sizeof(real) > CACHED;
    for (i64 i = begin; i < end; i++) {
        if (far) prefetch_rows(run, i, 1);
        if (run->algorithm == EXPERTS) combine_mixture(run, i, s);
        else combine(run, i, 1, s->lengths, s->pull);
        tally(run->weights + i * run->size, run->size, run->scale, s->units, s->tops);
    }
}
/* COMBINE before a state is taken: the dual step that is otherwise the beginning of the next round. */
static void answer_rows(Run* run, i64 begin, i64 end, Scratch* s) {
    for (i64 i = begin; i < end; i++) {
        combine(run, i, 1, s->lengths, s->pull);
        if (run->algorithm == ODKLA && run->clip == 0.0 && run->starts[i] < run->starts[i + 1])
            OVER(run->size, real* gamma = run->duals + i * run->size + K;
                 store_part(gamma, load_part(gamma, HALF) + each((real)run->rho) * load_part(s->pull + K, HALF), HALF););
    }
}

/* ---- Sums over agents ---- */

INLINE i64 whole_size(const Run* run) { return (run->size + W - 1) / W * W; }

static void begin_tally(const Run* run, Scratch* s) {
    memset(s->tops, 0, VECTOR_BYTES);
    memset(s->totals, 0, whole_size(run) * sizeof(i64));
}
/* The mean of all models from the sums of their multiples; false if these had the wrong scale. */
static int mean_of(Run* run) {
    const i64 size = whole_size(run);
    double peak = 0.0;
    for (i64 part = 0; part < run->n_parts; part++)
        for (i64 k = 0; k < W; k++) peak = MAX(peak, (double)run->tops[part * size + k]);
    run->peak = peak;
    if (!(peak < INFINITY)) return 1; /* the run has diverged, which its energy tells */
    if (!fits(peak, run->scale, run->n_agents)) {
        run->scale = model_scale(peak, run->n_agents);
        return 0;
    }
    for (i64 part = 1; part < run->n_parts; part++)
        for (i64 k = 0; k < size; k++) run->totals[k] += run->totals[part * size + k];
    const double divisor = run->scale * (double)run->n_agents;
    for (i64 k = 0; k < size; k++) run->mean[k] = (real)((double)run->totals[k] / divisor);
    return 1;
}
/* The multiples of the models from begin to end, from the beginning. */
static void sum_again(const Run* run, i64 begin, i64 end, Scratch* s) {
    memset(s->totals, 0, whole_size(run) * sizeof(i64));
    for (i64 first = begin; first < end; first += FOLDED) {
        const i64 stop = MIN(first + FOLDED, end);
        for (i64 i = first; i < stop; i++) tally(run->weights + i * run->size, run->size, run->scale, s->units, s->tops);
        fold(s->units, stop - first, s->totals, whole_size(run));
    }
}
/* MEAN: false if it is to be made again, by all threads. */
static int average(Run* run, i64 stages, i64 begin, i64 end, Scratch* s) {
    const int misfits = (stages & MEAN) && !mean_of(run);
    if (misfits && stages != ALL) return 0;
    if (misfits || stages & RESUM) sum_again(run, begin, MIN(end, run->n_rows), s);
    if (misfits) mean_of(run);
    return 1;
}
/* TOPS, UNITS and FINISH: what is recorded of all models together. */
static int close_round(Run* run, const Stream* stream, i64 stages, i64 t) {
    const i64 n = run->n_rows;
    if (stages & TOPS) {
        run->error_top = top_of(run->errors, n);
        run->distance_top = top_of(run->distances, n);
    }
    const double error_scale = norm_scale(run->error_top, run->n_agents), distance_scale = norm_scale(run->distance_top, run->n_agents);
    if (stages & UNITS) {
        run->error_units = total_of(run->errors, n, error_scale);
        run->distance_units = total_of(run->distances, n, distance_scale);
    }
    if (!(stages & FINISH)) return FINISHED;
    const double apart = (double)run->distance_units / distance_scale;
    double energy = apart + (double)run->n_agents * (double)dot(run->mean, run->mean, whole_size(run));
    if (!(run->peak < INFINITY && run->distance_top < INFINITY && energy < INFINITY)) energy = INFINITY;
    stream->replica_error[t] = sqrt((double)run->error_units / error_scale);
    stream->consensus[t] = sqrt(apart);
    stream->energy[t] = energy;
    for (i64 i = 0; i < n; i++) { /* labels that are missing are larger than nothing */
        const double size = fabs((double)stream->labels[t * n + i]);
        if (size > run->largest) run->largest = size;
    }
    run->scale = model_scale(run->peak, run->n_agents);
    run->pending = is_dual(run) ? 1.0 : 0.0;
    return energy < INFINITY ? FINISHED : DIVERGED;
}
/* Every agent's model on every agent's sample of round t: mean squared error and mean loss of each model. */
static void score_collectively(const Run* run, const Stream* stream, i64 t, const real* phi, i64 phi_size) {
    const i64 n = run->n_rows;
    for (i64 i = 0; i < n; i++) {
        double square = 0.0, total = 0.0;
        i64 scored = 0;
        for (i64 j = 0; j < n; j++) {
            const real label = stream->labels[t * n + j];
            if (isnan(label)) continue;
            const real margin = dot(run->weights + i * run->size, phi + j * phi_size, run->size), e = margin - label;
            square += (double)(real)(e * e);
            total += value_of(run->loss, margin, label);
            scored++;
        }
        stream->squares[t * n + i] = scored ? square / (double)scored : NAN;
        stream->losses[t * n + i] = scored ? total / (double)scored : NAN;
    }
}
/* The first row of samples from begin to end with an entry that is not a finite number; end if there is none. */
static i64 first_bad_row(const real* samples, i64 length, i64 begin, i64 end) {
    const bits_t exponent = bits_of((real)INFINITY);
    whole finite = 1;
    for (i64 k = begin * length; k < end * length; k++) finite &= (bits_of(samples[k]) & exponent) != exponent;
    if (finite) return end;
    for (i64 row = begin; row < end; row++) for (i64 k = 0; k < length; k++) if (!(fabs((double)samples[row * length + k]) < INFINITY)) return row;
    return end;
}

/* Some stages of rounds first to last of a chunk, for the rows from begin to end. Returns 4 row + status: row t N + i is
 * where it stopped, or behind the last one. */
EXPORT i64 NAME(advance)(Run* run, Scratch* s, const Stream* stream, i64 stages, i64 begin, i64 end, i64 first_round, i64 last_round) {
    const i64 n = run->n_rows, n_samples = stream->n_rounds * n, phi_size = s->features->size, here = MIN(end, n);
    const int last = combines_last(run), talks = run->algorithm != LOCAL;
    const int whole_rounds = stream->mapped || s->n_rows % n == 0;
    i64 first = 0, done = stream->mapped ? n_samples : 0, bad_row = n_samples;
    const real* phi = stream->mapped ? stream->samples : s->phi;

    for (i64 t = first_round; t < last_round; t++) {
        if (stages & CHECK && !whole_rounds) { /* no round may begin that cannot end */
            const i64 bad = first_bad_row(stream->samples, s->features->n_inputs, t * n + begin, t * n + here);
            if (bad < t * n + here) return 4 * bad + BAD_INPUT;
        }
        if (stages & LEARN) {
            if (!last) begin_tally(run, s);
            for (i64 block = begin; block < here;) {
                const i64 row = t * n + block;
                if (row >= done || row < first) { /* features come in blocks; of small networks, of many rounds */
                    first = row;
                    done = MIN(row + s->n_rows, whole_rounds ? n_samples : row - block + here);
                    const real* x = stream->samples + row * s->features->n_inputs;
                    const i64 good = map_block(s->features, x, done - row, s->phases, s->lifted, s->phi);
                    bad_row = good < done - row ? row + good : n_samples;
                }
                if ((t + 1) * n > bad_row) return 4 * bad_row + BAD_INPUT;
                const i64 stop = MIN(MIN(here, block + done - row), block + FOLDED);
                const real* here_phi = phi + (row - first) * phi_size;
                if (stream->squares && block == 0) score_collectively(run, stream, t, here_phi, phi_size);
                const i64 diverged = learn_rows(run, stream, s, t, block, stop, here_phi, phi_size);
                if (diverged >= 0) return 4 * diverged + DIVERGED;
                if (!last) fold(s->units, stop - block, s->totals, whole_size(run));
                block = stop;
            }
        }
        if (last && stages & APPLY && talks) {
            apply_rows(run, begin, here, 0, s);
            if (run->clip > 0.0) for (i64 i = MAX(begin, n); i < end; i++) for (i64 k = 0; k < run->size; k++) run->sums[i * run->sums_size + k] += (double)run->broadcast[i * run->size + k];
        }
        if (last && stages & COMBINE) {
            begin_tally(run, s);
            for (i64 block = begin; block < here; block += FOLDED) {
                const i64 stop = MIN(block + FOLDED, here);
                combine_rows(run, block, stop, s);
                fold(s->units, stop - block, s->totals, whole_size(run));
            }
        } else if (stages & COMBINE && stages != ALL && run->pending > 0.0) answer_rows(run, begin, here, s);
        if (!average(run, stages, begin, end, s)) return 4 * t * n + AGAIN;
        const int measures = stages & MEASURE && run->n_agents > 1;
        if (!last && stages & APPLY && talks) {
            apply_rows(run, begin, here, measures, s);
            if (run->clip > 0.0) for (i64 i = MAX(begin, n); i < end; i++) for (i64 k = 0; k < run->size; k++) run->sums[i * run->sums_size + k] += (double)run->broadcast[i * run->size + k];
        } else if (measures)
            for (i64 i = begin; i < here; i++) run->distances[i] = distance(run->weights + i * run->size, run->mean, run->size);
        const int status = close_round(run, stream, stages, t);
        if (status != FINISHED) return 4 * t * n + status;
    }
    return 4 * n_samples + FINISHED;
}
