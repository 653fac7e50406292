// SPDX-License-Identifier: Apache-2.0
//
// Owns one file descriptor and closes it.
#pragma once

#include <utility>

namespace understudy::platform {

void close_descriptor(int descriptor);

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int descriptor) : descriptor_(descriptor) {}
  ~UniqueFd() { reset(); }
  UniqueFd(UniqueFd&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      reset();
      descriptor_ = std::exchange(other.descriptor_, -1);
    }
    return *this;
  }

  int get() const { return descriptor_; }
  bool valid() const { return descriptor_ >= 0; }
  // The caller closes it.
  int release() { return std::exchange(descriptor_, -1); }

 private:
  void reset() {
    if (descriptor_ >= 0) close_descriptor(std::exchange(descriptor_, -1));
  }

  int descriptor_ = -1;
};

}  // namespace understudy::platform
