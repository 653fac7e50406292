// SPDX-License-Identifier: Apache-2.0
//
// Numbers in the text files of the kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace understudy::command {

// The number that a file begins with.
std::optional<uint64_t> number_in(const std::string& path);
// The number behind a name in /proc/self/status; `base` as strtoull(3).
std::optional<uint64_t> own_status(const std::string& name, int base = 10);

}  // namespace understudy::command
