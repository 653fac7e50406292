// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace understudy::platform {

// Copies bytes of this process from an address that may be nowhere. False if they cannot be read.
bool try_read(const void* from, void* to, size_t size) noexcept;

}  // namespace understudy::platform
