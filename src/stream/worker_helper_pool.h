// SPDX-License-Identifier: Apache-2.0
//
// Lets idle workers help with large copies: work items wait in the run queue behind all streams.
// Any thread may call anything.
#pragma once

#include <span>

#include "memory/helper_pool.h"
#include "stream/run_queue.h"

namespace understudy {

class WorkerHelperPool final : public HelperPool {
 public:
  explicit WorkerHelperPool(RunQueue& run_queue);

  unsigned most_helpers() const override { return most_helpers_; }
  void offer(std::span<WorkItem> items) noexcept override;
  void withdraw(std::span<WorkItem> items) noexcept override;
  bool has_other_work() const noexcept override { return run_queue_.has_work(); }

 private:
  RunQueue& run_queue_;
  const unsigned most_helpers_;
};

}  // namespace understudy
