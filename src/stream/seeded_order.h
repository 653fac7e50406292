// SPDX-License-Identifier: Apache-2.0
//
// Which of the streams that could run does, as a seed says. At each turn every stream has a weight,
// and the heaviest one runs. A weight is made of the seed, the stream and the turn alone: streams
// that turn out not to be able to run change nothing among the others.
//
// Weights last for a stretch of turns, whose length the seed decides, too: some seeds mix streams
// task by task, others hold one back while another does all that it has.
// Constant after construction.
#pragma once

#include <cstdint>
#include <vector>

#include "device/schedule_choice.h"

namespace understudy {

class SeededOrder {
 public:
  explicit SeededOrder(const ScheduleChoice& choice);

  // From 0 to 1.
  double weight(uint32_t stream, uint64_t turn) const;
  // Whether the call that asks for the n-th time how far a stream is lets a task run before.
  bool lets_query_run(uint64_t query) const;

 private:
  const uint64_t seed_;
  const uint64_t stretch_;  // turns
  const std::vector<SlowStream> slow_;
};

}  // namespace understudy
