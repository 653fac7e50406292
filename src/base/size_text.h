// SPDX-License-Identifier: Apache-2.0
//
// Sizes for people: "20 MiB", "1.5 GiB", "513 bytes". A value without heap memory, for sentences.
#pragma once

#include <cstdint>

namespace understudy {

class SizeText {
 public:
  explicit SizeText(uint64_t bytes);
  const char* c_str() const { return text_; }

 private:
  char text_[32];
};

// Sizes to be compared by people: "63.99 GiB". Cut off rather than rounded, so that what is free
// never looks like more than it is.
class RoughSizeText {
 public:
  explicit RoughSizeText(uint64_t bytes);
  const char* c_str() const { return text_; }

 private:
  char text_[32];
};

}  // namespace understudy
