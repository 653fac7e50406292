// SPDX-License-Identifier: Apache-2.0
#include "copy/methods.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace bench {

namespace {

void copy_by_library(std::byte* to, const std::byte* from, size_t count) {
  memcpy(to, from, count);
}

#if defined(__x86_64__)

// Parts of this benchmark are multiples of 128 bytes at such addresses.
[[gnu::target("avx2")]] void copy_past_caches(std::byte* to, const std::byte* from, size_t count) {
  for (size_t at = 0; at < count; at += 128) {
    _mm_prefetch(from + at + 1024, _MM_HINT_NTA);
    _mm_prefetch(from + at + 1088, _MM_HINT_NTA);
    for (size_t i = 0; i < 128; i += 32) {
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to + at + i),
                          _mm256_load_si256(reinterpret_cast<const __m256i*>(from + at + i)));
    }
  }
  _mm_sfence();
}

void copy_by_string_move(std::byte* to, const std::byte* from, size_t count) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
}

constexpr CopyMethod kMethods[] = {{"memcpy", copy_by_library},
                                   {"rep movsb", copy_by_string_move},
                                   {"non-temporal stores", copy_past_caches}};

#else

constexpr CopyMethod kMethods[] = {{"memcpy", copy_by_library}};

#endif

}  // namespace

std::span<const CopyMethod> copy_methods() {
  std::span<const CopyMethod> methods = kMethods;
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2")) methods = methods.first(methods.size() - 1);
#endif
  return methods;
}

std::string names_of_copy_methods() {
  std::string names;
  for (const CopyMethod& method : copy_methods()) {
    if (!names.empty()) names += ", ";
    names += method.name;
  }
  return names;
}

}  // namespace bench
