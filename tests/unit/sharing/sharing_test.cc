// SPDX-License-Identifier: Apache-2.0
//
// Two processes: a child exports, this one imports.
#include "sharing/sharing.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <optional>

#include "unit/platform/planned_fault.h"
#include "unit/sharing/sharing_rig.h"

namespace understudy {
namespace {

using platform::PlannedFault;
using platform::SystemCall;

constexpr uint64_t kBlock = 2 * kGranule;
constexpr auto kNumber = ShareKind::kNumber;
constexpr auto kKey = ShareKind::kKey;

class SharingTest : public testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer ends a child that starts a thread if its parent had several";
#endif
  }
  // A process that exports a block full of sevens and says its token. rest(rig, handle, line)
  // follows when it is told.
  template <typename Rest>
  auto exporter(bool open_to_all, Rest rest) {
    return [this, open_to_all, rest](const Line& line) {
      SharingRig rig(server_);
      const BlockHandle handle = rig.create(kBlock);
      rig.fill(rig.map(handle, kBlock), kBlock, 7);
      line.say(value_of(rig.sharing.export_block(handle, kNumber, open_to_all)).word());
      line.hear_word();
      rest(rig, handle, line);
      line.say();
      line.hear();
      OtherProcess::end_child();
    };
  }
  auto open_exporter() {
    return exporter(true, [](SharingRig&, BlockHandle, const Line&) {});
  }
  // The same with an allocation behind a key.
  template <typename Rest>
  auto key_exporter(uint64_t allocated, uint64_t exported, Rest rest) {
    return [this, allocated, exported, rest](const Line& line) {
      SharingRig rig(server_);
      const VirtualAddress address = rig.allocate(allocated);
      rig.fill(address, allocated, 9);
      line.say(value_of(rig.sharing.export_allocation(address, exported, true)).word());
      line.hear_word();
      rest(rig, address, line);
      line.say();
      line.hear();
      OtherProcess::end_child();
    };
  }
  static void go_on(const OtherProcess& other) {
    other.say();
    other.hear_word();
  }
  static ShareToken token_of(const OtherProcess& other) { return ShareToken(other.hear_word()); }

  TestServer server_;
};

TEST_F(SharingTest, ImportedBlockIsTheExportersOwnMemoryAndCountsOnce) {
  OtherProcess other(open_exporter());
  const ShareToken token = token_of(other);
  SharingRig rig(server_);
  EXPECT_EQ(rig.used(), kBlock);
  const ImportedBlock found = value_of(rig.sharing.import_block({.name = {token, kNumber}}));
  EXPECT_EQ(found.device, 0u);
  const BlockHandle handle = found.handle;
  EXPECT_EQ(rig.used(), kBlock);
  const VirtualAddress address = rig.map(handle, kBlock);
  EXPECT_EQ(rig.content(address, kBlock), 7);
  ASSERT_TRUE(is_ok(rig.space.mapper().unmap(address)));
  ASSERT_TRUE(is_ok(rig.physical.free(handle)));
  EXPECT_EQ(rig.used(), kBlock);
  EXPECT_EQ(rig.pools.budget().taken(), 0u);
}

TEST_F(SharingTest, BlockIsImportedOnceAtATime) {
  OtherProcess other(open_exporter());
  const ShareToken token = token_of(other);
  SharingRig rig(server_);
  for (int round = 0; round < 3; ++round) {
    const BlockHandle handle =
        value_of(rig.sharing.import_block({.name = {token, kNumber}})).handle;
    EXPECT_TRUE(fails_with(rig.sharing.import_block({.name = {token, kNumber}}),
                           ErrorCode::kInvalidHandle));
    EXPECT_TRUE(
        fails_with(rig.sharing.export_block(handle, kNumber, true), ErrorCode::kInvalidParam));
    ASSERT_TRUE(is_ok(rig.physical.free(handle)));
  }
}

