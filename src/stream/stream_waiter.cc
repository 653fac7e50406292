// SPDX-License-Identifier: Apache-2.0
#include "stream/stream_waiter.h"

#include <algorithm>

#include "base/pause.h"

namespace understudy {

bool StreamWaiter::wait_until(Stream& stream, uint64_t position, Deadline deadline) {
  while (!stream.is_done(position)) {
    if (wait_once(stream, position, deadline) == WaitGraph::Outcome::kTimeOver) return false;
  }
  return true;
}

WaitGraph::Outcome StreamWaiter::wait_once(Stream& stream, uint64_t position, Deadline deadline) {
  if (run_queue_.is_scheduled()) [[unlikely]]
    return wait_graph_.wait(stream, position, deadline);
  help(stream, position, deadline);
  if (run_queue_.patience() != Clock::duration::zero()) {
    const Deadline until = std::min(Clock::now() + run_queue_.patience(), deadline);
    do {
      for (int i = 0; i < 16 && !stream.is_done(position); ++i) pause_briefly();
      if (stream.is_done(position)) return WaitGraph::Outcome::kReached;
      if (stream.run_state.load(std::memory_order_relaxed) == RunState::kReady) {
        help(stream, position, deadline);
      }
    } while (Clock::now() < until);
  }
  run_queue_.hurry();
  return wait_graph_.wait(stream, position, deadline);
}

void StreamWaiter::help(Stream& stream, uint64_t position, Deadline deadline) {
  constexpr int kLongestChain = 8;
  WaitGraph::Blocker wanted{&stream, position};
  for (int link = 0; link < kLongestChain && !stream.is_done(position); ++link) {
    if (run_queue_.try_claim(*wanted.stream)) {
      const RunEnd end = run_owned(wanted, deadline);
      runner_.let_go(*wanted.stream, end);
      if (end == RunEnd::kForOther || has_passed(deadline)) return;
    }
    // What was wanted may be done, or it waits for something: start from there.
    if (wanted.stream->is_done(wanted.position)) wanted = {&stream, position};
    if (const auto blocker = wait_graph_.blocker_of(*wanted.stream)) wanted = *blocker;
  }
}

RunEnd StreamWaiter::run_owned(const WaitGraph::Blocker& wanted, Deadline deadline) {
  // With a limit of time, a little at a time.
  constexpr unsigned kFew = 4;
  const bool limited = deadline != kNever;
  const RunLimits limits{.until = wanted.position,
                         .most_tasks = limited ? kFew : 0,
                         .may_call_users = false,
                         .may_take_long = !limited};
  RunEnd end = RunEnd::kTurnOver;
  do {
    end = runner_.run(*wanted.stream, limits);
  } while (end == RunEnd::kTurnOver && !has_passed(deadline));
  return end;
}

}  // namespace understudy
