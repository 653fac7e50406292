// SPDX-License-Identifier: Apache-2.0
//
// Threads that live for a few calls: each copies to and from memory of its own and of others, frees
// it, and ends, a thousand in all and many at a time. Bytes stay right, also where memory of an
// ended thread comes to the next one, and nothing of the threads is left.
#include <atomic>
#include <cstdint>
#include <vector>

#include "rules/live_mapping.h"
#include "stress/stream_fleet.h"
#include "stress/threads.h"
#include "support/rule_test.h"

namespace understudy_test {
namespace {

constexpr int kThreads = 1000;
constexpr int kAtATime = 25;
constexpr size_t kSmall = 4096;

using ShortLivedThreads = DeviceTest;

// Memory that all threads read while each writes and frees its own.
class SharedMemory {
 public:
  SharedMemory() {
    EXPECT_SUCCESS(aclrtMalloc(&data_, kSmall, ACL_MEM_MALLOC_HUGE_FIRST));
    EXPECT_SUCCESS(aclrtMemset(data_, kSmall, kByte, kSmall));
  }
  ~SharedMemory() { EXPECT_SUCCESS(aclrtFree(data_)); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  void expect_unchanged() const { EXPECT_EQ(copy_out(data_, 64), std::vector<uint8_t>(64, kByte)); }

 private:
  static constexpr uint8_t kByte = 0x5A;
  void* data_ = nullptr;
};

void copy_and_free(uint8_t value, const SharedMemory& shared) {
  for (const size_t size : {kSmall, size_t{64} << 10}) {
    void* memory = nullptr;
    ASSERT_SUCCESS(aclrtMalloc(&memory, size, ACL_MEM_MALLOC_HUGE_FIRST));
    const std::vector<uint8_t> bytes(size, value);
    copy_in(memory, bytes);
    shared.expect_unchanged();
    EXPECT_TRUE(copy_out(memory, size) == bytes) << "of size " << size;
    EXPECT_SUCCESS(aclrtFree(memory));
  }
}

void map_and_unmap(uint8_t value) {
  void* const place = reserve(kGranule);
  const aclrtDrvMemHandle block = create_block(kGranule);
  ASSERT_SUCCESS(aclrtMapMem(place, kGranule, 0, block, 0));
  copy_in(place, std::vector<uint8_t>(kSmall, value));
  EXPECT_EQ(copy_out(place, kSmall), std::vector<uint8_t>(kSmall, value));
  EXPECT_SUCCESS(aclrtUnmapMem(place));
  EXPECT_SUCCESS(aclrtFreePhysical(block));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(place));
}

TEST_F(ShortLivedThreads, AThousandCopyAndFreeAndEnd) {
  const SharedMemory shared;
  const MemoryFigures before = memory_figures();
  for (int first = 0; first < kThreads && !HasFailure(); first += kAtATime) {
    run_on_threads(kAtATime, [&](int index) {
      const auto value = static_cast<uint8_t>(first + index);
      copy_and_free(value, shared);
      if (index % 5 == 0) map_and_unmap(value);
    });
  }
  EXPECT_EQ(memory_figures(), before);
}

// Threads end in the moment in which another one frees what they were copying from.
TEST_F(ShortLivedThreads, MemoryIsFreedWhileItsReadersEnd) {
  const SharedMemory shared;
  const MemoryFigures before = memory_figures();
  for (int round = 0; round < kThreads / kAtATime && !HasFailure(); ++round) {
    const auto value = static_cast<uint8_t>(round + 1);
    void* memory = nullptr;
    ASSERT_SUCCESS(aclrtMalloc(&memory, kSmall, ACL_MEM_MALLOC_HUGE_FIRST));
    ASSERT_SUCCESS(aclrtMemset(memory, kSmall, value, kSmall));
    std::atomic<int> readers{kAtATime - 1};
    run_on_threads(kAtATime, [&](int index) {
      if (index != 0) {
        EXPECT_EQ(copy_out(memory, 64), std::vector<uint8_t>(64, value));
        --readers;
        return;
      }
      EXPECT_TRUE(comes_true([&] { return readers == 0; }));
      EXPECT_SUCCESS(aclrtFree(memory));
      // Whoever gets its place next has it alone.
      copy_and_free(static_cast<uint8_t>(~value), shared);
    });
  }
  EXPECT_EQ(memory_figures(), before);
}

}  // namespace
}  // namespace understudy_test
