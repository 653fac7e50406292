// SPDX-License-Identifier: Apache-2.0
//
// What tasks and calls do to memory, as the check `order` wants to know it (observe/order.h), and
// where tasks were queued, for those that run them. Where neither is asked for, each of the inline
// functions is one test of a word.
#pragma once

#include <cstdint>

#include "memory/pool_ranges.h"
#include "observe/order.h"
#include "stream/front_task.h"
#include "stream/stream.h"
#include "stream/task.h"

namespace understudy {

inline StreamTask task_at(const Stream& stream, uint64_t position) {
  return {stream.index, position};
}

// The checks that want to know of tasks.
inline constexpr CheckSet kTaskChecks = CheckSet::of(Check::kOrder, Check::kInit);

// A task is about to be added at the position. Under the lock of the queue.
[[gnu::cold]] void note_queued_task(const Stream& stream, uint64_t position, const Task& task,
                                    const ProgramPlace& place) noexcept;
// The caller, a thread of the program, has found the task done.
inline void note_known_task(const Stream& stream, uint64_t position) noexcept {
  if (is_order_checked()) [[unlikely]]
    Order::note_known(task_at(stream, position));
}

// The caller, a thread of the program, is about to wait for the task.
inline void note_wait_for_task(const Stream& stream, uint64_t position,
                               Deadline deadline) noexcept {
  if (is_order_checked() && deadline == kNever) [[unlikely]]
    Order::note_wait(task_at(stream, position));
}

// A call of the program is about to move or set bytes itself.
[[gnu::cold]] void note_moved(const Copy& copy) noexcept;
[[gnu::cold]] void note_moved(const PlaneCopy& rows) noexcept;
[[gnu::cold]] void note_set(VirtualRange range) noexcept;
// A stream calls a function of the program, in the scope of this.
class OrderedFunction {
 public:
  OrderedFunction(const Stream& stream, uint64_t position, Order::AfterFunction after) noexcept
      : stream_(stream.index), after_(after), is_noted_(is_order_checked()) {
    if (is_noted_) Order::note_function_begun(task_at(stream, position));
  }
  ~OrderedFunction() {
    if (is_noted_) Order::note_function_ended(stream_, after_);
  }
  OrderedFunction(const OrderedFunction&) = delete;
  OrderedFunction& operator=(const OrderedFunction&) = delete;

 private:
  const uint32_t stream_;
  const Order::AfterFunction after_;
  const bool is_noted_;
};
// A task is about to write what the program may look at, and then knows where the stream is.
inline void note_told(const FrontTask& front) noexcept {
  if (is_order_checked()) [[unlikely]]
    Order::note_told(task_at(front.stream, front.position));
}
// A task ran, or was dropped.
[[gnu::cold]] void note_task_done(const FrontTask& front, Order::Outcome outcome) noexcept;
// Memory of a pool is about to be free for others, behind the task of the mark.
[[gnu::cold]] void note_freed(const FreeMark& mark, VirtualRange range) noexcept;
// A task is about to end the memory that it uses: others may have it before the task is done.
[[gnu::cold]] void note_ending(const FrontTask& front) noexcept;
// A task has found out what it moves.
[[gnu::cold]] void note_found(const FrontTask& front, const Copy& copy) noexcept;

}  // namespace understudy
