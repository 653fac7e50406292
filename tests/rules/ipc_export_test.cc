// SPDX-License-Identifier: Apache-2.0
//
// Memory keys on the side of the exporter: getting one, and listing who may import.
// Covers: IPC-01, IPC-02, IPC-03, IPC-04, IPC-05, IPC-06, IPC-07, IPC-08, IPC-09, IPC-10, IPC-13,
// IPC-27.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "rules/ipc_objects.h"
#include "support/server_directory.h"

namespace understudy_test::ipc {
namespace {

US_PEER(IpcExportOther) { serve_ipc(channel); }

using IpcExport = IpcTest;
using IpcAllow = IpcTest;

constexpr uint64_t kBadFlags[] = {2, 3, uint64_t{1} << 32, uint64_t{1} << 63, UINT64_MAX};

void expect_export_refused(aclError code, void* data, size_t size, size_t length = kKeySize,
                           uint64_t flags = kForAll) {
  const MemoryFigures before = memory_figures();
  std::array<char, kKeySize> key;
  key.fill('~');
  EXPECT_FAILS(code, aclrtIpcMemGetExportKey(data, size, key.data(), length, flags));
  EXPECT_EQ(std::count(key.begin(), key.end(), '~'), static_cast<ptrdiff_t>(kKeySize));
  EXPECT_EQ(memory_figures(), before);
}

// The block has no key yet and can have one.
void expect_exportable(const DeviceBlock& block) {
  const Key key = export_key(block.data(), block.size());
  EXPECT_SUCCESS(aclrtIpcMemClose(key.get()));
}

// ---- aclrtIpcMemGetExportKey ----

TEST_F(IpcExport, IPC_01_NullIsRefusedFirst) {
  const DeviceBlock block(2 * kMiB);
  const auto refuse = [&] {
    std::array<char, kKeySize> key;
    key.fill('~');
    for (const uint64_t flags : {kForListed, kForAll, uint64_t{99}}) {
      for (const size_t size : {size_t{0}, block.size()}) {
        EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
                     aclrtIpcMemGetExportKey(nullptr, size, key.data(), kKeySize, flags));
        EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
                     aclrtIpcMemGetExportKey(block.data(), size, nullptr, kKeySize, flags));
        EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
                     aclrtIpcMemGetExportKey(nullptr, size, nullptr, 0, flags));
      }
    }
    EXPECT_EQ(key[0], '~');
  };
  refuse();
  on_bare_thread(refuse);
  expect_exportable(block);
}

TEST_F(IpcExport, IPC_02_NothingToExportOrNoRoomIsRefused) {
  const DeviceBlock block(2 * kMiB);
  expect_export_refused(ACL_ERROR_RT_PARAM_INVALID, block.data(), 0);
  expect_export_refused(ACL_ERROR_RT_PARAM_INVALID, block.data(), block.size(), 0);
  expect_export_refused(ACL_ERROR_RT_PARAM_INVALID, block.data(), 0, 0);
  expect_exportable(block);
}

TEST_F(IpcExport, IPC_02_UnknownFlagsAreRefused) {
  const DeviceBlock block(2 * kMiB);
  for (const uint64_t flags : kBadFlags) {
    SCOPED_TRACE(flags);
    expect_export_refused(ACL_ERROR_RT_PARAM_INVALID, block.data(), block.size(), kKeySize, flags);
  }
  expect_exportable(block);
}

TEST_F(IpcExport, IPC_03_ASmallerBufferIsRefused) {
  const DeviceBlock block(2 * kMiB);
  for (const size_t length : {1u, 8u, 32u, 63u, 64u}) {
    SCOPED_TRACE(length);
    expect_export_refused(ACL_ERROR_RT_PARAM_INVALID, block.data(), block.size(), length);
  }
  expect_exportable(block);
}

