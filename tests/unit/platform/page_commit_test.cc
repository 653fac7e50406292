// SPDX-License-Identifier: Apache-2.0
#include "platform/page_commit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "platform/address_window.h"
#include "platform/system_number.h"
#include "support/refused_calls.h"
#include "unit/expect_result.h"
#include "unit/other_process.h"
#include "unit/platform/mapped_bytes.h"
#include "unit/platform/planned_fault.h"

namespace understudy::platform {
namespace {

constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, which older headers lack

class PageCommit : public testing::Test {
 protected:
  static constexpr uint64_t kPages = 3;

  PageCommit()
      : file_(value_of(MemoryFile::create(FileKind::kShared, "unit-test", kPages * kHugePage))),
        window_(value_of(map_whole_file(file_, kHugePage))) {}
  ~PageCommit() override { vacate(window_); }

  const uint8_t* bytes() const { return static_cast<const uint8_t*>(to_pointer(window_.base)); }

  const MemoryFile file_;
  const VirtualRange window_;
};

TEST_F(PageCommit, MakesZeroedPagesForExactlyTheRange) {
  const VirtualRange range{window_.base + kHugePage, 2 * kHugePage};
  const Result<void> committed = commit_collapsed(range);
  if (!committed.ok()) GTEST_SKIP() << "not on this kernel: " << committed.error().text();
  EXPECT_EQ(bytes_behind(file_), 2 * kHugePage);
  EXPECT_TRUE(std::all_of(bytes() + kHugePage, bytes() + 3 * kHugePage,
                          [](uint8_t byte) { return byte == 0; }));
}

TEST_F(PageCommit, KeepsBytesThatAreThere) {
  auto* first = static_cast<uint8_t*>(to_pointer(window_.base));
  first[kHugePage - 1] = 0x42;
  const Result<void> committed = commit_collapsed({window_.base, kHugePage});
  if (!committed.ok()) GTEST_SKIP() << "not on this kernel: " << committed.error().text();
  EXPECT_EQ(first[kHugePage - 1], 0x42);
  EXPECT_EQ(first[0], 0);
}

// A kernel or a container that does not know how to populate pages.
TEST_F(PageCommit, PagesAreCommittedWithoutTheAdviceForIt) {
  for (const int refusal : {EINVAL, EPERM}) {
    SCOPED_TRACE(refusal);
    // Mapped by the child itself: these windows are not for children.
    OtherProcess child([&](const Line&) {
      ASSERT_TRUE(understudy_test::refuse_advice(kPopulateWrite, refusal));
      const MemoryFile file =
          value_of(MemoryFile::create(FileKind::kShared, "unit-test", kPages * kHugePage));
      const VirtualRange window = value_of(map_whole_file(file, kHugePage));
      auto* const first = static_cast<uint8_t*>(to_pointer(window.base));
      first[7] = 0x42;
      EXPECT_EQ(commit_pages({window.base, kHugePage}), 0);
      EXPECT_EQ(bytes_behind(file), kHugePage);
      EXPECT_EQ(first[7], 0x42);
      EXPECT_EQ(first[8], 0);
      const Result<void> collapsed = commit_collapsed({window.base + kHugePage, kHugePage});
      EXPECT_TRUE(collapsed.ok() || means_impossible(collapsed.error()));
      vacate(window);
      EXPECT_EQ(commit_pages(window), ENOMEM);
    });
    EXPECT_TRUE(child.ended_well());
  }
}

TEST_F(PageCommit, RangeStaysUsableWhenItFails) {
  // Private memory cannot be had for a range that nothing is mapped in.
  const VirtualRange nowhere = value_of(occupy_anywhere(kHugePage, kHugePage));
  vacate(nowhere);
  EXPECT_TRUE(fails_with(commit_collapsed(nowhere), ErrorCode::kOutOfMemory));

  const PlannedFault fault(SystemCall::kCommit, 1, EINVAL);
  const Result<void> refused = commit_collapsed(window_);
  ASSERT_TRUE(fails_with(refused, ErrorCode::kOutOfMemory));
  EXPECT_TRUE(means_impossible(refused.error()));
  EXPECT_EQ(bytes_behind(file_), 0u);
  EXPECT_EQ(bytes()[0], 0);
}

}  // namespace
}  // namespace understudy::platform
