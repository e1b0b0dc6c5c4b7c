/* All that works on rows, in double precision. */
#define REAL_BITS 64
#include "features.c"
#include "experts.c"
#include "rounds.c"
#include "level.c"
