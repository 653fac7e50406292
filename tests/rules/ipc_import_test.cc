// SPDX-License-Identifier: Apache-2.0
//
// Memory keys on the side of the importer: which keys open, that both sides see one memory, and
// that nothing but that memory comes within reach.
// Covers: IPC-11, IPC-12, IPC-13, IPC-14, IPC-15, IPC-16, IPC-17.
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "rules/ipc_objects.h"

namespace understudy_test::ipc {
namespace {

US_PEER(IpcImportOther) { serve_ipc(channel); }

using IpcImport = IpcTest;

class IpcImportOfSize : public IpcTest, public testing::WithParamInterface<size_t> {};
INSTANTIATE_TEST_SUITE_P(, IpcImportOfSize, testing::ValuesIn(kSharedSizes),
                         [](const testing::TestParamInfo<size_t>& parameter) {
                           return "of_" + std::to_string(parameter.param) + "_bytes";
                         });

// What the block takes from the device, at most: its padded size in pages.
size_t pages_of(size_t size) {
  const size_t padded = padded_size(kMalloc, size);
  return rounded_up(padded, size >= kMiB ? kHugePage : kNormalPage);
}

void expect_import_refused(aclError code, const char* key, uint64_t flags) {
  const MemoryFigures before = memory_figures();
  void* data = untouched_address();
  EXPECT_FAILS(code, aclrtIpcMemImportByKey(&data, key, flags));
  EXPECT_EQ(data, untouched_address());
  EXPECT_EQ(memory_figures(), before);
}

TEST_F(IpcImport, IPC_11_NullIsRefusedFirst) {
  const ExportedBlock block(kMiB);
  const auto refuse = [&] {
    void* data = untouched_address();
    for (const uint64_t flags : {kPlainImport, kPeerImport, uint64_t{99}}) {
      EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
                   aclrtIpcMemImportByKey(nullptr, block.key().get(), flags));
      EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtIpcMemImportByKey(&data, nullptr, flags));
      EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtIpcMemImportByKey(nullptr, nullptr, flags));
    }
    EXPECT_EQ(data, untouched_address());
  };
  refuse();
  on_bare_thread(refuse);
}

