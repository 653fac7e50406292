// SPDX-License-Identifier: Apache-2.0
#include "platform/fault_plan.h"

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>

namespace understudy::platform {

namespace {

struct Plan {
  std::atomic<int> calls_until_fault{0};  // 0: none planned
  std::atomic<int> system_number{0};
  std::atomic<bool> stops{false};
};
std::array<Plan, static_cast<size_t>(SystemCall::kCount)> plans;

Plan& plan_of(SystemCall call) { return plans[static_cast<size_t>(call)]; }

}  // namespace

void plan_fault(SystemCall call, int n, int system_number) {
  plan_of(call).system_number.store(system_number);
  plan_of(call).stops.store(false);
  plan_of(call).calls_until_fault.store(n);
}

void plan_stop(SystemCall call, int n, int system_number) {
  plan_of(call).system_number.store(system_number);
  plan_of(call).stops.store(true);
  plan_of(call).calls_until_fault.store(n);
}

void clear_fault_plan() {
  for (Plan& plan : plans) plan.calls_until_fault.store(0);
}

int planned_fault(SystemCall call) {
  Plan& plan = plan_of(call);
  if (plan.calls_until_fault.load(std::memory_order_relaxed) == 0) return 0;
  if (plan.calls_until_fault.fetch_sub(1) != 1) return 0;
  if (plan.stops.load()) raise(SIGSTOP);
  return plan.system_number.load();
}

}  // namespace understudy::platform