TEST_F(SharingTest, WrongTokensImportNothing) {
  OtherProcess other(open_exporter());
  const ShareToken token = token_of(other);
  SharingRig rig(server_);
  EXPECT_TRUE(fails_with(rig.sharing.import_block({.name = {token, ShareKind::kFabric}}),
                         ErrorCode::kInvalidParam));
  EXPECT_TRUE(fails_with(rig.sharing.import_allocation({.name = {token, kKey}, .device = 0}),
                         ErrorCode::kInvalidParam));
  for (const ShareToken wrong : {ShareToken(0), ShareToken(token.word() + (1 << 20)),
                                 ShareToken(token.word() + 1), ShareToken(UINT64_MAX)}) {
    EXPECT_TRUE(fails_with(rig.sharing.import_block({.name = {wrong, kNumber}}),
                           ErrorCode::kInvalidHandle));
  }
  const std::array<int32_t, 1> self{getpid()};
  EXPECT_TRUE(fails_with(rig.sharing.admit({token, kNumber}, self), ErrorCode::kNoPermission));
  EXPECT_TRUE(fails_with(rig.sharing.close_export({token, kNumber}), ErrorCode::kNoPermission));
}

TEST_F(SharingTest, OnlyProcessesThatAreNamedMayImport) {
  const int32_t importer = getpid();
  OtherProcess other(exporter(false, [importer](SharingRig& rig, BlockHandle handle,
                                                const Line& line) {
    const ShareToken token(line.hear_word());
    const std::array<int32_t, 2> nobody{0, 0};
    EXPECT_TRUE(fails_with(rig.sharing.admit({token, kNumber}, nobody), ErrorCode::kInvalidParam));
    const std::array<int32_t, 2> named{0, importer};
    EXPECT_TRUE(is_ok(rig.sharing.admit({token, kNumber}, named)));
    EXPECT_TRUE(
        fails_with(rig.sharing.import_block({.name = {token, kNumber}}), ErrorCode::kNoPermission));
    EXPECT_TRUE(
        fails_with(rig.sharing.export_block(handle, kNumber, true), ErrorCode::kInvalidParam));
  }));
  const ShareToken token = token_of(other);
  SharingRig rig(server_);
  EXPECT_TRUE(
      fails_with(rig.sharing.import_block({.name = {token, kNumber}}), ErrorCode::kNoPermission));
  other.say();
  other.say(token.word());
  other.hear_word();
  const BlockHandle handle = value_of(rig.sharing.import_block({.name = {token, kNumber}})).handle;
  EXPECT_TRUE(is_ok(rig.physical.free(handle)));
}

TEST_F(SharingTest, ExporterThatCannotBeReachedIsAnErrorAndNothingIsHeld) {
  const int32_t importer = getpid();
  OtherProcess other(exporter(false, [importer](SharingRig& rig, BlockHandle, const Line& line) {
    const std::array<int32_t, 1> named{importer};
    EXPECT_TRUE(is_ok(rig.sharing.admit({ShareToken(line.hear_word()), kNumber}, named)));
  }));
  const ShareToken token = token_of(other);
  other.say();
  other.say(token.word());
  other.hear_word();
  SharingRig rig(server_);
  {
    const PlannedFault fault(SystemCall::kConnect, 1, EACCES);
    EXPECT_TRUE(
        fails_with(rig.sharing.import_block({.name = {token, kNumber}}), ErrorCode::kConnection));
    EXPECT_TRUE(fault.happened());
  }
  EXPECT_EQ(rig.joined->slots().holds(), 0u);
  // One that ends the conversation is asked once more.
  for (const SystemCall call : {SystemCall::kSend, SystemCall::kReceive}) {
    const PlannedFault fault(call, 1, ECONNRESET);
    const BlockHandle handle =
        value_of(rig.sharing.import_block({.name = {token, kNumber}})).handle;
    EXPECT_TRUE(fault.happened());
    EXPECT_TRUE(is_ok(rig.physical.free(handle)));
    EXPECT_EQ(rig.joined->slots().holds(), 0u);
  }
}

