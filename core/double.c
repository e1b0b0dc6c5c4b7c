/* All that works on rows, in double precision, and all that is double in every run. */
#define REAL_BITS 64
#include "features.c"
#include "experts.c"
#include "rounds.c"
#include "agent.c"
#include "parcels.c"
#include "probe.c"
#include "level.c"
