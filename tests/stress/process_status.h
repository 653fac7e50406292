// SPDX-License-Identifier: Apache-2.0
//
// What the kernel says about this process, and its limits.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <sstream>
#include <string>

#include "support/rule_test.h"

namespace understudy_test {

// A figure of /proc/self/status in bytes, for example "RssAnon".
inline size_t status_bytes(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    size_t kib = 0;
    if (words >> name >> kib && name == key + ":") return kib * kKiB;
  }
  ADD_FAILURE() << "/proc/self/status has no " << key;
  return 0;
}

// Lowers the soft limit of this process.
inline void limit_process(__rlimit_resource resource, size_t limit) {
  rlimit current = {};
  ASSERT_EQ(getrlimit(resource, &current), 0);
  current.rlim_cur = std::min<rlim_t>(limit, current.rlim_max);
  ASSERT_EQ(setrlimit(resource, &current), 0);
}

}  // namespace understudy_test
