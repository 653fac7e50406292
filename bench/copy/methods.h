// SPDX-License-Identifier: Apache-2.0
//
// Ways to copy by hand.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace bench {

struct CopyMethod {
  const char* name;
  void (*copy)(std::byte* to, const std::byte* from, size_t count);
};

// Those that this processor has.
std::span<const CopyMethod> copy_methods();
std::string names_of_copy_methods();

}  // namespace bench
