// SPDX-License-Identifier: Apache-2.0
#include "platform/processor.h"

#if defined(__x86_64__)
// The header says _Bool, which clang does not know in C++.
#if __has_include(<sys/platform/x86.h>) && !defined(__clang__)
#include <sys/platform/x86.h>
#define US_LINKER_KNOWS_PROCESSOR 1
#else
#include <cpuid.h>
#endif
#endif

namespace understudy::platform {

#if !defined(__x86_64__)

bool has_avx2() noexcept { return false; }
bool has_invariant_counter() noexcept { return true; }

#elif defined(US_LINKER_KNOWS_PROCESSOR)

bool has_avx2() noexcept { return CPU_FEATURE_ACTIVE(AVX2); }
bool has_invariant_counter() noexcept { return CPU_FEATURE_PRESENT(INVARIANT_TSC); }

#else  // clang, or glibc before 2.33

bool has_avx2() noexcept { return __builtin_cpu_supports("avx2"); }

bool has_invariant_counter() noexcept {
  constexpr unsigned kPowerLeaf = 0x80000007;
  constexpr unsigned kInvariant = 1U << 8;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(kPowerLeaf, &a, &b, &c, &d) != 0 && (d & kInvariant) != 0;
}

#endif

}  // namespace understudy::platform
