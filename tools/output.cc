// SPDX-License-Identifier: Apache-2.0
#include "tools/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace understudy::command {

namespace {

int first_failure = 0;  // errno

}  // namespace

bool flush_output() {
  errno = 0;
  if (fflush(stdout) == 0 && ferror(stdout) == 0) return true;
  if (first_failure == 0) first_failure = errno;
  return false;
}

const char* output_failure() {
  // The number is gone where a long text was written in parts.
  return first_failure != 0 ? strerror(first_failure) : "not all could be written";
}

}  // namespace understudy::command
