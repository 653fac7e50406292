// SPDX-License-Identifier: Apache-2.0
//
// A part of an object that another object guards with its lock, which an annotation on the field
// cannot name. Only the keeper opens the part, in a function that requires the lock: clang then
// checks every use.
#pragma once

namespace understudy {

template <typename Keeper, typename T>
class KeptBy {
 private:
  friend Keeper;
  T value{};
};

}  // namespace understudy
