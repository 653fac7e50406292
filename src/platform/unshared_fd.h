// SPDX-License-Identifier: Apache-2.0
//
// Owns one file descriptor that fork children do not keep.
#pragma once

#include <utility>

#include "platform/fork_sentinel.h"
#include "platform/unique_fd.h"

namespace understudy::platform {

class UnsharedFd {
 public:
  UnsharedFd() = default;
  explicit UnsharedFd(UniqueFd descriptor) : descriptor_(std::move(descriptor)) {
    if (valid()) close_in_fork_child(get());
  }
  ~UnsharedFd() { forget(); }
  UnsharedFd(UnsharedFd&&) = default;
  UnsharedFd& operator=(UnsharedFd&& other) noexcept {
    forget();
    descriptor_ = std::move(other.descriptor_);
    return *this;
  }

  // The caller closes it, and forgets it for fork children.
  int release() && { return descriptor_.release(); }

  int get() const { return descriptor_.get(); }
  bool valid() const { return descriptor_.valid(); }

 private:
  void forget() {
    if (valid()) forget_for_fork_child(get());
  }

  UniqueFd descriptor_;
};

}  // namespace understudy::platform
