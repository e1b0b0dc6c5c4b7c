/* Recursive least squares between waves: one agent's matrix P, the sums of its data, and the rounds of all agents. */
#ifndef RLS_H
#define RLS_H
#include "lower.h"

/* One agent's models, a row an output, and P - u u', where u waits for the next pass over P. */
typedef struct {
    i64 size, stride, n_outputs;
    double forgetting;
    double *spread, *models, *pending, *gain; /* gain is room */
} Rls;

/* Rows first, first + step, ... before stop, those of one agent. A row of squares is a weight, 1 where the sample has a
 * label, and a target for each output. */
typedef struct {
    i64 first, step, stop;
    const double *phi, *squares;
} Samples;

/* The sums of one agent's data. */
typedef struct {
    i64 size, n_features, n_outputs, n_scaled;
    double forgetting;
    double* information; /* A = sum s phi phi' */
    double* moments;     /* b = sum s z phi, a padded row an output */
    double* numbers;     /* m, then c = sum s z^2 of each output */
    double* watched;     /* theta and u of each output, padded rows */
    double* sums;        /* three of each output: x = s e u.phi, x^2 and 1, e the error at theta */
    double* scaled;      /* room for n_scaled rows, at least two */
} OwnSums;

enum { N_ARMS = 5 };

/* The arms of all agents, as in laconic.waves.arms: their models and matrices, and how they are mixed. */
typedef struct {
    i64 n_features;
    double forgetting, ridge, step;
    double* models;                /* the mixtures, which predict */
    double *pair, *pair_spread;    /* two an agent: the shrunk and the personal arm */
    double *recent, *recent_spread;
    double* quick;
    double *stack, *errors;        /* weights of the arms; sums of products of their errors */
    i64* turns;
    const double* first;           /* weights to begin with */
    double *pending, *raised;      /* what waits for the next pass: four rows an agent, of zeros, and a number, 1 */
    const double* shared;          /* models for anybody's data, for agents with a 1 in adopted */
    const u8* adopted;
    double* stacks;                /* of every round: the weights that made each prediction */
} Arms;

/* Rounds in which no agent sends. Row t N + i of phi, labels, predictions and squares belongs to agent i in round t. */
typedef struct {
    i64 n_agents, n_outputs, size, stride, n_rounds, loss;
    i64 block, group;  /* so many rounds are learned by so many agents at a time, whose matrices stay in the cache */
    i64 opened, until; /* the block of rounds that is being learned */
    i64 spoiled;       /* whether it ended after a round that left models which are not finite */
    i64* learned;      /* rounds that each agent has learned: others may be ahead of one that diverges */
    double forgetting, largest; /* largest: label so far */
    const double *phi, *labels, *targets; /* targets: labels as they are learned from */
    double *weights, *spread, *pending, *theta;
    double *predictions, *squares;
    double* found;   /* of every round: distance of models from their mean, their energy, their distance from theta */
    double* scores;  /* 0, or of every round and model: mean square, then mean loss, over the samples of all */
    double* history; /* models before each round of a block, and after the last */
    double* scored;  /* models that are scored in each round: the history itself, unless there are arms */
    double* limits;  /* largest label before each round of a block, and after the last */
    double* gain;    /* a row of room */
    const Arms* arms;
} Rounds;

/* Least squares that forget by f and keep a ridge: P <- P/f - v v' - w w', where w is what leaks back into P. */
typedef struct {
    Lower spread;
    i64 n_features;
    double forgetting, ridge;
    double *gain, *v, *w; /* v may be gain */
} Forgetting;

/* Of the ridge of an entry, left after D samples: from there on its model follows the leak. */
#define FADED 1e-3

/* gain = P phi; then the model moves by a sample, and v, w become those of the next P. It leaks in direction turn. */
INLINE void learn_forgetting(const Forgetting* f, i64 turn, double* model, const double* phi, double error,
                             double curvature) {
    const i64 size = f->spread.size, stride = f->spread.stride, below = turn / TILE * TILE + TILE;
    const double scale = f->forgetting + curvature * dot(f->gain, phi, size), raised = 1.0 / f->forgetting;
    add_row(model, -error / scale, f->gain, size);
    scale_row(sqrt(curvature / (scale * f->forgetting)), f->gain, f->v, size);
    const double *along = f->spread.rows + turn * stride, *down = f->spread.rows + turn;
    for (i64 k = 0; k < size; k++) f->w[k] = raised * (k < below ? along[k] : down[k * stride]) - f->v[k] * f->v[turn];
    const double leak = (double)f->n_features * (1.0 - f->forgetting) * f->ridge;
    const double share = leak / (1.0 + leak * f->w[turn]);
    if (pow(f->forgetting, (double)f->n_features) < FADED) add_row(model, -(share * model[turn]), f->w, size);
    scale_row(sqrt(share), f->w, f->w, size);
}

#endif
