// SPDX-License-Identifier: Apache-2.0
#include "platform/system_number.h"

#include <cerrno>

namespace understudy::platform {

bool means_occupied(const Error& error) { return error.system_number() == EEXIST; }

bool means_impossible(const Error& error) { return error.system_number() == EINVAL; }

bool means_nobody_there(const Error& error) {
  return error.system_number() == ENOENT || error.system_number() == ECONNREFUSED;
}

}  // namespace understudy::platform
