// SPDX-License-Identifier: Apache-2.0
//
// aclrtMemcpyAsync and aclrtMemcpyAsyncWithCondition (ACOPY-17): copies that fail when they run,
// what their stream says, and what goes on behind them.
// Covers: ACOPY-06, ACOPY-07, ACOPY-08, ACOPY-09, COPY-13, GEN-09, POLICY-26.
#include <cstdint>
#include <vector>

#include "rules/async_objects.h"

namespace understudy_test {
namespace {

class AsyncCopyFailure : public AsyncCopyTest {};
INSTANTIATE_TEST_SUITE_P(, AsyncCopyFailure, each_async_copy(), name_of_async_copy);

// Without padding behind it.
constexpr size_t kSize = kNormalPage;

class KnownBlock {
 public:
  explicit KnownBlock(uint8_t seed) : bytes_(pattern(kSize, seed)) {
    copy_in(block_.data(), bytes_);
  }
  void* at(size_t offset) const { return block_.at(offset); }
  void expect_unchanged() const { EXPECT_TRUE(copy_out(block_.data(), kSize) == bytes_); }

 private:
  DeviceBlock block_{kSize, ACL_MEM_MALLOC_HUGE_FIRST, kMallocAlign32};
  std::vector<uint8_t> bytes_;
};

struct Escape {
  size_t offset, count;
};
constexpr Escape kEscapes[] = {{0, kSize + 1}, {kSize - 1, 2}, {64, kSize}};

// Queues a copy that fails: it leaves the block it starts in.
void queue_failure(const KnownBlock& block, const HostBlock& host, aclrtStream stream) {
  EXPECT_SUCCESS(
      aclrtMemcpyAsync(block.at(1), kSize, host.data(), kSize, ACL_MEMCPY_HOST_TO_DEVICE, stream));
}

TEST_P(AsyncCopyFailure, ACOPY_06_COPY_13_RangeThatLeavesItsAllocationFailsOnTheStream) {
  const KnownBlock block(21);
  const HostBlock locked(2 * kSize);
  const DeviceBlock other(2 * kSize);
  store(locked.data(), pattern(2 * kSize, 22));
  copy_in(other.data(), pattern(2 * kSize, 23));
  const TestStream stream;
  for (const Escape& escape : kEscapes) {
    SCOPED_TRACE(testing::Message() << escape.count << " bytes at offset " << escape.offset);
    void* const start = block.at(escape.offset);
    for (void* const far : {locked.data(), other.data()}) {
      EXPECT_SUCCESS(copy(start, far, escape.count, ACL_MEMCPY_DEFAULT, stream.get()));
      expect_task_failed(stream.get(), start);
      EXPECT_SUCCESS(copy(far, start, escape.count, ACL_MEMCPY_DEFAULT, stream.get()));
      expect_task_failed(stream.get(), start);
    }
    block.expect_unchanged();
    EXPECT_TRUE(holds(locked.data(), pattern(2 * kSize, 22)));
    EXPECT_TRUE(copy_out(other.data(), 2 * kSize) == pattern(2 * kSize, 23));
  }
}

TEST_P(AsyncCopyFailure, ACOPY_06_COPY_13_RangeThatRunsIntoAHoleFailsOnTheStream) {
  void* const range = reserve(2 * kGranule);
  const aclrtDrvMemHandle block = create_block(kGranule);
  ASSERT_SUCCESS(aclrtMapMem(range, kGranule, 0, block, 0));
  const HostBlock locked(2 * kPage);
  store(locked.data(), pattern(2 * kPage, 24));
  void* const last_page = at(range, kGranule - kPage);
  copy_in(last_page, pattern(kPage, 25));
  const TestStream stream;

  EXPECT_SUCCESS(copy(last_page, locked.data(), 2 * kPage, ACL_MEMCPY_DEFAULT, stream.get()));
  expect_task_failed(stream.get(), last_page);
  EXPECT_SUCCESS(copy(locked.data(), last_page, 2 * kPage, ACL_MEMCPY_DEFAULT, stream.get()));
  expect_task_failed(stream.get(), last_page);

  EXPECT_TRUE(copy_out(last_page, kPage) == pattern(kPage, 25));
  EXPECT_TRUE(holds(locked.data(), pattern(2 * kPage, 24)));
  EXPECT_SUCCESS(aclrtUnmapMem(range));
  EXPECT_SUCCESS(aclrtFreePhysical(block));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range));
}

TEST_P(AsyncCopyFailure, ACOPY_06_CopyMaySpanMappingsThatTouch) {
  void* const range = reserve(2 * kGranule);
  const aclrtDrvMemHandle blocks[] = {create_block(kGranule), create_block(kGranule)};
  ASSERT_SUCCESS(aclrtMapMem(range, kGranule, 0, blocks[0], 0));
  ASSERT_SUCCESS(aclrtMapMem(at(range, kGranule), kGranule, 0, blocks[1], 0));
  const HostBlock locked(2 * kPage);
  store(locked.data(), pattern(2 * kPage, 26));
  void* const border = at(range, kGranule - kPage);
  const TestStream stream;
  EXPECT_SUCCESS(copy(border, locked.data(), 2 * kPage, ACL_MEMCPY_DEFAULT, stream.get()));
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_TRUE(copy_out(border, 2 * kPage) == pattern(2 * kPage, 26));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_SUCCESS(aclrtUnmapMem(at(range, i * kGranule)));
    EXPECT_SUCCESS(aclrtFreePhysical(blocks[i]));
  }
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range));
}

