/* All that works on rows, in single precision. */
#define REAL_BITS 32
#include "features.c"
#include "rounds.c"
#include "agent.c"
#include "parcels.c"
#include "probe.c"
