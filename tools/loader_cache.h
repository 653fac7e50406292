// SPDX-License-Identifier: Apache-2.0
//
// /etc/ld.so.cache, in which ldconfig(8) notes where libraries are.
#pragma once

#include <string>
#include <vector>

namespace understudy::command {

// The files noted under a name, in the order in which the loader considers them. Those for special
// processors are left out.
std::vector<std::string> cached_libraries(const std::string& name);

}  // namespace understudy::command
