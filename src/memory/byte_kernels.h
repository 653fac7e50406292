// SPDX-License-Identifier: Apache-2.0
//
// The loops that move and set bytes of device memory. They are not instrumented for data races:
// two copies to the same device address race on a real device as well, which is up to the program
// and no fault of this library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace understudy {

// The ranges may overlap.
#if defined(__SANITIZE_THREAD__)
void copy_bytes(void* destination, const void* source, size_t count);
#else
inline void copy_bytes(void* destination, const void* source, size_t count) {
  memmove(destination, source, count);
}
#endif
void fill_bytes(void* destination, uint8_t value, size_t count);
// REQUIRES: the destination is a multiple of 4.
void fill_words(void* destination, uint32_t value, size_t count);

}  // namespace understudy