TEST_F(IpcImport, IPC_11_UnknownFlagsAreRefusedAndImportNothing) {
  Other other(IpcImportOther);
  const ExportedBlock block(kMiB);
  for (const uint64_t flags : {uint64_t{2}, uint64_t{3}, uint64_t{1} << 32, UINT64_MAX}) {
    SCOPED_TRACE(flags);
    expect_import_refused(ACL_ERROR_RT_PARAM_INVALID, block.key().get(), flags);
    EXPECT_EQ(other.import(block.key(), flags).code, ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_NE(other.close(block.key()), ACL_SUCCESS);
  }
}

TEST_F(IpcImport, IPC_12_UnknownKeysAreRefused) {
  Other other(IpcImportOther);
  const ExportedBlock block(kMiB);
  const std::string name = block.key().name();
  std::vector<std::string> unknown = {"",
                                      "nobody",
                                      "../../../etc/passwd",
                                      "/dev/zero",
                                      "%s%n%s%n",
                                      std::string(64, 'k'),
                                      std::string(65, '0'),
                                      std::string(5000, 'f'),
                                      name + "x",
                                      name + name,
                                      "x" + name,
                                      name.substr(0, name.size() - 1),
                                      name.substr(1)};
  for (size_t i = 0; i < name.size(); ++i) {
    unknown.push_back(name);
    unknown.back()[i] = unknown.back()[i] == '1' ? '2' : '1';
  }
  for (const std::string& key : unknown) {
    SCOPED_TRACE(key);
    void* data = untouched_address();
    (void)recent_error();
    EXPECT_NE(noted("aclrtIpcMemImportByKey", aclrtIpcMemImportByKey(&data, key.c_str(), 0)),
              ACL_SUCCESS);
    EXPECT_EQ(data, untouched_address());
    if (key.size() >= kKeySize) continue;
    Key sent;
    key.copy(sent.text.data(), key.size());
    EXPECT_NE(other.import(sent).code, ACL_SUCCESS);
  }
  EXPECT_EQ(other.import(block.key()).code, ACL_SUCCESS);
  EXPECT_EQ(other.close(block.key()), ACL_SUCCESS);
}

TEST_F(IpcImport, IPC_12_TheKeyOfAnEndedProcessIsUnknown) {
  for (const bool by_signal : {false, true}) {
    SCOPED_TRACE(by_signal);
    Other exporter(IpcImportOther);
    const Key key = exporter.export_block(exporter.allocate(kMiB), kMiB);
    Import(key).close();
    if (by_signal) {
      exporter.peer().kill();
    } else {
      exporter.peer().finish();
    }
    void* data = untouched_address();
    (void)recent_error();
    EXPECT_NE(noted("aclrtIpcMemImportByKey", aclrtIpcMemImportByKey(&data, key.get(), 0)),
              ACL_SUCCESS);
    EXPECT_EQ(data, untouched_address());
  }
}

TEST_F(IpcImport, IPC_13_ARefusedProcessMayComeAgainOnceItIsListed) {
  Other other(IpcImportOther);
  const ExportedBlock block(kMiB, kForListed);
  block.fill(1);
  EXPECT_EQ(other.import(block.key()).code, ACL_ERROR_RT_NO_PERMISSION);
  EXPECT_EQ(allow(block.key(), {own_id()}), ACL_SUCCESS);
  EXPECT_EQ(other.import(block.key()).code, ACL_ERROR_RT_NO_PERMISSION) << "somebody else is";
  EXPECT_EQ(allow(block.key(), {other.id()}), ACL_SUCCESS);
  EXPECT_TRUE(other.has(other.attach(block.key()), block.size(), 1));
  EXPECT_EQ(other.close(block.key()), ACL_SUCCESS);
}

TEST_P(IpcImportOfSize, IPC_14_EachSideReadsWhatTheOtherWrites) {
  Other other(IpcImportOther);
  const size_t size = GetParam();
  const ExportedBlock block(size);
  block.fill(1);
  void* const there = other.attach(block.key());
  EXPECT_TRUE(other.is_device_memory(there));
  EXPECT_TRUE(other.is_device_memory(at(there, size - 1)));
  EXPECT_TRUE(other.has(there, size, 1));
  other.fill(there, size, 2);
  EXPECT_TRUE(block.has(2));
  block.fill(3);
  EXPECT_TRUE(other.has(there, size, 3));
  EXPECT_EQ(other.close(block.key()), ACL_SUCCESS);
  EXPECT_TRUE(block.has(3));
}

// Pages that nobody has touched before the import are one memory too.
TEST_P(IpcImportOfSize, IPC_14_MemoryThatWasNeverTouchedIsSharedToo) {
  Other other(IpcImportOther);
  const size_t size = GetParam();
  const ExportedBlock first_here(size);
  const ExportedBlock first_there(size);
  void* const reads = other.attach(first_here.key());
  void* const writes = other.attach(first_there.key());
  first_here.fill(4);
  EXPECT_TRUE(other.has(reads, size, 4));
  other.fill(writes, size, 5);
  EXPECT_TRUE(first_there.has(5));
  EXPECT_TRUE(first_here.has(4));
  EXPECT_EQ(other.close(first_here.key()), ACL_SUCCESS);
  EXPECT_EQ(other.close(first_there.key()), ACL_SUCCESS);
}

TEST_F(IpcImport, IPC_14_EveryPolicyCanBeShared) {
  Other other(IpcImportOther);
  for (const aclrtMemMallocPolicy policy :
       {ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEM_MALLOC_HUGE_ONLY, ACL_MEM_MALLOC_NORMAL_ONLY,
        ACL_MEM_MALLOC_HUGE_FIRST_P2P, ACL_MEM_MALLOC_HUGE_ONLY_P2P,
        ACL_MEM_MALLOC_NORMAL_ONLY_P2P}) {
    SCOPED_TRACE(policy);
    const ExportedBlock block(3 * kMiB, kForAll, policy);
    block.fill(6);
    void* const there = other.attach(block.key());
    EXPECT_TRUE(other.has(there, block.size(), 6));
    other.fill(there, block.size(), 7);
    EXPECT_TRUE(block.has(7));
    EXPECT_EQ(other.close(block.key()), ACL_SUCCESS);
  }
}

TEST_F(IpcImport, IPC_14_SharedMemoryIsChargedOnce) {
  std::deque<Other> others;
  for (int i = 0; i < 3; ++i) others.emplace_back(IpcImportOther);
  const size_t before = free_bytes();
  const ExportedBlock block(20 * kMiB);
  const size_t held = before - pages_of(20 * kMiB);
  EXPECT_EQ(free_bytes(), held);
  for (Other& other : others) {
    other.fill(other.attach(block.key()), block.size(), 8);
    EXPECT_EQ(free_bytes(), held);
    EXPECT_EQ(other.free_bytes(), held);
  }
  for (Other& other : others) EXPECT_EQ(other.close(block.key()), ACL_SUCCESS);
  EXPECT_EQ(free_bytes(), held);
}

TEST_F(IpcImport, IPC_14_ImportsAndOwnMemoryOfAProcessLieApart) {
  Other other(IpcImportOther);
  const ExportedBlock block(2 * kMiB);
  block.fill(9);
  void* const own_before = other.allocate(2 * kMiB);
  void* const there = other.attach(block.key());
  void* const own_after = other.allocate(2 * kMiB);
  other.fill(own_before, 2 * kMiB, 10);
  other.fill(own_after, 2 * kMiB, 11);
  EXPECT_TRUE(block.has(9));
  other.fill(there, 2 * kMiB, 12);
  EXPECT_TRUE(other.has(own_before, 2 * kMiB, 10));
  EXPECT_TRUE(other.has(own_after, 2 * kMiB, 11));
  EXPECT_EQ(other.close(block.key()), ACL_SUCCESS);
}

// The host keeps out of imported device memory as it keeps out of its own.
TEST_F(IpcImport, IPC_14_TheProcessorCannotFollowAnImportedAddress) {
  const ExportedBlock block(2 * kMiB);
  block.fill(1);
  const Import imported(block.key());
  EXPECT_FALSE(cpu_can_read(imported.data()));
  EXPECT_FALSE(cpu_can_write(imported.data()));
  EXPECT_TRUE(copy_out(imported.data(), block.size()) == pattern(block.size(), 1));
}

TEST_P(IpcImportOfSize, IPC_14_WhatLiesAroundAnImportIsOutOfReach) {
  Other other(IpcImportOther);
  const size_t size = GetParam();
  std::deque<DeviceBlock> row;
  for (int i = 0; i < (size > kMiB ? 3 : 9); ++i) {
    row.emplace_back(size);
    copy_in(row.back().data(), pattern(size, 20));
  }
  const DeviceBlock& middle = row[row.size() / 2];
  const Key key = export_key(middle.data(), size);
  // Device addresses without memory before it: plain host addresses are trusted.
  void* const before = other.allocate(128 * kMiB);
  void* const there = other.attach(key);
  ASSERT_GT(there, before);
  EXPECT_EQ(other.free(before), ACL_SUCCESS);
  const auto expect_out_of_reach = [&](int64_t offset) {
    EXPECT_FALSE(other.is_in_reach(address(number(there) + static_cast<uint64_t>(offset))))
        << "offset " << offset;
  };
  const auto end = static_cast<int64_t>(pages_of(size));
  for (const int64_t past : {0, 64, 4096, 8192, 65536, 1 << 20, 2 << 20}) {
    expect_out_of_reach(end + past);
    expect_out_of_reach(-16 - past);
  }
  expect_out_of_reach(-8);
  expect_out_of_reach(end - 8);
  // Where the neighbours would be, had the importer got more than its part.
  for (const DeviceBlock& block : row) {
    if (&block == &middle) continue;
    expect_out_of_reach(static_cast<int64_t>(number(block.data()) - number(middle.data())));
  }
  for (const DeviceBlock& block : row) {
    EXPECT_TRUE(copy_out(block.data(), size) == pattern(size, 20)) << block.data();
  }
  EXPECT_TRUE(other.has(there, size, 20));
  EXPECT_EQ(other.close(key), ACL_SUCCESS);
  EXPECT_SUCCESS(aclrtIpcMemClose(key.get()));
}

// Small blocks come from the same granule. Each key leads to its own.
TEST_F(IpcImport, IPC_14_NeighboursInAGranuleAreSharedEachForItself) {
  Other other(IpcImportOther);
  std::deque<ExportedBlock> blocks;
  std::vector<void*> there;
  uint8_t seed = 0;
  for (const size_t size : {512u, 4096u, 512u, 100u, 64u * 1024, 512u, 8000u, 1u}) {
    blocks.emplace_back(size);
    blocks.back().fill(++seed);
  }
  for (const ExportedBlock& block : blocks) there.push_back(other.attach(block.key()));
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_TRUE(other.has(there[i], blocks[i].size(), static_cast<uint8_t>(i + 1))) << i;
  }
  other.fill(there[2], blocks[2].size(), 99);
  EXPECT_EQ(other.close(blocks[5].key()), ACL_SUCCESS);
  EXPECT_FALSE(other.is_in_reach(there[5]));
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_TRUE(blocks[i].has(static_cast<uint8_t>(i == 2 ? 99 : i + 1))) << i;
    if (i == 5) continue;
    EXPECT_EQ(other.close(blocks[i].key()), ACL_SUCCESS) << i;
  }
}

