// SPDX-License-Identifier: Apache-2.0
//
// Many threads of several processes export, import and free at the same time, so that numbers of
// shares are used again within microseconds: whoever imports gets what the token stands for, and
// a token that an export gave out is good.
// Covers: SHARE-18, SHARE-28, SHARE-35.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <new>
#include <random>
#include <string>
#include <thread>

#include "rules/ipc_objects.h"
#include "rules/share_objects.h"
#include "stress/threads.h"

namespace understudy_test::share {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kStressTime(3500);
constexpr std::chrono::milliseconds kRaceTime(1500);
constexpr int kThreads = 3;
constexpr int kOtherProcesses = 2;

// ---- Numbers that are used again ----

struct Market {
  std::array<std::atomic<uint64_t>, 3> tokens{};  // few, so that they are imported as they end
  std::atomic<bool> ends{false};
  std::atomic<uint64_t> exports{0};
  std::atomic<uint64_t> imports{0};
};

using MarketPath = std::array<char, 64>;

// In the memory of all processes.
class SharedMarket {
 public:
  SharedMarket() : file_(memfd_create("market", MFD_CLOEXEC)) {
    EXPECT_EQ(ftruncate(file_, sizeof(Market)), 0);
    attach();
    new (market_) Market();
  }
  explicit SharedMarket(const MarketPath& path) : file_(open(path.data(), O_RDWR | O_CLOEXEC)) {
    attach();
  }
  ~SharedMarket() {
    munmap(market_, sizeof(Market));
    close(file_);
  }
  SharedMarket(const SharedMarket&) = delete;
  SharedMarket& operator=(const SharedMarket&) = delete;

  Market& operator*() const { return *market_; }
  Market* operator->() const { return market_; }
  MarketPath path() const {
    MarketPath path{};
    const std::string text = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_);
    text.copy(path.data(), path.size() - 1);
    return path;
  }

 private:
  void attach() {
    void* const start = mmap(nullptr, sizeof(Market), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (start == MAP_FAILED) abort();
    market_ = static_cast<Market*>(start);
  }

  const int file_;
  Market* market_ = nullptr;
};

// What a block says of itself.
using Stamp = std::array<uint64_t, 2>;
Stamp stamp_of(uint64_t token) { return {token, ~token}; }

Stamp read_stamp(const void* start) {
  Stamp stamp{};
  EXPECT_SUCCESS(
      aclrtMemcpy(stamp.data(), sizeof stamp, start, sizeof stamp, ACL_MEMCPY_DEVICE_TO_HOST));
  return stamp;
}

// What one thread does.
class Trader {
 public:
  Trader(Market& market, unsigned seed) : market_(market), random_(seed) {}

  void trade() {
    const auto choice = random_() % 8;
    if (choice < 4) {
      offer();
    } else if (choice < 7) {
      import();
    } else {
      import_own_key();
    }
  }

 private:
  void pass_time() {
    if (random_() % 2 == 0) return;
    const auto end = steady_clock::now() + std::chrono::microseconds(random_() % 300);
    while (steady_clock::now() < end) std::this_thread::yield();
  }

  void offer() {
    const MappedBlock block;
    const Stamp stamp = stamp_of(export_block(block));
    EXPECT_SUCCESS(aclrtMemcpy(block.start(), sizeof stamp, stamp.data(), sizeof stamp,
                               ACL_MEMCPY_HOST_TO_DEVICE));
    market_.tokens[random_() % market_.tokens.size()].store(stamp[0]);
    market_.exports.fetch_add(1);
    pass_time();
    EXPECT_EQ(read_stamp(block.start()), stamp) << "as its exporter sees it";
  }
  static uint64_t export_block(const MappedBlock& block) {
    uint64_t token = 0;
    EXPECT_SUCCESS(aclrtMemExportToShareableHandle(block.block.handle(), ACL_MEM_HANDLE_TYPE_NONE,
                                                   kEveryone, &token));
    return token;
  }

  void import() {
    const uint64_t token = market_.tokens[random_() % market_.tokens.size()].load();
    if (token == 0) return;
    aclrtDrvMemHandle handle = nullptr;
    const aclError code = aclrtMemImportFromShareableHandle(token, 0, &handle);
    if (code != ACL_SUCCESS) {
      // It is gone, this process has it already, or it is its own.
      EXPECT_TRUE(code == ACL_ERROR_RT_INVALID_HANDLE || code == ACL_ERROR_RT_NO_PERMISSION)
          << code << ' ' << recent_error();
      return;
    }
    const View view{handle, map_anew(handle, kGranule), kGranule};
    pass_time();
    EXPECT_EQ(read_stamp(view.start), stamp_of(token)) << "as its importer sees it";
    market_.imports.fetch_add(1);
    close_view(view);
  }

