// SPDX-License-Identifier: Apache-2.0
//
// Result<T>: a value, or the Error that explains why there is none. Nothing in the project throws
// on purpose; a Result that is not looked at does not compile.
#pragma once

#include <optional>
#include <utility>
#include <variant>

#include "base/error.h"

namespace understudy {

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit
  Result(const Error& error) : state_(std::in_place_index<1>, error) {}  // NOLINT: implicit

  bool ok() const { return state_.index() == 0; }
  // REQUIRES: ok().
  T& value() { return *known(std::get_if<0>(&state_)); }
  const T& value() const { return *known(std::get_if<0>(&state_)); }
  // REQUIRES: !ok().
  const Error& error() const { return *known(std::get_if<1>(&state_)); }

 private:
  // A variant may hold nothing after an exception. A Result never does, and the compiler need not
  // provide for it.
  template <typename Held>
  static Held* known(Held* held) {
    if (held == nullptr) __builtin_unreachable();
    return held;
  }

  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(const Error& error) : error_(error) {}  // NOLINT: implicit

  bool ok() const { return !error_.has_value(); }
  // REQUIRES: !ok().
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

}  // namespace understudy

#define US_CONCAT_(a, b) a##b
#define US_CONCAT(a, b) US_CONCAT_(a, b)

// Leaves the function with the error of `expression`, if it has one.
#define US_TRY(expression)                                                   \
  do {                                                                       \
    if (auto us_try_result = (expression); !us_try_result.ok()) [[unlikely]] \
      return us_try_result.error();                                          \
  } while (false)

// The same; otherwise initializes `declaration` with the value.
#define US_TRY_ASSIGN(declaration, expression) \
  US_TRY_ASSIGN_(US_CONCAT(us_result_, __LINE__), declaration, expression)
#define US_TRY_ASSIGN_(result, declaration, expression) \
  auto result = (expression);                           \
  if (!result.ok()) [[unlikely]]                        \
    return result.error();                              \
  declaration = std::move(result.value())
