// SPDX-License-Identifier: Apache-2.0
#include "sharing/exported_backing_files.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "unit/expect_result.h"
#include "unit/run_on_threads.h"
#include "unit/test_server.h"

namespace understudy {
namespace {

class ExportedBackingFilesTest : public testing::Test {
 protected:
  BackingFile& make(Poison poison = Poison::kOff) {
    BackingFileOptions options;
    options.name = "unit-test";
    options.poison = poison;
    options.slots = &joined_->slots();
    made_.push_back(value_of(BackingFile::create(options, 2 * kGranule, budget_)));
    return *made_.back();
  }

  HostBudget budget_{HostBudget::Kind::kFixed, kMiB};
  std::optional<BackingFileRecord> published(unsigned number) const {
    const ProcessSlots& slots = joined_->slots();
    return slots.backing_file(slots.own_tag(), number);
  }

  std::unique_ptr<Server> joined_ =
      value_of(Server::make_private(TestServer::shape(), TestServer::numbers()));
  std::vector<std::unique_ptr<BackingFile>> made_;
  ExportedBackingFiles files_{*joined_};
};

TEST_F(ExportedBackingFilesTest, StoreKeepsItsNumber) {
  BackingFile& first = make();
  BackingFile& second = make();
  EXPECT_EQ(files_.number_of(first), 0u);
  EXPECT_EQ(files_.number_of(second), 1u);
  EXPECT_EQ(files_.number_of(first), 0u);
  EXPECT_EQ(files_.at(0), &first);
  EXPECT_EQ(files_.at(1), &second);
  EXPECT_EQ(files_.at(2), nullptr);
  EXPECT_EQ(files_.at(UINT16_MAX), nullptr);
}

TEST_F(ExportedBackingFilesTest, IsPublishedWhenItGetsItsNumber) {
  BackingFile& backing = make(Poison::kOn);
  EXPECT_FALSE(published(0));
  files_.number_of(backing);
  ASSERT_TRUE(published(0));
  EXPECT_FALSE(published(1));
  const BackingFileRecord record = *published(0);
  EXPECT_EQ(record.size, backing.size());
  EXPECT_EQ(record.descriptor, backing.file().descriptor());
  EXPECT_EQ(record.states_descriptor, backing.states_file().descriptor());
  EXPECT_EQ((platform::FileIdentity{record.file_system, record.inode}), backing.file().identity());
  EXPECT_EQ((platform::FileIdentity{record.states_file_system, record.states_inode}),
            backing.states_file().identity());
  EXPECT_EQ(record.file_kind, static_cast<uint8_t>(backing.kind()));
  EXPECT_EQ(record.fresh_byte, BackingFile::kPoisonByte);
}

TEST_F(ExportedBackingFilesTest, StoresPastTheRoomOfTheSlotAreKnownHere) {
  constexpr unsigned kMany = ProcessSlot::kBackingFiles + 3;
  for (unsigned i = 0; i < kMany; ++i) EXPECT_EQ(files_.number_of(make()), i);
  EXPECT_TRUE(published(ProcessSlot::kBackingFiles - 1));
  EXPECT_FALSE(published(ProcessSlot::kBackingFiles));
  for (unsigned i = 0; i < kMany; ++i) {
    EXPECT_EQ(files_.at(static_cast<uint16_t>(i)), made_[i].get());
  }
}

TEST_F(ExportedBackingFilesTest, ThreadsAgreeOnNumbers) {
  for (int i = 0; i < 8; ++i) make();
  run_on_threads(4, [&](int thread) {
    for (size_t i = 0; i < made_.size(); ++i) {
      BackingFile& backing = *made_[(i + static_cast<size_t>(thread)) % made_.size()];
      EXPECT_EQ(files_.at(files_.number_of(backing)), &backing);
    }
  });
  EXPECT_TRUE(published(7));
  EXPECT_FALSE(published(8));
}

}  // namespace
}  // namespace understudy
