/* What a message of a wave is made of and made from. */
#ifndef TERMS_H
#define TERMS_H
#include "linalg.h"

/* Both ends of a link hold U and derive reflections from it. A message is terms, rank-one parts of a matrix that is
 * whitened by K and reflected, and a vector for each output; a row of it is (sign, step, codes) of a term, and
 * (-1, step, codes) of a vector. A step is a byte j for 2^((j - 128)/4). */
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

/* What a message is made of: a subtree's sums, and how precisely they are told. */
typedef struct {
    const double* information; /* S (n, n), of which tiles on and below the diagonal are read */
    const double* moments;     /* (n_outputs, n) */
    i64 n_outputs;
    double tolerance;          /* of eigenvalues */
    double fineness;           /* nu of the step of a term, which is finer the larger it is */
    double finest_size;        /* up to this size */
    i64 n_bits;                /* of the message, when it is encoded */
} Sums;

#endif
