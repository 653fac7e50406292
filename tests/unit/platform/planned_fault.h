// SPDX-License-Identifier: Apache-2.0
//
// A fault plan that ends with its scope, whatever the test does.
#pragma once

#include "platform/fault_plan.h"

namespace understudy::platform {

class PlannedFault {
 public:
  PlannedFault(SystemCall call, int n, int system_number) : call_(call), n_(n) {
    plan_fault(call, n, system_number);
  }
  ~PlannedFault() { clear_fault_plan(); }
  PlannedFault(const PlannedFault&) = delete;
  PlannedFault& operator=(const PlannedFault&) = delete;

  // Whether the call that had to fail came. Ends the plan.
  bool happened() const {
    bool waiting = false;
    for (int i = 0; i < n_; ++i) waiting = planned_fault(call_) != 0 || waiting;
    return !waiting;
  }

 private:
  const SystemCall call_;
  const int n_;
};

}  // namespace understudy::platform
