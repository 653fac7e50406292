// SPDX-License-Identifier: Apache-2.0
#include "stream/worker_helper_pool.h"

#include <algorithm>

#include "base/pause.h"
#include "platform/thread.h"

namespace understudy {

WorkerHelperPool::WorkerHelperPool(RunQueue& run_queue)
    : run_queue_(run_queue),
      most_helpers_(std::min(platform::usable_processors() - 1, kMostHelpers)) {}

void WorkerHelperPool::offer(std::span<WorkItem> items) noexcept {
  for (WorkItem& item : items) run_queue_.push(item);
}

void WorkerHelperPool::withdraw(std::span<WorkItem> items) noexcept {
  for (WorkItem& item : items) {
    // One that a worker has taken is in its last step.
    while (!run_queue_.try_withdraw(item)) nap();
  }
}

}  // namespace understudy