TEST_P(AsyncCopyFailure, ACOPY_06_POLICY_26_ReadonlyTargetFailsOnTheStreamAndKeepsItsBytes) {
  const DeviceBlock readonly(kSize, ACL_MEM_ACCESS_USER_SPACE_READONLY);
  const std::vector<uint8_t> bytes = copy_out(readonly.data(), kSize);
  const HostBlock locked(kSize);
  store(locked.data(), pattern(kSize, 27));
  const TestStream stream;
  EXPECT_SUCCESS(copy(readonly.data(), locked.data(), kSize, ACL_MEMCPY_DEFAULT, stream.get()));
  expect_task_failed(stream.get(), readonly.data());
  EXPECT_TRUE(copy_out(readonly.data(), kSize) == bytes);

  EXPECT_SUCCESS(copy(locked.data(), readonly.data(), kSize, ACL_MEMCPY_DEFAULT, stream.get()));
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_TRUE(holds(locked.data(), bytes));
}

TEST_P(AsyncCopyFailure, ACOPY_06_GEN_09_RangeWhoseEndOverflowsFailsSomewhere) {
  const KnownBlock block(28);
  const KnownBlock other(29);
  const TestStream stream;
  for (const size_t count : {SIZE_MAX, SIZE_MAX / 2, size_t{0} - number(block.at(0))}) {
    SCOPED_TRACE(count);
    expect_fails_sooner_or_later(
        copy(block.at(0), other.at(0), count, ACL_MEMCPY_DEFAULT, stream.get()), stream.get());
  }
  block.expect_unchanged();
  other.expect_unchanged();
}

TEST_P(AsyncCopyFailure, ACOPY_09_GEN_09_FreedAndUnmappedMemoryFailsSomewhere) {
  const KnownBlock block(30);
  DeviceBlock ended(kSize);
  void* const freed = ended.data();
  ended.free();
  void* const reserved = reserve(kGranule);
  const TestStream stream;
  for (void* const stale : {freed, reserved}) {
    for (const aclrtMemcpyKind kind : {ACL_MEMCPY_DEVICE_TO_DEVICE, ACL_MEMCPY_DEFAULT}) {
      SCOPED_TRACE(kind);
      expect_fails_sooner_or_later(copy(block.at(0), stale, kSize, kind, stream.get()),
                                   stream.get());
      expect_fails_sooner_or_later(copy(stale, block.at(0), kSize, kind, stream.get()),
                                   stream.get());
    }
  }
  block.expect_unchanged();
  EXPECT_SUCCESS(aclrtReleaseMemAddress(reserved));
}

TEST_P(AsyncCopyFailure, ACOPY_08_TasksBehindAFailedCopyStillRun) {
  const KnownBlock block(31);
  const HostBlock locked(2 * kSize);
  store(locked.data(), pattern(2 * kSize, 32));
  const DeviceBlock after(kSize);
  const TestStream stream;
  queue_failure(block, locked, stream.get());
  EXPECT_SUCCESS(copy(after.data(), locked.data(), kSize, ACL_MEMCPY_HOST_TO_DEVICE, stream.get()));
  expect_task_failed(stream.get(), block.at(1));
  EXPECT_TRUE(copy_out(after.data(), kSize) == pattern(kSize, 32));
  block.expect_unchanged();
}

// ---- With a side the library does not know ----

TEST_P(AsyncCopyFailure, ACOPY_07_ErrorOfTheDrainedStreamIsReturnedAndNothingCopied) {
  const KnownBlock block(33);
  const HostBlock locked(2 * kSize);
  const KnownBlock target(34);
  std::vector<uint8_t> heap = pattern(kSize, 35);
  const TestStream stream;
  for (const bool to_device : {true, false}) {
    queue_failure(block, locked, stream.get());
    void* const to = to_device ? target.at(0) : heap.data();
    void* const from = to_device ? heap.data() : target.at(0);
    expect_refused(ACL_ERROR_RT_SYS_DMA, to, kSize, from, kSize, ACL_MEMCPY_DEFAULT, stream.get());
    target.expect_unchanged();
    EXPECT_TRUE(heap == pattern(kSize, 35));
    (void)finish(stream.get());
  }
  EXPECT_SUCCESS(copy(target.at(0), heap.data(), kSize, ACL_MEMCPY_HOST_TO_DEVICE, stream.get()));
  EXPECT_TRUE(copy_out(target.at(0), kSize) == heap);
}

// Which code it is, is nowhere said.
TEST_P(AsyncCopyFailure, ACOPY_07_COPY_13_RangeThatLeavesItsAllocationFailsAtOnce) {
  const KnownBlock block(36);
  std::vector<uint8_t> heap = pattern(2 * kSize, 37);
  const TestStream stream;
  for (const Escape& escape : kEscapes) {
    SCOPED_TRACE(testing::Message() << escape.count << " bytes at offset " << escape.offset);
    void* const start = block.at(escape.offset);
    EXPECT_NE(copy(start, heap.data(), escape.count, ACL_MEMCPY_DEFAULT, stream.get()),
              ACL_SUCCESS);
    EXPECT_NE(copy(heap.data(), start, escape.count, ACL_MEMCPY_DEFAULT, stream.get()),
              ACL_SUCCESS);
    block.expect_unchanged();
    EXPECT_TRUE(heap == pattern(2 * kSize, 37));
  }
  const DeviceBlock readonly(kSize, ACL_MEM_ACCESS_USER_SPACE_READONLY);
  const std::vector<uint8_t> bytes = copy_out(readonly.data(), kSize);
  EXPECT_NE(copy(readonly.data(), heap.data(), kSize, ACL_MEMCPY_DEFAULT, stream.get()),
            ACL_SUCCESS);
  EXPECT_TRUE(copy_out(readonly.data(), kSize) == bytes);
}

}  // namespace
}  // namespace understudy_test
