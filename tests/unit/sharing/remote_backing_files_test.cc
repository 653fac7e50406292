// SPDX-License-Identifier: Apache-2.0
//
// The files come from this very process: what is seen of a backing file does not depend on whose it
// is.
#include "sharing/remote_backing_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "sharing/exported_backing_files.h"
#include "unit/expect_result.h"
#include "unit/platform/mapped_bytes.h"
#include "unit/platform/planned_fault.h"
#include "unit/run_on_threads.h"
#include "unit/test_server.h"

namespace understudy {
namespace {

using platform::bytes_behind;
using platform::cpu_can_read;
using platform::PlannedFault;
using platform::SystemCall;

constexpr uint64_t kGranules = 8;
constexpr BackingFileName kName{ProcessTag(1, 1), 0};
constexpr BackingFileName kSecondFile{ProcessTag(1, 1), 5};
constexpr BackingFileName kOtherProcess{ProcessTag(1, 2), 0};

class RemoteBackingFilesTest : public testing::Test {
 protected:
  RemoteBackingFilesTest() {
    BackingFileOptions options;
    options.name = "unit-test";
    options.collapse = false;
    options.slots = &joined_->slots();
    store_ = value_of(BackingFile::create(options, kGranules * kGranule, budget_));
  }

  static platform::MemoryFile copy_of(const platform::MemoryFile& file) {
    return platform::MemoryFile::adopt(platform::UniqueFd(dup(file.descriptor())), file.kind(),
                                       file.size());
  }
  OpenedBackingFile files() const {
    return {ExportedBackingFiles::describe(*store_), copy_of(store_->file()),
            copy_of(store_->states_file())};
  }
  using Use = RemoteBackingFiles::Use;
  Use attach(const BackingFileName& name = kName) { return value_of(files_.attach(name, files())); }
  bool is_attached(const BackingFileName& name = kName) { return files_.use(name).valid(); }
  Extent show(const Use& use, uint64_t offset, uint64_t size) {
    return value_of(files_.show(use, offset, size));
  }
  static VirtualAddress address(const Extent& extent) {
    return extent.backing->alias(extent.offset);
  }
  uint8_t& byte_at(uint64_t offset) {
    return *static_cast<uint8_t*>(to_pointer(store_->alias(offset)));
  }

