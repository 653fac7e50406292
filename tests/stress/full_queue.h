// SPDX-License-Identifier: Apache-2.0
//
// A stream with very many tasks behind one that waits for something that does not come.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <vector>

#include "rules/host_objects.h"
#include "stress/stream_fleet.h"
#include "support/rule_test.h"
#include "support/sanitizers.h"

namespace understudy_test {

inline const int kFullQueue = kSanitized ? 10'000 : 100'000;

// What the first task waits for: a word that nobody writes, an event that nobody records, nothing.
enum class Holder : uint8_t { kValue, kEvent, kNobody };

// Sets, copies, captured copies, records and host functions. The stream may end before this object
// does, not after it, unless its tasks were dropped or have run.
class FullQueue {
 public:
  FullQueue(aclrtStream stream, Holder holder, int tasks = kFullQueue) : stream_(stream) {
    EXPECT_SUCCESS(aclrtMemset(word_.data(), word_.size(), 0, word_.size()));
    EXPECT_SUCCESS(aclrtMemset(target_.data(), target_.size(), 0, target_.size()));
    memset(source_.data(), 0x11, source_.size());
    if (holder == Holder::kValue) {
      EXPECT_SUCCESS(aclrtValueWait(word_.data(), 1, ACL_STREAM_WAIT_VALUE_EQ, stream_));
    } else if (holder == Holder::kEvent) {
      EXPECT_SUCCESS(aclrtStreamWaitEvent(stream_, never_.get()));
    }
    for (int i = 0; i < tasks; ++i) add_task(i);
  }

  int calls() const { return calls_; }
  int queued_calls() const { return queued_calls_; }
  // Lets a stream that waits for the word go on.
  void release() const {
    const uint64_t one = 1;
    EXPECT_SUCCESS(
        aclrtMemcpy(word_.data(), word_.size(), &one, sizeof one, ACL_MEMCPY_HOST_TO_DEVICE));
  }

  // The device was reset: only the host memory is left to be freed.
  void forget_device_memory() {
    word_.give_up();
    target_.give_up();
    never_.release();
    recorded_.release();
  }

  void expect_untouched() const {
    EXPECT_TRUE(copy_out(target_.data(), kBytes) == std::vector<uint8_t>(kBytes, 0))
        << "a task ran that was dropped";
  }
  void expect_next_task_runs() const {
    EXPECT_SUCCESS(aclrtMemsetAsync(target_.data(), kBytes, 0x77, kBytes, stream_));
    EXPECT_SUCCESS(synchronize_within_limit(stream_));
    EXPECT_TRUE(copy_out(target_.data(), kBytes) == std::vector<uint8_t>(kBytes, 0x77));
  }

 private:
  static constexpr size_t kBytes = 64;

  void add_task(int number) {
    switch (number % 8) {
      case 0:
        EXPECT_SUCCESS(aclrtLaunchHostFunc(stream_, count_call, this));
        ++queued_calls_;
        return;
      case 1:
        EXPECT_SUCCESS(aclrtRecordEvent(recorded_.get(), stream_));
        return;
      case 2:
        EXPECT_SUCCESS(copy(ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE));
        return;
      case 3:
      case 4:
        EXPECT_SUCCESS(copy(ACL_MEMCPY_HOST_TO_DEVICE));
        return;
      default:
        EXPECT_SUCCESS(aclrtMemsetAsync(target_.data(), kBytes, 0x22, kBytes, stream_));
        return;
    }
  }
  aclError copy(aclrtMemcpyKind kind) const {
    return aclrtMemcpyAsync(target_.data(), kBytes, source_.data(), kBytes, kind, stream_);
  }
  static void count_call(void* self) { ++static_cast<FullQueue*>(self)->calls_; }

  const aclrtStream stream_;
  MallocedMemory word_{sizeof(uint64_t)};
  MallocedMemory target_{kBytes};
  HostBlock source_{kBytes};
  TestEvent never_{EventFamily::kClassic};
  TestEvent recorded_;
  int queued_calls_ = 0;
  std::atomic<int> calls_{0};
};

}  // namespace understudy_test
