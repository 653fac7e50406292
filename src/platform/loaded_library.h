// SPDX-License-Identifier: Apache-2.0
//
// Two copies of this library in one process would be two sets of devices that know nothing of each
// other. Both published names may be links to one file; two different files are a mistake.
#pragma once

#include <optional>
#include <string>

namespace understudy::platform {

struct LibraryCopies {
  std::string own;
  std::string other;
};

// The paths of this copy and of another one, if the process has loaded another one.
std::optional<LibraryCopies> second_copy_of_this_library();

}  // namespace understudy::platform