TEST_F(IpcExport, IPC_04_KeyIsATerminatedTextInItsBuffer) {
  const DeviceBlock block(2 * kMiB);
  for (const uint64_t flags : {kForListed, kForAll}) {
    std::array<char, kKeySize + 32> buffer;
    buffer.fill('~');
    ASSERT_SUCCESS(
        aclrtIpcMemGetExportKey(block.data(), block.size(), buffer.data(), kKeySize, flags));
    const size_t length = strnlen(buffer.data(), kKeySize);
    EXPECT_GT(length, 0u);
    EXPECT_LE(length, 64u);
    EXPECT_TRUE(std::all_of(buffer.begin() + kKeySize, buffer.end(), [](char c) {
      return c == '~';
    })) << "written past the buffer";
    EXPECT_SUCCESS(aclrtIpcMemClose(buffer.data()));
  }
}

TEST_F(IpcExport, IPC_04_KeysDifferInAndBetweenProcessesAndServers) {
  constexpr size_t kEach = 20;
  const ServerDirectory elsewhere;
  Other neighbour(IpcExportOther);
  Other stranger(IpcExportOther, 0, {{kServerVariable, elsewhere.path()}});
  std::deque<ExportedBlock> own;
  std::set<std::string> names;
  for (size_t i = 0; i < kEach; ++i) {
    own.emplace_back(512);
    names.insert(own.back().key().name());
    for (Other* const other : {&neighbour, &stranger}) {
      names.insert(other->export_block(other->allocate(512), 512).name());
    }
  }
  EXPECT_EQ(names.size(), 3 * kEach);
}

TEST_F(IpcExport, IPC_04_AKeyIsNotUsedAgain) {
  const DeviceBlock block(2 * kMiB);
  std::set<std::string> names;
  for (int i = 0; i < 50; ++i) {
    const Key key = export_key(block.data(), block.size());
    EXPECT_TRUE(names.insert(key.name()).second) << key.name();
    EXPECT_SUCCESS(aclrtIpcMemClose(key.get()));
  }
}

TEST_F(IpcExport, IPC_05_OnlyTheBaseOfABlockIsExported) {
  for (const size_t size : kSharedSizes) {
    SCOPED_TRACE(size);
    const DeviceBlock block(size);
    for (const size_t offset : {size_t{1}, size_t{64}, size / 2, size - 1}) {
      expect_export_refused(ACL_ERROR_RT_PARAM_INVALID, block.at(offset), 1);
    }
    if (size > 2 * kMiB) {
      expect_export_refused(ACL_ERROR_RT_PARAM_INVALID, block.at(2 * kMiB), 2 * kMiB);
    }
    expect_exportable(block);
  }
}

TEST_F(IpcExport, IPC_05_WhatIsNoDeviceMemoryIsRefused) {
  const HostBlock host(2 * kMiB);
  std::vector<uint8_t> heap(2 * kMiB);
  DeviceBlock freed(2 * kMiB);
  void* const stale = freed.data();
  freed.free();
  const uint64_t heap_page = (number(heap.data()) + 4095) / 4096 * 4096;
  for (void* const data : {host.data(), address(heap_page), stale, address(4096), address(2 * kMiB),
                           address(uint64_t{1} << 47), address(UINT64_MAX - 4095)}) {
    SCOPED_TRACE(data);
    expect_export_refused(ACL_ERROR_RT_PARAM_INVALID, data, 4096);
  }
}

TEST_F(IpcExport, IPC_05_ImportedMemoryIsNotExportedOn) {
  Other other(IpcExportOther);
  void* const there = other.allocate(2 * kMiB);
  const Key key = other.export_block(there, 2 * kMiB);
  Import imported(key);
  expect_export_refused(ACL_ERROR_RT_PARAM_INVALID, imported.data(), 2 * kMiB);
  other.fill(there, kMiB, 3);
  EXPECT_TRUE(copy_out(imported.data(), kMiB) == pattern(kMiB, 3));
  imported.close();
  EXPECT_EQ(other.close(key), ACL_SUCCESS);
  EXPECT_EQ(other.free(there), ACL_SUCCESS);
}

TEST_F(IpcExport, IPC_06_MoreThanTheBlockIsRefused) {
  for (const size_t size : {4 * kKiB, 2 * kMiB, 20 * kMiB}) {
    SCOPED_TRACE(size);
    // No padding behind it.
    const DeviceBlock block(size, ACL_MEM_MALLOC_HUGE_FIRST, kMallocAlign32);
    for (const size_t more : {size + 1, size + 4096, 2 * size, kTiB, SIZE_MAX - 1, SIZE_MAX}) {
      expect_export_refused(ACL_ERROR_RT_PARAM_INVALID, block.data(), more);
    }
    expect_exportable(block);
  }
}