TEST_F(SharingTest, ExporterIsAskedWhereItsFilesCannotBeOpened) {
  OtherProcess other(open_exporter());
  const ShareToken token = token_of(other);
  SharingRig rig(server_);
  for (const int n : {1, 2}) {
    const PlannedFault fault(SystemCall::kOpenFile, n, EACCES);
    const BlockHandle handle =
        value_of(rig.sharing.import_block({.name = {token, kNumber}})).handle;
    EXPECT_TRUE(fault.happened());
    EXPECT_TRUE(is_ok(rig.physical.free(handle)));
  }
}

TEST_F(SharingTest, MappingsThatFailLeaveNothing) {
  OtherProcess other(open_exporter());
  const ShareToken token = token_of(other);
  SharingRig rig(server_);
  for (int n = 1; n < 10; ++n) {
    const PlannedFault fault(SystemCall::kMapFile, n, ENOMEM);
    const Result<ImportedBlock> found = rig.sharing.import_block({.name = {token, kNumber}});
    if (found.ok()) {
      EXPECT_GT(n, 1);
      EXPECT_TRUE(is_ok(rig.physical.free(found.value().handle)));
      break;
    }
    EXPECT_EQ(rig.joined->slots().holds(), 0u) << n;
  }
  EXPECT_EQ(rig.joined->slots().holds(), 0u);
}

TEST_F(SharingTest, MemoryOfADeadExporterLivesWithItsImporter) {
  OtherProcess other(open_exporter());
  const ShareToken token = token_of(other);
  SharingRig rig(server_);
  const BlockHandle handle = value_of(rig.sharing.import_block({.name = {token, kNumber}})).handle;
  const VirtualAddress address = rig.map(handle, kBlock);
  other.kill();
  EXPECT_EQ(rig.content(address, kBlock), 7);
  EXPECT_EQ(rig.used(), kBlock);
  ASSERT_TRUE(is_ok(rig.space.mapper().unmap(address)));
  ASSERT_TRUE(is_ok(rig.physical.free(handle)));
  EXPECT_EQ(rig.used(), 0u);
  EXPECT_TRUE(
      fails_with(rig.sharing.import_block({.name = {token, kNumber}}), ErrorCode::kInvalidHandle));
}

TEST_F(SharingTest, ExporterThatFreedItGetsItBackFromItsImporter) {
  OtherProcess other(exporter(true, [](SharingRig& rig, BlockHandle handle, const Line& line) {
    EXPECT_TRUE(is_ok(rig.space.mapper().unmap(rig.reserved.front().base)));
    EXPECT_TRUE(is_ok(rig.physical.free(handle)));
    line.say();
    line.hear_word();
    EXPECT_EQ(rig.used(), 0u);
    rig.sharing.reclaim_returned();
    for (const Location location : {kDevice0, kDevice1}) rig.pools.of(location).trim();
    EXPECT_EQ(rig.pools.budget().taken(), 0u);
  }));
  const ShareToken token = token_of(other);
  SharingRig rig(server_);
  const BlockHandle handle = value_of(rig.sharing.import_block({.name = {token, kNumber}})).handle;
  const VirtualAddress address = rig.map(handle, kBlock);
  go_on(other);
  EXPECT_TRUE(
      fails_with(rig.sharing.import_block({.name = {token, kNumber}}), ErrorCode::kInvalidHandle));
  EXPECT_EQ(rig.content(address, kBlock), 7);
  EXPECT_EQ(rig.used(), kBlock);
  ASSERT_TRUE(is_ok(rig.space.mapper().unmap(address)));
  ASSERT_TRUE(is_ok(rig.physical.free(handle)));
  EXPECT_EQ(rig.used(), 0u);
  go_on(other);
  other.say();
  EXPECT_TRUE(other.ended_well());
}

