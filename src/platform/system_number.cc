// SPDX-License-Identifier: Apache-2.0
#include "platform/system_number.h"

#include <cerrno>

namespace understudy::platform {

bool means_occupied(const Error& error) { return error.system_number() == EEXIST; }

bool means_impossible(const Error& error) { return error.system_number() == EINVAL; }

bool means_absent(const Error& error) {
  return error.system_number() == ENOENT || error.system_number() == ENOTDIR;
}

bool means_nobody_there(const Error& error) {
  return error.system_number() == ENOENT || error.system_number() == ECONNREFUSED;
}

bool means_unusable_place(const Error& error) {
  switch (error.system_number()) {
    case EACCES:
    case EPERM:
    case EROFS:
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case ENOSPC:
    case EDQUOT:
      return true;
    default:
      return false;
  }
}

}  // namespace understudy::platform