TEST_F(IpcExport, IPC_06_TheNextBlockIsNotPartOfIt) {
  std::deque<DeviceBlock> row;
  for (int i = 0; i < 8; ++i) row.emplace_back(512);
  for (const DeviceBlock& block : row) {
    expect_export_refused(ACL_ERROR_RT_PARAM_INVALID, block.data(), 8 * kKiB);
    expect_exportable(block);
  }
}

TEST_F(IpcExport, IPC_06_APartOfTheBlockIsEnough) {
  Other other(IpcExportOther);
  const DeviceBlock block(20 * kMiB);
  copy_in(block.data(), pattern(kMiB, 4));
  const Key key = export_key(block.data(), kMiB);
  void* const there = other.attach(key);
  EXPECT_TRUE(other.has(there, kMiB, 4));
  EXPECT_EQ(other.close(key), ACL_SUCCESS);
  EXPECT_SUCCESS(aclrtIpcMemClose(key.get()));
}

TEST_F(IpcExport, IPC_07_WithoutValidationEveryProcessMayImport) {
  const ExportedBlock block(kMiB, kForAll);
  block.fill(5);
  for (int i = 0; i < 3; ++i) {
    Other other(IpcExportOther);
    EXPECT_TRUE(other.has(other.attach(block.key()), block.size(), 5));
    EXPECT_EQ(other.close(block.key()), ACL_SUCCESS);
  }
}

TEST_F(IpcExport, IPC_07_IPC_13_WithValidationOnlyListedProcessesMayImport) {
  Other listed(IpcExportOther);
  Other unlisted(IpcExportOther);
  const ExportedBlock block(kMiB, kForListed);
  block.fill(6);
  EXPECT_EQ(listed.import(block.key()).code, ACL_ERROR_RT_NO_PERMISSION) << "nobody is listed yet";
  EXPECT_EQ(allow(block.key(), {listed.id()}), ACL_SUCCESS);
  EXPECT_TRUE(listed.has(listed.attach(block.key()), block.size(), 6));
  EXPECT_EQ(unlisted.import(block.key()).code, ACL_ERROR_RT_NO_PERMISSION);
  EXPECT_NE(unlisted.close(block.key()), ACL_SUCCESS) << "a refused import counts for nothing";
  EXPECT_TRUE(block.has(6));
  EXPECT_EQ(listed.close(block.key()), ACL_SUCCESS);
}

TEST_F(IpcExport, IPC_27_BlocksOfEverySizeCanBeExported) {
  struct Case {
    size_t size;
    aclrtMemMallocPolicy policy;
  };
  for (const Case& each :
       {Case{4 * kKiB, ACL_MEM_MALLOC_HUGE_FIRST}, Case{2 * kMiB, ACL_MEM_MALLOC_HUGE_ONLY},
        Case{1, ACL_MEM_MALLOC_HUGE_FIRST}, Case{32, ACL_MEM_MALLOC_NORMAL_ONLY},
        Case{4095, ACL_MEM_MALLOC_HUGE_FIRST}}) {
    SCOPED_TRACE(each.size);
    const DeviceBlock block(each.size, each.policy);
    const DeviceBlock neighbour(each.size, each.policy);
    expect_exportable(block);
    expect_exportable(neighbour);
  }
}

// ---- aclrtIpcMemSetImportPid ----

TEST_F(IpcAllow, IPC_08_NullIsRefusedFirst) {
  const ExportedBlock block(kMiB, kForListed);
  int32_t id = own_id();
  const auto refuse = [&] {
    for (const size_t count : {0u, 1u}) {
      EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtIpcMemSetImportPid(nullptr, &id, count));
      EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
                   aclrtIpcMemSetImportPid(block.key().get(), nullptr, count));
      EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtIpcMemSetImportPid("nobody", nullptr, count));
    }
  };
  refuse();
  on_bare_thread(refuse);
}

