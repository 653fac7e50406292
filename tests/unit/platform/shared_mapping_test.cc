// SPDX-License-Identifier: Apache-2.0
#include "platform/shared_mapping.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/sizes.h"
#include "base/virtual_range.h"
#include "platform/memory_file.h"
#include "unit/expect_result.h"
#include "unit/other_process.h"
#include "unit/platform/mapped_bytes.h"
#include "unit/platform/planned_fault.h"
#include "unit/temporary_directory.h"

namespace understudy::platform {
namespace {

constexpr uint64_t kSize = 64 * kKiB;

class SharedMappingTest : public testing::Test {
 protected:
  UniqueFd open_file() const {
    return UniqueFd(open(directory_.at("file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  }
  static uint64_t bytes_behind_file(int file) {
    struct stat status = {};
    EXPECT_EQ(fstat(file, &status), 0);
    return static_cast<uint64_t>(status.st_blocks) * 512;
  }
  // In a child, whose file size limit ends with it.
  template <typename Body>
  static testing::AssertionResult with_file_size_limit(uint64_t limit, Body body) {
    OtherProcess child([&](const Line&) {
      const rlimit limits{limit, limit};
      ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limits), 0);
      body();
    });
    return child.ended_well();
  }

  TemporaryDirectory directory_;
};

TEST_F(SharedMappingTest, ProcessesSeeEachOthersBytes) {
  const UniqueFd file = open_file();
  ASSERT_TRUE(is_ok(resize_file(file.get(), kSize)));
  const SharedMapping own = value_of(SharedMapping::of_file(file.get(), kSize));
  EXPECT_EQ(own.size(), kSize);
  own.data()[7] = 'a';
  OtherProcess child([&](const Line&) {
    const UniqueFd theirs = open_file();
    const SharedMapping mapping = value_of(SharedMapping::of_file(theirs.get(), kSize));
    EXPECT_EQ(mapping.data()[7], 'a');
    mapping.data()[8] = 'b';
  });
  EXPECT_TRUE(child.ended_well());
  EXPECT_EQ(own.data()[8], 'b');
}

TEST_F(SharedMappingTest, ForkChildrenDoNotHaveIt) {
  const SharedMapping own = value_of(SharedMapping::without_file(kSize));
  EXPECT_TRUE(cpu_can_read(to_address(own.data())));
  OtherProcess child([&](const Line&) { EXPECT_FALSE(cpu_can_read(to_address(own.data()))); });
  EXPECT_TRUE(child.ended_well());
}

TEST_F(SharedMappingTest, WithoutAFileItIsZero) {
  const SharedMapping own = value_of(SharedMapping::without_file(kSize));
  for (uint64_t at = 0; at < kSize; ++at) ASSERT_EQ(own.data()[at], 0) << at;
}

TEST_F(SharedMappingTest, MovesWithItsMemoryAndGoesWithItsOwner) {
  SharedMapping first = value_of(SharedMapping::without_file(kSize));
  char* const data = first.data();
  data[0] = 'x';
  {
    SharedMapping second(std::move(first));
    EXPECT_EQ(second.data(), data);
    SharedMapping third;
    EXPECT_EQ(third.data(), nullptr);
    third = std::move(second);
    EXPECT_EQ(third.data(), data);
    EXPECT_EQ(third.size(), kSize);
    EXPECT_EQ(data[0], 'x');
  }
  EXPECT_FALSE(cpu_can_read(to_address(data)));
}

TEST_F(SharedMappingTest, HostThatDoesNotMapIsAnError) {
  const UniqueFd file = open_file();
  {
    const PlannedFault fault(SystemCall::kMapFile, 1, ENOMEM);
    const Result<SharedMapping> failed = SharedMapping::of_file(file.get(), kSize);
    ASSERT_TRUE(fails_with(failed, ErrorCode::kOutOfResources));
    EXPECT_EQ(failed.error().system_number(), ENOMEM);
  }
  EXPECT_TRUE(fails_with(SharedMapping::of_file(-1, kSize), ErrorCode::kOutOfResources));
  EXPECT_TRUE(fails_with(SharedMapping::without_file(UINT64_MAX / 2), ErrorCode::kOutOfResources));
}

TEST_F(SharedMappingTest, SizeOfAFileCostsNothingUntilItIsBacked) {
  const UniqueFd file = open_file();
  EXPECT_EQ(file_size(file.get()), 0u);
  ASSERT_TRUE(is_ok(resize_file(file.get(), kGiB)));
  EXPECT_EQ(file_size(file.get()), kGiB);
  EXPECT_EQ(bytes_behind_file(file.get()), 0u);
  ASSERT_TRUE(is_ok(back_file(file.get(), kSize, kSize)));
  EXPECT_EQ(file_size(file.get()), kGiB);
  EXPECT_EQ(bytes_behind_file(file.get()), kSize);
  ASSERT_TRUE(is_ok(resize_file(file.get(), 0)));
  EXPECT_EQ(bytes_behind_file(file.get()), 0u);
  EXPECT_EQ(file_size(-1), 0u);
}

TEST_F(SharedMappingTest, BackingPastTheEndMakesTheFileLonger) {
  const UniqueFd file = open_file();
  const SharedMapping mapping = value_of(SharedMapping::of_file(file.get(), kSize));
  ASSERT_TRUE(is_ok(back_file(file.get(), kNormalPage, kNormalPage)));
  EXPECT_EQ(file_size(file.get()), 2 * kNormalPage);
  mapping.data()[kNormalPage] = 'x';
  // What was there is kept by a second time.
  ASSERT_TRUE(is_ok(back_file(file.get(), 0, 4 * kNormalPage)));
  EXPECT_EQ(mapping.data()[kNormalPage], 'x');
}

TEST_F(SharedMappingTest, HostWithoutRoomIsAnError) {
  const UniqueFd file = open_file();
  {
    const PlannedFault fault(SystemCall::kResizeFile, 1, ENOSPC);
    EXPECT_TRUE(fails_with(resize_file(file.get(), kSize), ErrorCode::kOutOfResources));
  }
  {
    const PlannedFault fault(SystemCall::kCommit, 1, ENOSPC);
    const Result<void> failed = back_file(file.get(), 0, kSize);
    ASSERT_TRUE(fails_with(failed, ErrorCode::kOutOfResources));
    EXPECT_EQ(failed.error().system_number(), ENOSPC);
  }
  EXPECT_EQ(file_size(file.get()), 0u);
  EXPECT_FALSE(resize_file(-1, kSize).ok());
  EXPECT_FALSE(back_file(-1, 0, kSize).ok());
}

TEST_F(SharedMappingTest, SizePastTheLimitOfTheProcessIsAnErrorAndNoSignal) {
  const UniqueFd file = open_file();
  EXPECT_TRUE(with_file_size_limit(kSize, [&] {
    const Result<void> failed = resize_file(file.get(), kSize + 1);
    EXPECT_TRUE(fails_with(failed, ErrorCode::kOutOfResources));
    EXPECT_EQ(failed.error().system_number(), EFBIG);
    EXPECT_TRUE(is_ok(resize_file(file.get(), kSize)));
  }));
}

TEST_F(SharedMappingTest, BackingPastTheLimitOfTheProcessIsAnErrorAndNoSignal) {
  const UniqueFd file = open_file();
  EXPECT_TRUE(with_file_size_limit(kSize, [&] {
    EXPECT_TRUE(is_ok(back_file(file.get(), 0, kSize)));
    EXPECT_TRUE(fails_with(back_file(file.get(), kSize, kSize), ErrorCode::kOutOfResources));
  }));
}

}  // namespace
}  // namespace understudy::platform
