// SPDX-License-Identifier: Apache-2.0
//
// The end of imports and exports by key, in every order, and the end of either process.
// Covers: IPC-18, IPC-19, IPC-20, IPC-21, IPC-22, IPC-23.
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "rules/ipc_objects.h"

namespace understudy_test::ipc {
namespace {

US_PEER(IpcCloseOther) { serve_ipc(channel); }

using IpcClose = IpcTest;

constexpr size_t kSize = 2 * kMiB;
constexpr size_t kPages = 4 * kMiB;  // with the spare bytes of aclrtMalloc

void expect_close_refused(const std::string& key) {
  const MemoryFigures before = memory_figures();
  (void)recent_error();
  EXPECT_NE(noted("aclrtIpcMemClose", aclrtIpcMemClose(key.c_str())), ACL_SUCCESS);
  EXPECT_EQ(memory_figures(), before);
}

// Fresh memory of the exporter must not be what an importer still holds.
class OtherUse {
 public:
  OtherUse() {
    for (int i = 0; i < 4; ++i) {
      blocks_.push_back(std::make_unique<DeviceBlock>(kSize));
      copy_in(blocks_.back()->data(), pattern(kSize, 200));
    }
  }
  void expect_untouched() const {
    for (const auto& block : blocks_) {
      EXPECT_TRUE(copy_out(block->data(), kSize) == pattern(kSize, 200));
    }
  }

