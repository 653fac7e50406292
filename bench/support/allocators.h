// SPDX-License-Identifier: Apache-2.0
//
// General allocators as the baseline, beside the process's own malloc, which stays what it is.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace bench {

struct Allocator {
  const char* name;
  void* (*allocate)(size_t size);
  void (*release)(void* memory);
};

struct Allocators {
  std::vector<Allocator> found;     // glibc first
  std::vector<std::string> absent;  // a sentence for each that this machine does not have
};

// Loads mimalloc and jemalloc (Debian: libmimalloc2.0, libjemalloc2). May start the program anew,
// so it comes first in main().
Allocators load_allocators(char** argv);

}  // namespace bench
