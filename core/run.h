/* What a run is made of: its numbers, its graph, what its agents hold, and room to work in.
 *
 * The simulator has one Run for all agents; a running agent is a Run of one agent and the replicas of its neighbours;
 * a process of an MPI job is one of its agents and of the replicas of those elsewhere. */
#ifndef RUN_H
#define RUN_H
#include "features.h"
#include "vec.h"

enum { DENSE, RISE, TREAD, ENTROPY };
enum { BY_ROUND, BY_MESSAGE, BY_BIT };
/* What an agent sent in a round: nothing, a message, or that nothing has changed. */
enum { SILENT, SENT, SAME };
/* How a round or a chunk of rounds ends; SPOILED: it is over, and some model is not finite. */
enum { FINISHED, BAD_INPUT, DIVERGED, AGAIN, SPOILED };
enum { N_REMEMBERED = 3 }; /* numbers of a budget's memory: threshold, credit, price */

/* A prediction this many times larger than any label seen so far can only come from a run that diverges. */
#define DIVERGENCE 1e3
/* A replica of this norm has diverged. Its square, and sums of many, are finite in single precision. */
#define NORM_LIMIT 1e15

/* The experts of an agent, back to back for all agents; all in double precision. */
typedef struct {
    i64 n_steps, n_forgetting;
    double ridge, scale; /* scale is max(1, c) of the loss */
    i64 curved;          /* whether c > 0 */
    const double *steps, *forgetting;
    double *models;  /* K rows an agent */
    double *votes;   /* (agents, K) */
    double *spread;  /* a matrix an agent and forgetting factor */
    double *numbers; /* (agents, 2): mean cost, labels seen */
} Experts;

typedef struct {
    i64 algorithm, loss, unit; /* unit: every feature vector has length 1 */
    i64 n_features, size;      /* D; the stride of rows: D padded to whole vectors, or to half of one */
    i64 n_agents;              /* in the whole network */
    i64 n_rows, n_replicas;    /* agents that learn here; and all whose replicas are held */
    i64 senders_only;          /* whether a learner mixes only with neighbours that sent in this round */
    i64 rounding, cells, bits, message_bits, budget;
    double rho, shrink, mixing;
    double clip; /* a neighbour pulls at most this many times the median; 0: no limit */
    double low, high, coarseness, dead_zone, income, burst, gain;

    const i64* starts; /* neighbours of row i: starts[i] to starts[i + 1] */
    const i32* neighbours;
    const real* combination;
    const i64* distant_starts; /* neighbours that are far away in memory, by groups of rows */
    const i32* distant;
    i64 n_groups;

    real *weights, *duals, *broadcast;
    const whole* mask; /* all bits of the entries of a row, none of its padding */
    double* sums; /* running sums of broadcast, where pulls are clipped */
    i64 sums_size; /* their stride */
    u8* spoken;
    double* memory;
    Experts* experts;

    real *tops, *mean, *errors, *distances; /* tops: one vector a part */
    i64* totals;                            /* a row of whole vectors a part */
    i64 n_parts;
    double largest;      /* label so far */
    double scale, peak;  /* of the sum of all models */
    double pending;      /* whether duals still wait for the last messages */
    double error_top, distance_top;
    i64 error_units, distance_units;
} Run;

typedef struct {
    const Features* features;
    i64 n_rows; /* of phi */
    real *phases, *lifted, *phi;
    real *pull, *innovation, *spare;
    double* lengths; /* three numbers a neighbour, where pulls are clipped */
    double* expert;  /* three rows and a number an expert */
    i64* codes;      /* of an entropy code */
    u8* written;
    whole* units;
    real* tops;
    i64* totals;
} Scratch;

/* A chunk of rounds: its samples, and what is recorded of them. */
typedef struct {
    i64 n_rounds, mapped; /* mapped: samples are features, of padded length */
    const real *samples, *labels, *rates;
    const double* thresholds; /* 0: nothing is censored */
    real* predictions;
    u8* sent;
    i32* outside;
    double *consensus, *energy, *replica_error;
    i64* message_sizes;          /* 0 where all messages have the same */
    double *squares, *losses;    /* collective scores; 0 where they are not wanted */
} Stream;

#endif
