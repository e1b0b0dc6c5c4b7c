/* Terms and vectors of a message as bits: Rice codes of zigzag integers. */
#ifndef RICE_H
#define RICE_H
#include "vec.h"

/* Rows are (sign, step, codes) of a term, then (diagonal shift or -1, step, codes) of a vector. */
typedef struct {
    i64 n_features, n_terms, n_vectors;
    i64 plain;   /* whether no row has a head, whose order is its own */
    i64 shifted; /* whether the first vector carries a diagonal shift */
    i64* rows;
    i64 end;     /* where the bits end that were read */
} Body;

/* How many numbers of a term are its head, and how many reflections follow from a matrix. */
enum { HEAD = 8 };
INLINE i64 head_of(i64 n) { return at_most(HEAD, n / HEAD); }

EXPORT i64 write_body(const Body* b, u8* data, i64 at);

#endif
