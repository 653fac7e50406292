// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>

namespace understudy::platform {

// Gives errno back its value at the end of a scope: for work beside a call, of which the program
// knows nothing.
class KeptErrno {
 public:
  KeptErrno() noexcept : number_(errno) {}
  ~KeptErrno() { errno = number_; }
  KeptErrno(const KeptErrno&) = delete;
  KeptErrno& operator=(const KeptErrno&) = delete;

 private:
  const int number_;
};

}  // namespace understudy::platform
