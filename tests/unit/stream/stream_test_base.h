// SPDX-License-Identifier: Apache-2.0
//
// What tests of whole streams begin with: streams of a rig, some device memory, and a function that
// blocks a stream.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "unit/expect_result.h"
#include "unit/platform/planned_fault.h"
#include "unit/stream/stream_tools.h"
#include "unit/stream_rig.h"

namespace understudy {

class StreamTestBase : public testing::Test {
 protected:
  static constexpr uint64_t kOwner = 17;

  StreamTestBase() : memory_(rig_.memory.reserve(2 * kGranule)), fault_(memory_ + kGranule) {
    rig_.memory.map_fresh(memory_);
  }
  // Leaves no task behind: the rig's events end before its workers.
  ~StreamTestBase() override {
    gate_.open();
    for (const unsigned device : {0U, 1U}) (void)streams().abort_device(device, kNever);
    for (const uint64_t owner : {uint64_t{0}, kOwner, kOwner + 1}) {
      (void)streams().synchronize_owner(owner);
    }
  }

  Streams& streams() { return rig_.streams; }
  Events& events() { return rig_.events; }

  StreamReference make_stream(const StreamDescription& description = {.owner = kOwner}) {
    return value_of(streams().create(description));
  }
  EventReference make_event(const EventDescription& description = {.can_reset = true}) {
    return value_of(events().create(description));
  }
  uint64_t submit(const StreamReference& stream, const Task& task) {
    return value_of(streams().submit(stream, task));
  }
  void expect_synchronized(const StreamReference& stream) {
    EXPECT_TRUE(is_ok(streams().synchronize(stream)));
  }

  // Makes the stream run a function that does not return before the gate is opened.
  void block(const StreamReference& stream) {
    submit(stream, passing(gate_));
    gate_.wait_until_entered();
  }
  // The same with the only worker, so that nobody runs what is queued with submit_unserved.
  void block_only_worker(const StreamReference& stream) {
    const platform::PlannedFault fault(platform::SystemCall::kStartThread, 2, EAGAIN);
    block(stream);
  }
  // REQUIRES: block_only_worker, and the stream is idle.
  void submit_unserved(const StreamReference& stream, const Task& task) {
    const platform::PlannedFault fault(platform::SystemCall::kStartThread, 1, EAGAIN);
    submit(stream, task);
    ASSERT_TRUE(fault.happened());
    ASSERT_EQ(stream.stream->run_state.load(), RunState::kReady);
  }
  // Parks the stream in front of an event that nobody has recorded yet.
  void park(const StreamReference& stream, const EventReference& event) {
    ASSERT_TRUE(is_ok(events().let_wait(stream, event, 0)));
    wait_until_parked(stream);
  }
  static void wait_until_parked(const StreamReference& stream) {
    wait_for([&] { return stream.stream->run_state.load() == RunState::kParked; });
  }
  uint8_t byte_at(uint64_t offset) { return rig_.memory.byte_at(memory_ + offset); }

  // Functions may run as long as the rig lives.
  Gate gate_;
  std::atomic<int> calls_{0};
  StreamRig rig_;
  const VirtualAddress memory_;  // a granule of device memory
  const VirtualAddress fault_;   // reserved, with nothing behind it
};

}  // namespace understudy
