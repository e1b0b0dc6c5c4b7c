/* Experts: see experts.h. */
#include "experts.h"
#include "losses.h"
#include "rls.h"

#define WINDOW 100.0   /* samples over which the mean cost is taken */
#define FLOOR 0.01     /* of the weights, shared by all experts */
#define WORST 50.0     /* costs count up to this many times the mean cost */
#define FLATTEST 0.05  /* curvature */

/* The second derivative of the loss, 0 where it has none. */
static double curvature_of(i64 loss, double margin, double label) {
    if (loss == SQUARED) return 2.0;
    if (loss == SQUARED_HINGE) return label * margin < 1.0 ? 2.0 : 0.0;
    if (loss != LOGISTIC) return 0.0;
    const double p = 1.0 / (1.0 + exp(margin));
    return p * (1.0 - p);
}

void mix_experts(const Experts* experts, i64 agent, i64 size, const ExpertRoom* room) {
    const i64 n = experts->n_steps + experts->n_forgetting;
    const double *votes = experts->votes + agent * n, *models = experts->models + agent * n * size;
    for (i64 d = 0; d < size; d++) {
        double total = 0.0;
        for (i64 k = 0; k < n; k++) total += votes[k] * models[k * size + d];
        room->gain[d] = total;
    }
}

void move_experts(const Experts* experts, i64 agent, i64 size, const ExpertRoom* room) {
    const i64 n = experts->n_steps + experts->n_forgetting;
    double* models = experts->models + agent * n * size;
    for (i64 k = 0; k < n; k++) for (i64 d = 0; d < size; d++) models[k * size + d] += room->gain[d];
}

/* The weights of the experts of an agent from what their predictions cost. */
static void vote(const Experts* experts, i64 loss, i64 agent, double label, const double* margins) {
    const i64 n = experts->n_steps + experts->n_forgetting;
    double *votes = experts->votes + agent * n, *mean_cost = experts->numbers + 2 * agent, *seen = mean_cost + 1;
    double mixed = 0.0, total = 0.0;
    for (i64 k = 0; k < n; k++) mixed += votes[k] * margins[k];
    *seen += 1.0;
    const double cost = 2.0 * value_of(loss, mixed, label) / experts->scale;
    *mean_cost += (cost - *mean_cost) / MIN(*seen, WINDOW);
    const double usual = *mean_cost;
    for (i64 k = 0; k < n; k++) {
        const double own = MIN(2.0 * value_of(loss, margins[k], label) / experts->scale, 2.0 * WORST * usual);
        votes[k] *= exp(-own / (usual > 0.0 ? 2.0 * usual : 1.0));
        total += votes[k];
    }
    for (i64 k = 0; k < n; k++) votes[k] = (1.0 - FLOOR) * (votes[k] / total) + FLOOR / (double)n;
}

void learn_experts(const Experts* experts, i64 loss, i64 agent, i64 size, i64 n_features, double label, const ExpertRoom* room) {
    const i64 n_steps = experts->n_steps, n = n_steps + experts->n_forgetting;
    const i64 turn = (i64)experts->numbers[2 * agent + 1] % n_features;
    double* models = experts->models + agent * n * size;
    double square = 0.0;
    for (i64 d = 0; d < size; d++) square += room->phi[d] * room->phi[d];
    for (i64 k = 0; k < n; k++) room->margins[k] = dot(models + k * size, room->phi, size);
    vote(experts, loss, agent, label, room->margins);
    for (i64 k = 0; k < n; k++) {
        const double error = slope_of(loss, room->margins[k], label) / experts->scale;
        if (k < n_steps) {
            add_row(models + k * size, -2.0 * (experts->steps[k] / MAX(1.0, square)) * error, room->phi, size);
            continue;
        }
        const double curvature = experts->curved ? MAX(curvature_of(loss, room->margins[k], label) / experts->scale, FLATTEST) : 1.0;
        const Forgetting f = {
            {experts->spread + (agent * experts->n_forgetting + k - n_steps) * size * size, size, size},
            n_features, experts->forgetting[k - n_steps], experts->ridge, room->gain, room->gain, room->column,
        };
        pass(f.spread, (Pass){.x = room->phi, .gain = room->gain}, GAIN);
        learn_forgetting(&f, turn, models + k * size, room->phi, error, curvature);
        pass(f.spread, (Pass){.v = f.v, .w = f.w, .raised = 1.0 / f.forgetting}, RAISE | LOWER_TWICE);
    }
}
