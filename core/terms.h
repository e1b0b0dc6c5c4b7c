/* Messages of a wave: terms, rank-one parts of a matrix, and a vector for each output.
 *
 * A message up builds on U, which both ends of its link hold, whitened by K = L^-1 and reflected. A row of it is (sign,
 * step, codes) of a term, and (-1, step, codes) of a vector. A step is a byte j for 2^((j - 128)/4). */
#ifndef TERMS_H
#define TERMS_H
#include "linalg.h"

typedef struct {
    const Factor* factor;
    const double* reflections; /* (n_reflections, n) */
    i64 n_reflections;
    const double* base;        /* U (n, n) */
    i64* rows;                 /* terms, then vectors */
    i64 n_terms;               /* that are given, or to be found at most */
    double n_samples;
    double* room;              /* of message_room */
} Message;

/* The sums of a subtree, and how precisely they are told. */
typedef struct {
    const double* information; /* S (n, n), of which tiles on and below the diagonal are read */
    const double* moments;     /* (n_outputs, n) */
    i64 n_outputs;
    double tolerance;          /* of eigenvalues that no term tells */
    double fineness;           /* of steps, which are smaller the larger a term is, */
    double finest_size;        /* up to this size */
    i64 n_bits;                /* of the message, when it is encoded */
} Sums;

/* The arguments of the root's step. */
typedef struct {
    const double* information; /* C (n, n) */
    i64 n, n_outputs;
    double n_samples, shift;
    const double *change, *residual; /* (n_outputs, n) */
    const double *damping, *sizes;   /* of each output: damping, and the size of a step of its codes */
} RootStep;

#endif