TEST_F(SharingTest, AllocationsAreImportedAsOftenAsOneLikes) {
  for (const uint64_t size : {uint64_t{5000}, 5 * kMiB}) {
    OtherProcess other(key_exporter(size, size, [](SharingRig&, VirtualAddress, const Line&) {}));
    const ShareToken token = token_of(other);
    SharingRig rig(server_);
    const VirtualAddress first =
        value_of(rig.sharing.import_allocation({.name = {token, kKey}, .device = 0})).address;
    const VirtualAddress second =
        value_of(rig.sharing.import_allocation({.name = {token, kKey}, .device = 1})).address;
    EXPECT_NE(first, second);
    EXPECT_EQ(rig.content(first, size), 9);
    rig.fill(first, size, 3);
    EXPECT_EQ(rig.content(second, size), 3);
    EXPECT_TRUE(fails_with(rig.device_memory.free(first), ErrorCode::kInvalidParam));
    EXPECT_TRUE(is_ok(rig.device_memory.end_import(first)));
    EXPECT_EQ(rig.content(second, size), 3);
    EXPECT_TRUE(is_ok(rig.device_memory.end_import(second)));
    EXPECT_EQ(rig.joined->slots().holds(), 0u);
  }
}

TEST_F(SharingTest, ProcessMayImportItsOwnAllocation) {
  for (const uint64_t size : {uint64_t{5000}, 5 * kMiB}) {
    OtherProcess other(
        key_exporter(size, size, [size](SharingRig& rig, VirtualAddress address, const Line& line) {
          const ShareToken token(line.hear_word());
          EXPECT_EQ(value_of(rig.sharing.export_allocation(address, size, true)).word(),
                    token.word());
          EXPECT_TRUE(fails_with(rig.sharing.export_allocation(address, size - 1, true),
                                 ErrorCode::kInvalidParam));
          EXPECT_TRUE(fails_with(rig.sharing.export_allocation(address, size, false),
                                 ErrorCode::kInvalidParam));
          const VirtualAddress import =
              value_of(rig.sharing.import_allocation({.name = {token, kKey}, .device = 0})).address;
          EXPECT_EQ(rig.content(import, size), 9);
          EXPECT_TRUE(is_ok(rig.device_memory.free(address)));
          EXPECT_EQ(rig.content(import, size), 9);
          EXPECT_TRUE(is_ok(rig.device_memory.end_import(import)));
          EXPECT_EQ(rig.used() + rig.used(PageKind::kNormal), 0u);
          EXPECT_EQ(rig.joined->slots().holds(), 0u);
        }));
    const ShareToken token = token_of(other);
    other.say();
    other.say(token.word());
    other.hear_word();
    other.say();
    EXPECT_TRUE(other.ended_well());
  }
}

// Closed and exported again with more of it, while the importer still has the first part.
TEST_F(SharingTest, LargerExportOfTheSameAllocationIsImportedWhole) {
  constexpr uint64_t kWhole = 3 * kGranule;
  OtherProcess other(key_exporter(
      kWhole, kNormalPage, [](SharingRig& rig, VirtualAddress address, const Line& line) {
        EXPECT_TRUE(is_ok(rig.sharing.close_export({ShareToken(line.hear_word()), kKey})));
        line.say(value_of(rig.sharing.export_allocation(address, kWhole, true)).word());
      }));
  const ShareToken small = token_of(other);
  // In a child too: it would not survive to see too little.
  OtherProcess importer([&](const Line& line) {
    SharingRig rig(server_);
    const VirtualAddress first =
        value_of(rig.sharing.import_allocation({.name = {small, kKey}, .device = 0})).address;
    EXPECT_EQ(rig.content(first, kNormalPage), 9);
    line.say();
    const ShareToken large(line.hear_word());
    const VirtualAddress second =
        value_of(rig.sharing.import_allocation({.name = {large, kKey}, .device = 0})).address;
    EXPECT_EQ(rig.content(second, kWhole), 9);
    EXPECT_TRUE(is_ok(rig.device_memory.end_import(second)));
    EXPECT_EQ(rig.content(first, kNormalPage), 9);
    EXPECT_TRUE(is_ok(rig.device_memory.end_import(first)));
    OtherProcess::end_child();
  });
  importer.hear_word();
  other.say();
  other.say(small.word());
  importer.say(token_of(other).word());
  EXPECT_TRUE(importer.ended_well());
}

}  // namespace
}  // namespace understudy
