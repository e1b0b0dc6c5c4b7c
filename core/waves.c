/* All that agents which run waves compute, in double precision. */
#define REAL_BITS 64
#include "rls.c"
#include "own_sums.c"
#include "bierman.c"
#include "linalg.c"
#include "rice.c"
#include "terms.c"
