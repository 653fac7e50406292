// SPDX-License-Identifier: Apache-2.0
//
// How unit tests look at a Result: EXPECT_TRUE(is_ok(...)) and EXPECT_TRUE(fails_with(..., code))
// say in one line what came instead.
#pragma once

#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>

#include "base/result.h"

namespace understudy {

template <typename T>
testing::AssertionResult is_ok(const Result<T>& result) {
  if (result.ok()) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << "error " << static_cast<int>(result.error().code()) << ": " << result.error().text();
}

// An error of this kind, and with a sentence.
template <typename T>
testing::AssertionResult fails_with(const Result<T>& result, ErrorCode code) {
  if (result.ok()) return testing::AssertionFailure() << "no error";
  if (result.error().code() == code && result.error().text()[0] != '\0') {
    return testing::AssertionSuccess();
  }
  return is_ok(result);
}

// The value; without one the test ends here, as a failure that shows the error's text.
template <typename T>
T value_of(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().text());
  return std::move(result.value());
}

}  // namespace understudy
