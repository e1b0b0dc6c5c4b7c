/* Which variant of the library the processor runs, by the levels of the x86-64 psABI: 1 for v2, 2 for v3, 3 for v4; 0 on
 * other machines, which have one variant. The operating system has to save the registers, too. */
#include "vec.h"
#if defined(__x86_64__)
#include <cpuid.h>

static u64 saved_registers(void) {
    u32 low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (u64)high << 32 | low;
}
#endif

EXPORT i64 core_level(void) {
#if defined(__x86_64__)
    u32 a, b, c, d, b7 = 0, extended = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return 1;
    const int os_saves = (c >> 27) & 1, fma = (c >> 12) & 1, movbe = (c >> 22) & 1, f16c = (c >> 29) & 1;
    if (__get_cpuid_count(7, 0, &a, &b7, &c, &d) == 0) return 1;
    if (__get_cpuid(0x80000001, &a, &b, &extended, &d) == 0) return 1;
    const u64 saved = os_saves ? saved_registers() : 0;
    const u32 v3 = 1u << 3 | 1u << 5 | 1u << 8;                            /* bmi1, avx2, bmi2 */
    const u32 v4 = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31;   /* avx512 f, dq, cd, bw, vl */
    if (!fma || !movbe || !f16c || (b7 & v3) != v3 || !(extended & 1u << 5) || (saved & 6) != 6) return 1;
    return (b7 & v4) == v4 && (saved & 0xE6) == 0xE6 ? 3 : 2;
#else
    return 0;
#endif
}
