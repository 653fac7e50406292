// SPDX-License-Identifier: Apache-2.0
//
// Runs a function when the scope is left, unless dismissed: how several acts are undone when a
// later one fails.
#pragma once

#include <utility>

namespace understudy {

template <typename Function>
class ScopeExit {
 public:
  explicit ScopeExit(Function function) : function_(std::move(function)) {}
  ~ScopeExit() {
    if (armed_) function_();
  }
  ScopeExit(const ScopeExit&) = delete;
  ScopeExit& operator=(const ScopeExit&) = delete;

  void dismiss() { armed_ = false; }

 private:
  Function function_;
  bool armed_ = true;
};

}  // namespace understudy
