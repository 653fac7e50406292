// SPDX-License-Identifier: Apache-2.0
//
// Reads this process's memory at addresses that a program named. A device address, or one without
// memory, is detected instead of a fault.
#pragma once

#include <cstddef>

namespace understudy::python {

// Copies bytes from an address; false if not all of them can be read.
bool read_own_memory(void* destination, const void* source, size_t size);
// Whether the first and the last of some bytes can be read.
bool has_readable_ends(const void* address, size_t size);

}  // namespace understudy::python