TEST_F(IpcImport, IPC_15_IPC_17_ImportMayEnablePeerAccess) {
  constexpr size_t kSize = 3 * kMiB;
  for (const uint64_t flags : {kPlainImport, kPeerImport}) {
    SCOPED_TRACE(flags);
    Other other(IpcImportOther, 1);
    const ExportedBlock block(kSize);
    block.fill(30);
    EXPECT_EQ(other.ask({.order = Order::kPeerStatus}).number, 0);
    void* const there = other.attach(block.key(), flags);
    EXPECT_EQ(other.ask({.order = Order::kPeerStatus}).number, flags == kPeerImport ? 1 : 0);
    if (flags == kPlainImport) {
      EXPECT_EQ(other.ask({.order = Order::kEnablePeer, .number = 0}).code, ACL_SUCCESS);
    }
    const Answer fetched =
        other.ask({.order = Order::kFetch, .data = there, .size = kSize, .number = 30});
    EXPECT_EQ(fetched.code, ACL_SUCCESS);
    EXPECT_TRUE(fetched.yes);
    EXPECT_EQ(other.ask({.order = Order::kStore, .data = there, .size = kSize, .number = 31}).code,
              ACL_SUCCESS);
    EXPECT_TRUE(block.has(31));
    EXPECT_EQ(other.close(block.key()), ACL_SUCCESS);
  }
}

