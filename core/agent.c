/* One agent's round, cut into its steps, since neighbours have to be waited for in between. Its Run has one row, and
 * behind its own replica those of its neighbours: the functions over rows are the simulator's, and so are the bits. */
#include "agent.h"
#include "learners.h"

/* phi of the sample into scratch->phi; false if it is not finite. */
static int map_sample(const Agent* a) {
    Scratch* s = a->scratch;
    return map_block(s->features, a->sample, 1, s->phases, s->lifted, s->phi) == 1;
}

/* The prediction for the sample, NaN if that is not finite. Changes nothing. */
EXPORT void NAME(agent_predict)(Agent* a) {
    a->prediction = map_sample(a) ? (double)dot(a->run->weights, a->scratch->phi, a->run->size) : NAN;
}

/* Predict, then learn. A label that is NaN is missing: the agent then still shrinks its model and follows the others. */
EXPORT i64 NAME(agent_learn)(Agent* a, double label, double rate) {
    Run* run = a->run;
    const Task task = {DIVERGENCE * run->largest, (real)rate, (real)(run->starts[1] - run->starts[0]), 0, 1, 0};
    Innovation found;
    a->prediction = NAN;
    if (!map_sample(a)) return BAD_INPUT;
    const real margin = learn(run, 0, &task, a->scratch->phi, (real)label, a->scratch, &found);
    a->prediction = (double)margin;
    if (!(fabs((double)margin) <= task.limit) || !isfinite(dot(run->weights, run->weights, run->size))) return DIVERGED;
    if (fabs((double)(real)label) > run->largest) run->largest = fabs((double)(real)label);
    return FINISHED;
}

/* Censor and quantize; returns whether a message is to be sent, which is then written, and the own replica moved. */
EXPORT i64 NAME(agent_send)(Agent* a, double threshold) {
    Run* run = a->run;
    Scratch* s = a->scratch;
    real *theta = run->weights, *hat = run->broadcast;
    const Message message = decide(run, 0, threshold, innovation_of(run, 0), s);
    a->outside = message.outside;
    a->scale = 0;
    if (message.sent == SILENT) return 0;
    if (message.sent == SAME) memset(a->message, 0, a->length);
    else if (run->rounding == DENSE) copy_row(theta, hat, run->size);
    else if (run->rounding == ENTROPY) { /* decide has left its codes and bytes */
        a->length = message.bits / 8;
        memcpy(a->message, s->written, a->length);
        add_codes(s->written[0], s->codes, run->n_features, hat);
    } else {
        const int adaptive = run->low == run->high;
        const Lattice lattice = lattice_for(run, run->errors[0]);
        a->scale = adaptive ? (double)run->errors[0] : run->high;
        pack_codes(run, theta, hat, lattice, a->message);
        quantize_row(run, theta, hat, lattice, 0, 0);
    }
    return 1;
}

/* Take scratch->spare as the new replica of a neighbour; false, and nothing changes, if it is beyond all bounds. */
static int replace_replica(const Agent* a, i64 index) {
    const Run* run = a->run;
    if (!((double)dot(a->scratch->spare, a->scratch->spare, run->size) <= NORM_LIMIT * NORM_LIMIT)) return 0;
    copy_row(a->scratch->spare, run->broadcast + index * run->size, run->size);
    return 1;
}

enum { REFUSED, TAKEN, NO_CODE };

/* Move the replica of a neighbour by its message. REFUSED, and nothing changes, if the replica would be beyond all bounds
 * or codes of fixed width are not as long as they have to be; NO_CODE if an entropy code cannot be read. */
EXPORT i64 NAME(agent_receive)(const Agent* a, i64 index, const u8* data, i64 length, double scale) {
    const Run* run = a->run;
    real* spare = a->scratch->spare;
    copy_row(run->broadcast + index * run->size, spare, run->size);
    if (run->rounding == ENTROPY) {
        if (!read_codes(data, length, run->n_features, a->scratch->codes)) return NO_CODE;
        add_codes(data[0], a->scratch->codes, run->n_features, spare);
        return replace_replica(a, index);
    }
    if (length != (run->n_features * run->bits + 7) / 8) return REFUSED;
    if (!add_packed(run, data, lattice_for(run, (real)(float)scale), spare)) return REFUSED;
    if (run->low == run->high && (float)scale == 0) return TAKEN;
    return replace_replica(a, index);
}
/* Take a neighbour's model as it is. */
EXPORT i64 NAME(agent_receive_model)(const Agent* a, i64 index, const void* model) {
    clear_row(a->scratch->spare, a->run->size);
    memcpy(a->scratch->spare, model, a->run->n_features * sizeof(real));
    return replace_replica(a, index);
}

/* What the neighbours pull at, the dual or model that follows them, and the shares that make the dual up. */
EXPORT void NAME(agent_combine)(Agent* a) {
    Run* run = a->run;
    const i64 n = run->size;
    if (run->clip > 0.0) for (i64 k = 0; k < run->n_replicas * n; k++) run->sums[k] += (double)run->broadcast[k];
    if (run->algorithm == EXPERTS) combine_mixture(run, 0, a->scratch);
    else combine(run, 0, 1, a->scratch->lengths, a->scratch->pull);
    if (run->algorithm == ODKLA && run->clip == 0.0) add_row(run->duals, (real)run->rho, a->scratch->pull, n);
    for (i64 e = run->starts[0]; e < run->starts[1]; e++) {
        const i64 j = run->neighbours[e];
        for (i64 k = 0; k < n; k++) a->shares[j * n + k] += (double)run->broadcast[k] - (double)run->broadcast[j * n + k];
    }
}
/* The dual of an agent whose pulls are clipped, from its sums and those of its neighbours. */
EXPORT void NAME(agent_settle)(Agent* a) {
    const i64 n = a->run->starts[1] - a->run->starts[0];
    double* lengths = a->scratch->lengths;
    clip_factors(a->run, 0, lengths, lengths + n, lengths + 2 * n);
    clip_duals(a->run, 0, lengths + n);
}
