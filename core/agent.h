/* A running agent, or a model that learns alone. */
#ifndef AGENT_H
#define AGENT_H
#include "run.h"

typedef struct {
    Run* run; /* of one row */
    Scratch* scratch;
    const real* sample;
    double* shares;    /* sums of theta-hat_i - theta-hat_j, a row a replica */
    u8* message;       /* with room for the longest */
    i64 length;        /* bytes of the message */
    i64 outside;       /* its entries that saturate */
    double scale;      /* its range, if that adapts */
    double prediction;
} Agent;

#endif