  void import_own_key() {
    const size_t size = random_() % 2 == 0 ? 4 * kKiB : 3 * kMiB;
    void* start = nullptr;
    if (aclrtMalloc(&start, size, ACL_MEM_MALLOC_NORMAL_ONLY) != ACL_SUCCESS) return;
    const ipc::Key key = ipc::export_key(start, size);
    void* imported = nullptr;
    EXPECT_SUCCESS(aclrtIpcMemImportByKey(&imported, key.get(), ipc::kPlainImport));
    copy_in(start, {42});
    EXPECT_EQ(copy_out(imported, 1)[0], 42);
    const bool frees_first = random_() % 2 == 0;
    if (frees_first) {
      EXPECT_SUCCESS(aclrtFree(start));
    }
    EXPECT_SUCCESS(aclrtIpcMemClose(key.get()));
    if (!frees_first) {
      EXPECT_SUCCESS(aclrtFree(start));
    }
  }

  Market& market_;
  std::mt19937 random_;
};

template <typename Condition>
void trade_while(Market& market, Condition condition) {
  run_on_threads(kThreads, [&](int index) {
    Trader trader(market, static_cast<unsigned>(getpid() * kThreads + index));
    while (condition() && !testing::Test::HasFailure()) trader.trade();
  });
}

US_PEER(TradesShares) {
  const SharedMarket market(channel.receive<MarketPath>());
  ASSERT_SUCCESS(aclrtSetDevice(0));
  trade_while(*market, [&] { return !market->ends.load(); });
  channel.send(true);
  channel.wait_for_end();
}

using ShareThreads = VirtualMemoryTest;

TEST_F(ShareThreads, SHARE_28_SHARE_35_NobodyImportsAnothersShareByANumberThatIsUsedAgain) {
  const SharedMarket market;
  std::array<Peer, kOtherProcesses> others{Peer(TradesShares), Peer(TradesShares)};
  for (Peer& other : others) other.send(market.path());
  const auto end = steady_clock::now() + kStressTime;
  trade_while(*market, [&] { return steady_clock::now() < end; });
  market->ends.store(true);
  for (Peer& other : others) EXPECT_TRUE(other.receive<bool>());
  for (Peer& other : others) other.finish();
  std::cout << market->exports.load() << " exports, " << market->imports.load() << " imports\n";
  EXPECT_GT(market->imports.load(), 0u);
}

// ---- The last handle is freed while the block is exported again ----

TEST_F(ShareThreads, SHARE_18_ATokenOfALiveHandleIsNeverDeadFromTheStart) {
  const Reservation place(kGranule);
  std::atomic<aclrtDrvMemHandle> to_free{nullptr};
  std::atomic<bool> ends{false};
  int rounds = 0;
  int exported_again = 0;
  const auto free_what_comes = [&] {
    while (!ends.load()) {
      const aclrtDrvMemHandle handle = to_free.load();
      if (handle == nullptr) continue;
      EXPECT_SUCCESS(aclrtFreePhysical(handle));
      to_free.store(nullptr);
    }
  };
  const auto export_again = [&] {
    std::mt19937 random(21);
    int32_t self = own_id();
    const auto end = steady_clock::now() + kRaceTime;
    while (steady_clock::now() < end && !HasFailure()) {
      const aclrtDrvMemHandle first = create_block(kGranule);
      EXPECT_SUCCESS(aclrtMapMem(place.start(), kGranule, 0, first, 0));
      uint64_t token = 0;
      const auto export_handle = [&](aclrtDrvMemHandle handle) {
        return aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE, kListed, &token);
      };
      EXPECT_SUCCESS(export_handle(first));
      to_free.store(first);
      for (auto turns = random() % 2000; turns > 0; --turns) (void)to_free.load();
      aclrtDrvMemHandle second = nullptr;
      EXPECT_SUCCESS(aclrtMemRetainAllocationHandle(place.start(), &second));
      // Refused for as long as the export by the first handle stands.
      aclError code = ACL_SUCCESS;
      bool is_freed = false;
      do {
        is_freed = to_free.load() == nullptr;
        code = export_handle(second);
      } while (code != ACL_SUCCESS && !is_freed);
      while (to_free.load() != nullptr) std::this_thread::yield();
      if (code == ACL_SUCCESS) {
        ++exported_again;
        EXPECT_SUCCESS(aclrtMemSetPidToShareableHandle(token, &self, 1));
      }
      ++rounds;
      (void)recent_error();
      EXPECT_SUCCESS(aclrtUnmapMem(place.start()));
      EXPECT_SUCCESS(aclrtFreePhysical(second));
    }
    ends.store(true);
  };
  run_on_threads(2, [&](int index) { index == 0 ? export_again() : free_what_comes(); });
  std::cout << exported_again << " of " << rounds << " blocks were exported again\n";
  if (exported_again == 0) GTEST_SKIP() << "the two threads never met in time";
}

}  // namespace
}  // namespace understudy_test::share