  std::unique_ptr<Server> joined_ =
      value_of(Server::make_private(TestServer::shape(), TestServer::numbers()));
  HostBudget budget_{HostBudget::Kind::kFixed, 64 * kMiB};
  std::unique_ptr<BackingFile> store_;
  HostBudget other_budget_{HostBudget::Kind::kFixed, 64 * kMiB};
  RemoteBackingFiles files_{*joined_, other_budget_};
};

TEST_F(RemoteBackingFilesTest, FilesAreOfAProcessAndStayAsLongAsTheyAreUsed) {
  EXPECT_FALSE(is_attached());
  {
    const Use first = attach();
    Use second = attach();  // the same one
    const Use other = attach(kSecondFile);
    EXPECT_TRUE(is_attached());
    EXPECT_TRUE(is_attached(kSecondFile));
    EXPECT_TRUE(files_.has_any(kName.owner));
    EXPECT_FALSE(is_attached(kOtherProcess));
    EXPECT_FALSE(files_.has_any(kOtherProcess.owner));
    EXPECT_FALSE(files_.use(kOtherProcess).valid());
    const Use third = std::move(second);
    EXPECT_TRUE(third.valid());
    EXPECT_EQ(address(show(first, 0, kGranule)), address(show(third, 0, kGranule)));
  }
  EXPECT_FALSE(is_attached());
  EXPECT_FALSE(files_.has_any(kName.owner));
}

TEST_F(RemoteBackingFilesTest, ShownPartIsSeenInWholeGranulesAndNothingElseIs) {
  ASSERT_TRUE(is_ok(store_->commit(0, kGranules * kGranule)));
  byte_at(3 * kGranule) = 0x33;
  const Use use = attach();
  const Extent extent = show(use, 2 * kGranule + 100, kGranule);
  EXPECT_EQ(extent.offset, 2 * kGranule);
  EXPECT_EQ(extent.size, 2 * kGranule);
  EXPECT_EQ(*static_cast<uint8_t*>(to_pointer(extent.backing->alias(3 * kGranule))), 0x33);
  EXPECT_FALSE(cpu_can_read(extent.backing->alias(kGranule)));
  EXPECT_FALSE(cpu_can_read(extent.backing->alias(4 * kGranule)));
}

TEST_F(RemoteBackingFilesTest, PartIsSeenUntilItIsHiddenAsOftenAsItWasShown) {
  ASSERT_TRUE(is_ok(store_->commit(0, kGranules * kGranule)));
  VirtualAddress seen = 0;
  {
    const Use use = attach();
    // Two small things in one granule, and one elsewhere.
    const Extent first = show(use, 100, 200);
    const Extent second = show(use, kNormalPage, 10);
    const Extent third = show(use, 4 * kGranule, kGranule);
    EXPECT_EQ(address(first), address(second));
    files_.hide(use, first);
    EXPECT_TRUE(cpu_can_read(address(second)));
    files_.hide(use, second);
    EXPECT_FALSE(cpu_can_read(address(second)));
    EXPECT_TRUE(cpu_can_read(address(third)));
    seen = address(third);
  }
  EXPECT_FALSE(cpu_can_read(seen));
}

TEST_F(RemoteBackingFilesTest, ExtentThatNoProcessHoldsGoesBackToTheSystem) {
  ASSERT_TRUE(is_ok(store_->commit(0, kGranules * kGranule)));
  const Use use = attach();
  const Extent extent = show(use, 0, 2 * kGranule);
  files_.discard(use, extent);
  files_.hide(use, extent);
  EXPECT_EQ(bytes_behind(store_->file()), (kGranules - 2) * kGranule);
}

TEST_F(RemoteBackingFilesTest, HiddenPartIsNoLongerPaidFor) {
  const Use use = attach();
  const Extent extent = show(use, 0, kGranule);
  ASSERT_TRUE(is_ok(extent.backing->commit(0, kGranule)));
  EXPECT_EQ(other_budget_.taken(), kGranule);
  files_.hide(use, extent);
  EXPECT_EQ(other_budget_.taken(), 0u);
  EXPECT_EQ(bytes_behind(store_->file()), kGranule);
}

TEST_F(RemoteBackingFilesTest, FaultsOfTheHostAreErrorsAndLeaveNothing) {
  {
    const PlannedFault fault(SystemCall::kMapFile, 1, ENOMEM);
    EXPECT_FALSE(files_.attach(kName, files()).ok());
  }
  EXPECT_FALSE(is_attached());
  const Use use = attach();
  {
    const PlannedFault fault(SystemCall::kMapFile, 1, ENOMEM);
    EXPECT_FALSE(files_.show(use, 0, kGranule).ok());
  }
  files_.hide(use, show(use, 0, kGranule));
}

TEST_F(RemoteBackingFilesTest, WhatNoProcessHoldsGoesBackToTheSystem) {
  ASSERT_TRUE(is_ok(store_->commit(0, kGranules * kGranule)));
  const Use use = attach();
  const uint16_t number = kName.number;
  // In any order, of any alignment, and one inside another; and of another file.
  const std::vector<ShareTable::HeldPart> held{{number, 6 * kGranule + 5, 10},
                                               {number, 2 * kGranule, kGranule},
                                               {number, 2 * kGranule + 7, 1},
                                               {kSecondFile.number, 0, kGranule},
                                               {number, 3 * kGranule - 1, 2}};
  files_.discard_unheld(kName.owner, held);
  for (const uint64_t granule : {0U, 1U, 4U, 5U, 7U}) {
    EXPECT_FALSE(store_->is_committed_at(granule * kGranule)) << granule;
  }
  for (const uint64_t granule : {2U, 3U, 6U}) {
    EXPECT_TRUE(store_->is_committed_at(granule * kGranule)) << granule;
  }
  EXPECT_EQ(bytes_behind(store_->file()), 3 * kGranule);
  files_.discard_unheld(kOtherProcess.owner, {});
  EXPECT_EQ(bytes_behind(store_->file()), 3 * kGranule);
  files_.discard_unheld(kName.owner, {});
  EXPECT_EQ(bytes_behind(store_->file()), 0u);
}

TEST_F(RemoteBackingFilesTest, WholeFileThatIsHeldIsKept) {
  ASSERT_TRUE(is_ok(store_->commit(0, kGranules * kGranule)));
  const Use use = attach();
  const ShareTable::HeldPart all{kName.number, 0, kGranules * kGranule};
  files_.discard_unheld(kName.owner, {&all, 1});
  EXPECT_EQ(bytes_behind(store_->file()), kGranules * kGranule);
}

TEST_F(RemoteBackingFilesTest, ThreadsMayShowAndHideAtTheSameTime) {
  ASSERT_TRUE(is_ok(store_->commit(0, kGranules * kGranule)));
  run_on_threads(4, [&](int thread) {
    for (int round = 0; round < 100; ++round) {
      const uint64_t offset = static_cast<uint64_t>((thread + round) % 2) * kGranule;
      Use use = files_.use(kName);
      if (!use.valid()) use = attach();
      const Extent extent = show(use, offset, kGranule);
      EXPECT_TRUE(cpu_can_read(address(extent)));
      files_.hide(use, extent);
    }
  });
  EXPECT_FALSE(is_attached());
  EXPECT_EQ(other_budget_.taken(), 0u);
}

}  // namespace
}  // namespace understudy
