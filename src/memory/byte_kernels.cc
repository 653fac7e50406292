// SPDX-License-Identifier: Apache-2.0
#include "memory/byte_kernels.h"

#include <algorithm>
#include <cstring>

namespace understudy {

#if defined(__SANITIZE_THREAD__)

// memmove and memset are intercepted by ThreadSanitizer; volatile loops in functions that it leaves
// alone are not, nor are they turned back into calls.
[[gnu::no_sanitize("thread")]] void copy_bytes(void* destination, const void* source,
                                               size_t count) {
  auto* to = static_cast<volatile uint8_t*>(destination);
  const auto* from = static_cast<const volatile uint8_t*>(source);
  const auto distance = reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from);
  if (distance >= count) {
    const size_t words =
        (reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % 8 ? 0 : count / 8;
    for (size_t i = 0; i < words; ++i) {
      reinterpret_cast<volatile uint64_t*>(destination)[i] =
          reinterpret_cast<const volatile uint64_t*>(source)[i];
    }
    for (size_t i = words * 8; i < count; ++i) to[i] = from[i];
  } else {
    for (size_t i = count; i-- > 0;) to[i] = from[i];
  }
}

[[gnu::no_sanitize("thread")]] void fill_bytes(void* destination, uint8_t value, size_t count) {
  auto* to = static_cast<volatile uint8_t*>(destination);
  size_t i = 0;
  for (; i < count && reinterpret_cast<uintptr_t>(to + i) % 8 != 0; ++i) to[i] = value;
  const uint64_t word = value * uint64_t{0x0101010101010101};
  for (; i + 8 <= count; i += 8) *reinterpret_cast<volatile uint64_t*>(to + i) = word;
  for (; i < count; ++i) to[i] = value;
}

[[gnu::no_sanitize("thread")]] void fill_words(void* destination, uint32_t value, size_t count) {
  auto* to = static_cast<volatile uint32_t*>(destination);
  for (size_t i = 0; i < count; ++i) to[i] = value;
}

#else

void fill_bytes(void* destination, uint8_t value, size_t count) {
  memset(destination, value, count);
}

void fill_words(void* destination, uint32_t value, size_t count) {
  std::fill_n(static_cast<uint32_t*>(destination), count, value);
}

#endif

}  // namespace understudy