TEST_F(IpcAllow, IPC_08_AnEmptyListIsRefusedAndListsNobody) {
  Other other(IpcExportOther);
  const ExportedBlock block(kMiB, kForListed);
  int32_t id = other.id();
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtIpcMemSetImportPid(block.key().get(), &id, 0));
  EXPECT_EQ(other.import(block.key()).code, ACL_ERROR_RT_NO_PERMISSION);
}

TEST_F(IpcAllow, IPC_09_FurtherCallsAddToTheList) {
  const ExportedBlock block(kMiB, kForListed);
  block.fill(7);
  std::deque<Other> others;
  for (int i = 0; i < 4; ++i) others.emplace_back(IpcExportOther);
  EXPECT_EQ(allow(block.key(), {others[0].id()}), ACL_SUCCESS);
  EXPECT_EQ(allow(block.key(), {others[1].id(), others[2].id()}), ACL_SUCCESS);
  EXPECT_EQ(allow(block.key(), {others[1].id()}), ACL_SUCCESS) << "listed already";
  for (size_t i = 0; i < 3; ++i) {
    SCOPED_TRACE(i);
    EXPECT_TRUE(others[i].has(others[i].attach(block.key()), block.size(), 7));
    EXPECT_EQ(others[i].close(block.key()), ACL_SUCCESS);
  }
  EXPECT_EQ(others[3].import(block.key()).code, ACL_ERROR_RT_NO_PERMISSION);
}

TEST_F(IpcAllow, IPC_09_ALongListIsReadToItsEnd) {
  Other other(IpcExportOther);
  const ExportedBlock block(kMiB, kForListed);
  std::vector<int32_t> ids(100, own_id());
  ids.back() = other.id();
  EXPECT_EQ(allow(block.key(), ids), ACL_SUCCESS);
  EXPECT_EQ(other.import(block.key()).code, ACL_SUCCESS);
  EXPECT_EQ(other.close(block.key()), ACL_SUCCESS);
}

TEST_F(IpcAllow, IPC_09_AListBelongsToItsKey) {
  Other other(IpcExportOther);
  const ExportedBlock open(kMiB, kForListed);
  const ExportedBlock shut(kMiB, kForListed);
  EXPECT_EQ(allow(open.key(), {other.id()}), ACL_SUCCESS);
  EXPECT_EQ(other.import(shut.key()).code, ACL_ERROR_RT_NO_PERMISSION);
}

TEST_F(IpcAllow, IPC_10_UnknownKeysAreRefused) {
  const ExportedBlock block(kMiB, kForListed);
  const DeviceBlock unshared(kMiB);
  const Key closed = export_key(unshared.data(), unshared.size(), kForListed);
  EXPECT_SUCCESS(aclrtIpcMemClose(closed.get()));
  for (const std::string& name : {std::string(), std::string("nobody"), std::string(64, 'k'),
                                  std::string(500, '/'), block.key().name() + "x", closed.name()}) {
    SCOPED_TRACE(name);
    int32_t id = own_id();
    (void)recent_error();
    EXPECT_NE(noted("aclrtIpcMemSetImportPid", aclrtIpcMemSetImportPid(name.c_str(), &id, 1)),
              ACL_SUCCESS);
  }
}

TEST_F(IpcAllow, IPC_10_OnlyTheExporterMayAddToTheList) {
  Other importer(IpcExportOther);
  Other intruder(IpcExportOther);
  const ExportedBlock block(kMiB, kForListed);
  EXPECT_NE(intruder.allow(block.key(), intruder.id()), ACL_SUCCESS);
  EXPECT_EQ(allow(block.key(), {importer.id()}), ACL_SUCCESS);
  importer.attach(block.key());
  EXPECT_NE(importer.allow(block.key(), intruder.id()), ACL_SUCCESS);
  EXPECT_EQ(intruder.import(block.key()).code, ACL_ERROR_RT_NO_PERMISSION);
  EXPECT_EQ(importer.close(block.key()), ACL_SUCCESS);
}

}  // namespace
}  // namespace understudy_test::ipc
