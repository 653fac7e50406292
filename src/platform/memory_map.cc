// SPDX-License-Identifier: Apache-2.0
#include "platform/memory_map.h"

#include <cinttypes>
#include <cstdio>
#include <sstream>

#include "platform/text_file.h"

namespace understudy::platform {

std::vector<MapEntry> memory_map() {
  std::vector<MapEntry> entries;
  std::istringstream lines(read_text_file("/proc/self/maps").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    uint64_t begin = 0;
    uint64_t end = 0;
    int identity_at = 0;
    int identity_end = 0;
    int path_at = 0;
    if (sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %*s %*s %n%*s %*s%n %n", &begin, &end,
               &identity_at, &identity_end, &path_at) < 2 ||
        identity_end == 0) {
      continue;
    }
    const auto part = [&](int from, int to) {
      return line.substr(static_cast<size_t>(from), static_cast<size_t>(to - from));
    };
    const int path_from = path_at == 0 ? static_cast<int>(line.size()) : path_at;
    entries.push_back({{begin, end - begin},
                       part(identity_at, identity_end),
                       part(path_from, static_cast<int>(line.size()))});
  }
  return entries;
}

bool is_anything_mapped(VirtualRange range) {
  for (const MapEntry& entry : memory_map()) {
    if (entry.range.overlaps(range)) return true;
  }
  return false;
}

}  // namespace understudy::platform