TEST_F(IpcImport, IPC_16_ASecondImportHasAnAddressOfItsOwn) {
  Other other(IpcImportOther);
  const ExportedBlock block(2 * kMiB);
  block.fill(40);
  void* const first = other.attach(block.key());
  void* const second = other.attach(block.key());
  const uint64_t distance = number(first) > number(second) ? number(first) - number(second)
                                                           : number(second) - number(first);
  EXPECT_GE(distance, block.size());
  EXPECT_TRUE(other.has(first, block.size(), 40));
  EXPECT_TRUE(other.has(second, block.size(), 40));
  other.fill(first, block.size(), 41);
  EXPECT_TRUE(other.has(second, block.size(), 41));
  EXPECT_EQ(other.close(block.key()), ACL_SUCCESS);
  EXPECT_TRUE(other.has(second, block.size(), 41));
  EXPECT_EQ(other.close(block.key()), ACL_SUCCESS);
  EXPECT_NE(other.close(block.key()), ACL_SUCCESS);
  EXPECT_TRUE(block.has(41));
}

TEST_F(IpcImport, IPC_16_TheExporterMayImportItsOwnKey) {
  const ExportedBlock block(2 * kMiB);
  const size_t held = free_bytes();
  Import first(block.key());
  Import second(block.key());
  EXPECT_EQ(free_bytes(), held);
  EXPECT_NE(first.data(), block.data());
  EXPECT_NE(second.data(), block.data());
  EXPECT_NE(first.data(), second.data());
  block.fill(42);
  EXPECT_TRUE(copy_out(first.data(), block.size()) == pattern(block.size(), 42));
  copy_in(second.data(), pattern(block.size(), 43));
  EXPECT_TRUE(block.has(43));
  EXPECT_TRUE(copy_out(first.data(), block.size()) == pattern(block.size(), 43));
}

}  // namespace
}  // namespace understudy_test::ipc
