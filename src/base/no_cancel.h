// SPDX-License-Identifier: Apache-2.0
//
// pthread_cancel ends a thread at its next cancellation point, which most system calls that may
// wait are. Functions of this library are none: a thread that ended inside would leave locks taken
// and changes half made. Every use of a cancellation point stands under a NoCancel; a request that
// arrives meanwhile takes effect after the call, at a cancellation point of the program's.
#pragma once

namespace understudy {

class NoCancel {
 public:
  NoCancel() noexcept;
  ~NoCancel();
  NoCancel(const NoCancel&) = delete;
  NoCancel& operator=(const NoCancel&) = delete;

 private:
  int before_ = 0;
};

}  // namespace understudy
