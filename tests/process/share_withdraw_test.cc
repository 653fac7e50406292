// SPDX-License-Identifier: Apache-2.0
//
// Imports at the very moment in which the exporter withdraws what it offered: a listed process gets
// the memory, or hears that there is none any more, but never that it is not listed.
// Covers: IPC-12, IPC-22, SHARE-28, SHARE-31.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <iostream>
#include <optional>
#include <random>
#include <string>

#include "process/sharing_objects.h"

namespace understudy_test::share {
namespace {

constexpr int kOffers = 10'000;

// What is on offer at the moment, for both processes to see.
struct Counter {
  std::atomic<uint32_t> version{0};  // odd while it is written
  std::atomic<uint64_t> token{0};
  std::array<std::atomic<char>, ipc::kKeySize> key{};
  std::atomic<bool> is_closed{false};

  void show(uint64_t new_token, const ipc::Key& new_key) {
    version.fetch_add(1);
    token.store(new_token);
    for (size_t i = 0; i < key.size(); ++i) key[i].store(new_key.text[i]);
    version.fetch_add(1);
  }
};

Counter* counter_in(int file) {
  void* const start = mmap(nullptr, sizeof(Counter), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (start == MAP_FAILED) abort();
  return static_cast<Counter*>(start);
}

// Not a wait for something: it only chooses in which step of an import the end comes.
void pass_random_time() {
  static std::mt19937 random(28);
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(random() % 100);
  while (std::chrono::steady_clock::now() < end) {
  }
}

enum class What : uint8_t { kBlock, kSmallAllocation, kLargeAllocation };

void offer_and_withdraw_block(Counter& counter, int32_t importer) {
  const Block block(kGranule);
  uint64_t token = 0;
  EXPECT_SUCCESS(
      aclrtMemExportToShareableHandle(block.handle(), ACL_MEM_HANDLE_TYPE_NONE, kListed, &token));
  EXPECT_SUCCESS(aclrtMemSetPidToShareableHandle(token, &importer, 1));
  counter.show(token, {});
  pass_random_time();
}
void offer_and_withdraw_allocation(Counter& counter, int32_t importer, size_t size) {
  void* data = nullptr;
  EXPECT_SUCCESS(aclrtMalloc(&data, size, ACL_MEM_MALLOC_HUGE_FIRST));
  const ipc::Key key = ipc::export_key(data, size, ipc::kForListed);
  EXPECT_SUCCESS(aclrtIpcMemSetImportPid(key.get(), &importer, 1));
  counter.show(0, key);
  pass_random_time();
  EXPECT_SUCCESS(aclrtFree(data));
}

struct Instructions {
  std::array<char, 64> counter;
  int32_t importer;
  What what;
};

US_PEER(OffersAndWithdraws) {
  const auto order = channel.receive<Instructions>();
  const int file = open(order.counter.data(), O_RDWR | O_CLOEXEC);
  Counter& counter = *counter_in(file);
  ASSERT_SUCCESS(aclrtSetDevice(0));
  for (int i = 0; i < kOffers; ++i) {
    switch (order.what) {
      case What::kBlock:
        offer_and_withdraw_block(counter, order.importer);
        break;
      case What::kSmallAllocation:
        offer_and_withdraw_allocation(counter, order.importer, 4 * kKiB);
        break;
      case What::kLargeAllocation:
        offer_and_withdraw_allocation(counter, order.importer, kGranule);
        break;
    }
  }
  counter.is_closed.store(true);
  channel.wait_for_end();
}

// Imports what is on offer, if something is, and gives it back. The code of the import.
std::optional<aclError> import_from(const Counter& counter) {
  const uint32_t version = counter.version.load();
  const uint64_t token = counter.token.load();
  ipc::Key key{};
  for (size_t i = 0; i < key.text.size(); ++i) key.text[i] = counter.key[i].load();
  if (version == 0 || version % 2 != 0 || counter.version.load() != version) return {};
  if (token != 0) {
    aclrtDrvMemHandle handle = nullptr;
    const aclError code = aclrtMemImportFromShareableHandle(token, 0, &handle);
    if (code == ACL_SUCCESS) {
      EXPECT_SUCCESS(aclrtFreePhysical(handle));
    }
    return code;
  }
  void* data = nullptr;
  const aclError code = aclrtIpcMemImportByKey(&data, key.get(), ipc::kPlainImport);
  if (code == ACL_SUCCESS) {
    EXPECT_SUCCESS(aclrtIpcMemClose(key.get()));
  }
  return code;
}

std::string name_of_what(const testing::TestParamInfo<What>& what) {
  constexpr std::array kNames = {"Block", "SmallAllocation", "LargeAllocation"};
  return kNames[static_cast<size_t>(what.param)];
}

class ShareWithdraw : public VirtualMemoryTest, public testing::WithParamInterface<What> {};
INSTANTIATE_TEST_SUITE_P(, ShareWithdraw,
                         testing::Values(What::kBlock, What::kSmallAllocation,
                                         What::kLargeAllocation),
                         name_of_what);

TEST_P(ShareWithdraw, SHARE_28_SHARE_31_AListedProcessIsNeverCalledUnlisted) {
  const int file = memfd_create("counter", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, sizeof(Counter)), 0);
  const Counter& counter = *counter_in(file);
  Instructions order{.counter = {}, .importer = own_id(), .what = GetParam()};
  const std::string path = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file);
  path.copy(order.counter.data(), order.counter.size() - 1);
  Peer exporter(OffersAndWithdraws);
  exporter.send(order);
  int imports = 0;
  int misses = 0;
  while (!counter.is_closed.load() && !HasFailure()) {
    const std::optional<aclError> code = import_from(counter);
    if (!code) continue;
    (code == ACL_SUCCESS ? imports : misses) += 1;
    if (code == ACL_SUCCESS) continue;
    const std::string text = recent_error();
    EXPECT_EQ(code, ACL_ERROR_RT_INVALID_HANDLE) << text;
  }
  exporter.finish();
  std::cout << imports << " imports, " << misses << " came too late\n";
  munmap(const_cast<Counter*>(&counter), sizeof counter);
  close(file);
}

// ---- Freed, and still held by another process ----

aclError import_key_once(ipc::Key key) {
  void* data = nullptr;
  const aclError code = aclrtIpcMemImportByKey(&data, key.get(), ipc::kPlainImport);
  if (code == ACL_SUCCESS) {
    EXPECT_SUCCESS(aclrtIpcMemClose(key.get()));
  }
  return code;
}

using ShareFreed = VirtualMemoryTest;

TEST_F(ShareFreed, IPC_12_IPC_22_NobodyNewImportsWhatWasFreed) {
  for (const size_t size : {4 * kKiB, kGranule}) {
    for (const uint64_t flags : {ipc::kForAll, ipc::kForListed}) {
      SCOPED_TRACE(testing::Message() << size << " bytes, flags " << flags);
      Remote holder;
      Remote late;
      void* data = nullptr;
      ASSERT_SUCCESS(aclrtMalloc(&data, size, ACL_MEM_MALLOC_HUGE_FIRST));
      const ipc::Key key = ipc::export_key(data, size, flags);
      if (flags == ipc::kForListed) {
        ASSERT_EQ(ipc::allow(key, {holder.id(), late.id()}), ACL_SUCCESS);
      }
      (void)holder.call(import_key, key);
      EXPECT_SUCCESS(aclrtFree(data));
      EXPECT_EQ(late.call(import_key_once, key), ACL_ERROR_RT_INVALID_HANDLE);
      holder.call(close_key, key);
      EXPECT_EQ(late.call(import_key_once, key), ACL_ERROR_RT_INVALID_HANDLE);
    }
  }
}

}  // namespace
}  // namespace understudy_test::share
