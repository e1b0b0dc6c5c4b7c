/* All that works on rows, in double precision. */
#define REAL_BITS 64
#include "features.c"
#include "rls.c"
#include "linalg.c"
#include "rice.c"
#include "terms.c"

/* The level of the processor by the names of the x86-64 psABI, 0 elsewhere: which variant of the library it runs. */
EXPORT i64 core_level(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    const int v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    const int v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd");
    return v3 && v4 ? 3 : v3 ? 2 : 1;
#else
    return 0;
#endif
}
