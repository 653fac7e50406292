// SPDX-License-Identifier: Apache-2.0
//
// What is mapped into this process, as the kernel lists it. Slow: for rare questions only.
#pragma once

#include <string>
#include <vector>

#include "base/virtual_range.h"

namespace understudy::platform {

struct MapEntry {
  VirtualRange range;
  std::string file_identity;  // device and inode; "00:00 0" for anonymous memory
  std::string path;           // empty for anonymous memory
};

std::vector<MapEntry> memory_map();

bool is_anything_mapped(VirtualRange range);

}  // namespace understudy::platform