 private:
  std::vector<std::unique_ptr<DeviceBlock>> blocks_;
};

TEST_F(IpcClose, IPC_18_NullIsRefused) {
  const auto refuse = [] { EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtIpcMemClose(nullptr)); };
  refuse();
  on_bare_thread(refuse);
}

TEST_F(IpcClose, IPC_19_TheOldestImportIsClosedFirst) {
  Other other(IpcCloseOther);
  const ExportedBlock block(kSize);
  block.fill(1);
  std::vector<void*> imports;
  for (int i = 0; i < 3; ++i) imports.push_back(other.attach(block.key()));
  for (size_t closed = 1; closed <= imports.size(); ++closed) {
    EXPECT_EQ(other.close(block.key()), ACL_SUCCESS);
    for (size_t i = 0; i < imports.size(); ++i) {
      SCOPED_TRACE(testing::Message() << closed << " closed, import " << i);
      if (i < closed) {
        EXPECT_FALSE(other.is_in_reach(imports[i]));
        EXPECT_FALSE(other.is_in_reach(at(imports[i], kSize - 16)));
        EXPECT_FALSE(other.is_device_memory(imports[i]));
      } else {
        EXPECT_TRUE(other.has(imports[i], kSize, 1));
      }
    }
  }
  EXPECT_TRUE(block.has(1));
}

TEST_F(IpcClose, IPC_19_AClosedKeyCanBeImportedAgain) {
  Other other(IpcCloseOther);
  const ExportedBlock block(kSize);
  for (uint8_t round = 1; round <= 20; ++round) {
    SCOPED_TRACE(static_cast<int>(round));
    void* const there = other.attach(block.key());
    copy_in(block.data(), pattern(kKiB, round));
    EXPECT_TRUE(other.has(there, kKiB, round));
    EXPECT_EQ(other.close(block.key()), ACL_SUCCESS);
  }
}

TEST_F(IpcClose, IPC_19_OneProcessesCloseIsNotThatOfAnother) {
  Other first(IpcCloseOther);
  Other second(IpcCloseOther);
  const ExportedBlock block(kSize);
  block.fill(2);
  void* const gone = first.attach(block.key());
  void* const kept = second.attach(block.key());
  EXPECT_EQ(first.close(block.key()), ACL_SUCCESS);
  EXPECT_FALSE(first.is_in_reach(gone));
  EXPECT_TRUE(second.has(kept, kSize, 2));
  second.fill(kept, kSize, 3);
  EXPECT_TRUE(block.has(3));
  EXPECT_EQ(second.close(block.key()), ACL_SUCCESS);
}

TEST_F(IpcClose, IPC_19_QueuedWorkOnAClosedImportFailsOnItsStream) {
  const ExportedBlock block(kSize);
  block.fill(4);
  const DeviceBlock target(kSize);
  Import imported(block.key());
  const TestStream stream;
  Gate gate(stream.get());
  EXPECT_SUCCESS(aclrtMemcpyAsync(target.data(), kSize, imported.data(), kSize,
                                  ACL_MEMCPY_DEVICE_TO_DEVICE, stream.get()));
  imported.close();
  gate.open();
  EXPECT_NE(finish(stream.get()), ACL_SUCCESS);
  EXPECT_TRUE(block.has(4));
}

TEST_F(IpcClose, IPC_19_IPC_20_TheExportersImportsAreClosedBeforeItsExport) {
  Other other(IpcCloseOther);
  ExportedBlock block(kSize);
  block.fill(5);
  void* own = nullptr;
  ASSERT_SUCCESS(aclrtIpcMemImportByKey(&own, block.key().get(), kPlainImport));
  EXPECT_SUCCESS(aclrtIpcMemClose(block.key().get()));
  EXPECT_FALSE(is_in_reach(own, 16));
  EXPECT_TRUE(other.has(other.attach(block.key()), kSize, 5)) << "the export goes on";
  EXPECT_EQ(other.close(block.key()), ACL_SUCCESS);
  block.close();
  EXPECT_NE(other.import(block.key()).code, ACL_SUCCESS);
  EXPECT_TRUE(block.has(5));
}

TEST_F(IpcClose, IPC_20_IPC_21_TheKeyIsUnknownAfterTheEndOfTheExport) {
  Other other(IpcCloseOther);
  ExportedBlock block(kSize);
  block.fill(6);
  block.close();
  EXPECT_NE(other.import(block.key()).code, ACL_SUCCESS);
  EXPECT_NE(other.close(block.key()), ACL_SUCCESS);
  EXPECT_NE(allow(block.key(), {other.id()}), ACL_SUCCESS);
  void* data = untouched_address();
  EXPECT_NE(aclrtIpcMemImportByKey(&data, block.key().get(), kPlainImport), ACL_SUCCESS);
  EXPECT_EQ(data, untouched_address());
  expect_close_refused(block.key().name());
  EXPECT_TRUE(block.has(6)) << "the block itself lives";

  const Key again = export_key(block.data(), kSize);
  EXPECT_NE(again, block.key());
  EXPECT_TRUE(other.has(other.attach(again), kSize, 6));
  EXPECT_NE(other.import(block.key()).code, ACL_SUCCESS);
  EXPECT_EQ(other.close(again), ACL_SUCCESS);
  EXPECT_SUCCESS(aclrtIpcMemClose(again.get()));
}

TEST_F(IpcClose, IPC_21_UnknownKeysAreRefused) {
  const ExportedBlock block(kSize);
  const std::string name = block.key().name();
  for (const std::string& key : {std::string(), std::string("k"), std::string(64, 'k'),
                                 std::string(5000, '.'), name + "x", name.substr(1)}) {
    SCOPED_TRACE(key);
    expect_close_refused(key);
  }
}

TEST_F(IpcClose, IPC_21_AProcessWithoutImportsCannotCloseTheKeyOfOthers) {
  Other importer(IpcCloseOther);
  Other stranger(IpcCloseOther);
  const ExportedBlock block(kSize);
  block.fill(7);
  void* const there = importer.attach(block.key());
  EXPECT_NE(stranger.close(block.key()), ACL_SUCCESS);
  EXPECT_TRUE(importer.has(there, kSize, 7));
  EXPECT_EQ(stranger.import(block.key()).code, ACL_SUCCESS) << "the key is still good";
  EXPECT_EQ(stranger.close(block.key()), ACL_SUCCESS);
  EXPECT_EQ(importer.close(block.key()), ACL_SUCCESS);
}

// ---- The exporter is first ----

struct ExporterEnd {
  const char* name;
  std::function<void(ExportedBlock&)> end;
};

void PrintTo(const ExporterEnd& end, std::ostream* out) { *out << end.name; }

void reset_device(ExportedBlock& block) {
  block.give_up_key();
  (void)block.release();
  EXPECT_SUCCESS(aclrtResetDeviceForce(0));
  EXPECT_SUCCESS(aclrtSetDevice(0));
}

class IpcEarlyEnd : public IpcTest, public testing::WithParamInterface<ExporterEnd> {};
INSTANTIATE_TEST_SUITE_P(, IpcEarlyEnd,
                         testing::Values(ExporterEnd{"by_close_and_free",
                                                     [](ExportedBlock& block) {
                                                       block.close();
                                                       block.free();
                                                     }},
                                         ExporterEnd{"by_free_and_close",
                                                     [](ExportedBlock& block) {
                                                       block.free();
                                                       block.give_up_key();
                                                       (void)aclrtIpcMemClose(block.key().get());
                                                     }},
                                         ExporterEnd{"by_free_alone",
                                                     [](ExportedBlock& block) {
                                                       block.free();
                                                       block.give_up_key();
                                                     }},
                                         ExporterEnd{"by_reset", reset_device}),
                         [](const testing::TestParamInfo<ExporterEnd>& parameter) {
                           return std::string(parameter.param.name);
                         });

TEST_P(IpcEarlyEnd, IPC_22_ImportersKeepTheMemoryUntilTheyClose) {
  Other first(IpcCloseOther);
  Other second(IpcCloseOther);
  const size_t before = free_bytes();
  ExportedBlock block(kSize);
  block.fill(8);
  const Key key = block.key();
  void* const here = block.data();
  void* const at_first = first.attach(key);
  void* const at_second = second.attach(key);
  GetParam().end(block);
  EXPECT_EQ(free_bytes(), before - kPages);
  EXPECT_FALSE(is_in_reach(here, 16));
  {
    const OtherUse use;
    EXPECT_TRUE(first.has(at_first, kSize, 8));
    first.fill(at_first, kSize, 9);
    EXPECT_TRUE(second.has(at_second, kSize, 9));
    use.expect_untouched();
  }
  EXPECT_EQ(first.close(key), ACL_SUCCESS);
  EXPECT_EQ(free_bytes(), before - kPages) << "one importer is left";
  EXPECT_EQ(second.free_bytes(), before - kPages);
  EXPECT_TRUE(second.has(at_second, kSize, 9));
  EXPECT_EQ(second.close(key), ACL_SUCCESS);
  EXPECT_EQ(free_bytes(), before);
  EXPECT_EQ(first.free_bytes(), before);
}

TEST_F(IpcClose, IPC_22_ClosingTheExportAloneLeavesImportersTheirMemory) {
  Other other(IpcCloseOther);
  ExportedBlock block(kSize);
  block.fill(10);
  void* const there = other.attach(block.key());
  block.close();
  EXPECT_NE(other.import(block.key()).code, ACL_SUCCESS) << "no new imports";
  other.fill(there, kSize, 11);
  EXPECT_TRUE(block.has(11));
  EXPECT_EQ(other.close(block.key()), ACL_SUCCESS);
  EXPECT_FALSE(other.is_in_reach(there));
  EXPECT_TRUE(block.has(11));
}

class IpcDeath : public IpcTest, public testing::WithParamInterface<bool> {
 protected:
  static void end(Other& other) {
    if (GetParam()) {
      other.peer().kill();
    } else {
      other.peer().finish();
    }
  }
};
INSTANTIATE_TEST_SUITE_P(, IpcDeath, testing::Bool(), [](const testing::TestParamInfo<bool>& kill) {
  return std::string(kill.param ? "by_signal" : "by_itself");
});

TEST_P(IpcDeath, IPC_22_ImportersOutliveTheExporter) {
  Other witness(IpcCloseOther);
  const size_t before = free_bytes();
  Other exporter(IpcCloseOther);
  void* const there = exporter.allocate(kSize);
  exporter.fill(there, kSize, 12);
  exporter.allocate(20 * kMiB);
  const Key key = exporter.export_block(there, kSize);
  Import imported(key);
  end(exporter);
  EXPECT_EQ(free_bytes(), before - kPages) << "what was not shared is free";
  EXPECT_EQ(witness.free_bytes(), before - kPages);
  {
    const OtherUse use;
    EXPECT_TRUE(copy_out(imported.data(), kSize) == pattern(kSize, 12));
    copy_in(imported.data(), pattern(kSize, 13));
    EXPECT_TRUE(copy_out(imported.data(), kSize) == pattern(kSize, 13));
    use.expect_untouched();
  }
  EXPECT_NE(witness.import(key).code, ACL_SUCCESS);
  imported.close();
  EXPECT_EQ(free_bytes(), before);
  EXPECT_EQ(witness.free_bytes(), before);
}

TEST_P(IpcDeath, IPC_22_ExporterOutlivesItsImporters) {
  const size_t before = free_bytes();
  {
    ExportedBlock block(kSize);
    block.fill(14);
    Other importer(IpcCloseOther);
    importer.fill(importer.attach(block.key()), kSize, 15);
    importer.attach(block.key());
    end(importer);
    EXPECT_EQ(free_bytes(), before - kPages);
    EXPECT_TRUE(block.has(15));
    Other next(IpcCloseOther);
    EXPECT_TRUE(next.has(next.attach(block.key()), kSize, 15));
    EXPECT_EQ(next.close(block.key()), ACL_SUCCESS);
  }
  EXPECT_EQ(free_bytes(), before);
}

// The exporter is gone already when the last importer dies.
TEST_P(IpcDeath, IPC_22_TheLastImportersEndReturnsTheMemory) {
  const size_t before = free_bytes();
  Other importer(IpcCloseOther);
  {
    ExportedBlock block(kSize);
    importer.attach(block.key());
  }
  EXPECT_EQ(free_bytes(), before - kPages);
  end(importer);
  EXPECT_EQ(free_bytes(), before);
}

TEST_F(IpcClose, IPC_23_FreeingAnImportIsRefusedAndHarmless) {
  Other other(IpcCloseOther);
  const ExportedBlock block(kSize);
  block.fill(16);
  const size_t held = free_bytes();
  void* const there = other.attach(block.key());
  EXPECT_NE(other.free(there), ACL_SUCCESS);
  EXPECT_NE(other.free(at(there, 4096)), ACL_SUCCESS);
  EXPECT_TRUE(other.has(there, kSize, 16));
  EXPECT_EQ(other.close(block.key()), ACL_SUCCESS);
  EXPECT_NE(other.free(there), ACL_SUCCESS) << "as the official example does";
  EXPECT_EQ(free_bytes(), held);
  EXPECT_TRUE(block.has(16));
}

}  // namespace
}  // namespace understudy_test::ipc
