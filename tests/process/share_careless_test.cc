// SPDX-License-Identifier: Apache-2.0
//
// Programs that queue very much, or close descriptors that they do not own.
// Covers: INFO-09, XPROC-02.
#include <unistd.h>

#include <optional>

#include "process/sharing_objects.h"
#include "rules/stream_objects.h"
#include "rules/xproc_objects.h"

namespace understudy_test::share {
namespace {

US_PEER(ShareEventDepthSide) { xproc::serve_event(channel); }

using ShareEventDepth = VirtualMemoryTest;

TEST_F(ShareEventDepth, XPROC_02_AWaitEndsWithItsRecordHoweverManyAreQueuedBehindIt) {
  xproc::EventSide waiter(ShareEventDepthSide);
  const TestEvent event(EventFamily::kEx, ACL_EVENT_IPC);
  aclrtIpcEventHandle handle{};
  ASSERT_SUCCESS(aclrtIpcGetEventHandle(event.get(), &handle));
  ASSERT_EQ(waiter.open(handle), ACL_SUCCESS);
  const TestStream stream;
  std::optional<Gate> before(std::in_place, stream.get());
  ASSERT_SUCCESS(aclrtRecordEvent(event.get(), stream.get()));
  waiter.wait();
  std::optional<Gate> behind(std::in_place, stream.get());
  for (int i = 0; i < 32; ++i) {
    EXPECT_SUCCESS(aclrtRecordEvent(event.get(), stream.get()));
  }
  before.reset();
  behind->wait_until_reached();
  // The record it waits for was reached; the ones behind it were not.
  EXPECT_EQ(waiter.drain(), ACL_SUCCESS);
  behind.reset();
}

constexpr size_t kMuch = 256 * kMiB;

void* allocate_much() {
  void* start = nullptr;
  EXPECT_SUCCESS(aclrtMalloc(&start, kMuch, ACL_MEM_MALLOC_HUGE_ONLY));
  return start;
}
void free_much(void* start) { EXPECT_SUCCESS(aclrtFree(start)); }
void close_unknown_descriptors() { close_range(4, ~0U, 0); }

// Its memory stays charged to it, and is free when it gives it back.
TEST(ShareCareless, INFO_09_OneThatClosesItsDescriptorsHasItsMemoryAndNoOneElses) {
  US_FRESH_PROCESS({"UNDERSTUDY_MEMORY", "1G"});
  Remote careless;  // has the first slot
  const size_t all = careless.call(huge_bytes_free);
  void* const its = careless.call(allocate_much);
  const size_t rest = careless.call(huge_bytes_free);
  EXPECT_LE(rest, all - kMuch);
  careless.call(close_unknown_descriptors);
  Remote innocent;  // joins, and so looks which processes live
  EXPECT_EQ(innocent.call(huge_bytes_free), rest);
  void* const own = innocent.call(allocate_much);
  const size_t after = innocent.call(huge_bytes_free);
  EXPECT_LE(after, rest - kMuch);
  careless.call(free_much, its);
  EXPECT_EQ(innocent.call(huge_bytes_free), after + (all - rest));
  innocent.call(free_much, own);
  EXPECT_EQ(careless.call(huge_bytes_free), all);
}

}  // namespace
}  // namespace understudy_test::share
