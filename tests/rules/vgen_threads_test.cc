// SPDX-License-Identifier: Apache-2.0
//
// Virtual memory objects belong to the process: any thread may use them, and racing threads get
// one success and one defined failure.
// Covers: VGEN-06, VGEN-07.
#include <barrier>
#include <thread>

#include "rules/vmm_objects.h"

namespace understudy_test::vmm {
namespace {

using VirtualMemoryThreads = DeviceTest;

TEST_F(VirtualMemoryThreads, VGEN_06_ThreadWithoutAContextUsesObjectsOfAnother) {
  Block block;
  Range range(kHugePage);
  on_bare_thread(
      [&] { EXPECT_SUCCESS(aclrtMapMem(range.start(), kHugePage, 0, block.handle(), 0)); });
  expect_usable(range.start());
  on_bare_thread([&] {
    aclrtDrvMemHandle retained = nullptr;
    EXPECT_SUCCESS(aclrtMemRetainAllocationHandle(range.start(), &retained));
    EXPECT_EQ(retained, block.handle());
    EXPECT_SUCCESS(aclrtFreePhysical(retained));
    EXPECT_SUCCESS(aclrtUnmapMem(range.start()));
    EXPECT_SUCCESS(aclrtReleaseMemAddress(range.give_up()));
    EXPECT_SUCCESS(aclrtFreePhysical(block.give_up()));
  });
}

TEST_F(VirtualMemoryThreads, VGEN_06_ThreadOnAnotherDeviceUsesObjectsOfTheFirst) {
  Block block;
  Range range(kHugePage);
  const size_t held = free_bytes();
  std::vector<uint8_t> bytes = pattern(64 * kKiB, 4);
  on_bare_thread([&] {
    const DeviceBinding binding(1);
    const FiguresStay watch_device_1;
    EXPECT_SUCCESS(aclrtMapMem(range.start(), kHugePage, 0, block.handle(), 0));
    copy_in(range.start(), bytes);
  });
  EXPECT_TRUE(copy_out(range.start(), bytes.size()) == bytes);
  on_bare_thread([&] {
    const DeviceBinding binding(1);
    EXPECT_TRUE(copy_out(range.start(), bytes.size()) == bytes);
    EXPECT_SUCCESS(aclrtUnmapMem(range.start()));
    EXPECT_SUCCESS(aclrtFreePhysical(block.give_up()));
    EXPECT_SUCCESS(aclrtReleaseMemAddress(range.give_up()));
  });
  EXPECT_EQ(free_bytes(), held + kHugePage);
}

TEST_F(VirtualMemoryThreads, VGEN_06_ObjectsOutliveTheThreadThatMadeThem) {
  aclrtDrvMemHandle handle = nullptr;
  void* range = nullptr;
  on_bare_thread([&] {
    handle = create_block(kHugePage);
    range = reserve(kHugePage);
    EXPECT_SUCCESS(aclrtMapMem(range, kHugePage, 0, handle, 0));
  });
  expect_usable(range);
  EXPECT_SUCCESS(aclrtUnmapMem(range));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range));
  EXPECT_SUCCESS(aclrtFreePhysical(handle));
}

// A life of own objects, with bytes that would show if another thread's got in.
void live_alone(uint8_t seed) {
  const Range range(3 * kHugePage);
  Block first;
  const Block second;
  Mapping first_mapping(range.start(), first);
  const Mapping second_mapping(range.byte(kHugePage), second);
  const std::vector<uint8_t> bytes = pattern(8 * kKiB, seed);
  void* seam = range.byte(kHugePage - 4 * kKiB);
  copy_in(seam, bytes);

  EXPECT_SUCCESS(aclrtUnmapMem(first_mapping.give_up()));
  const Mapping moved(range.byte(2 * kHugePage), first);
  EXPECT_SUCCESS(aclrtFreePhysical(first.give_up()));
  const std::vector<uint8_t> head = copy_out(range.byte(3 * kHugePage - 4 * kKiB), 4 * kKiB);
  const std::vector<uint8_t> tail = copy_out(range.byte(kHugePage), 4 * kKiB);
  EXPECT_TRUE(std::equal(head.begin(), head.end(), bytes.begin()));
  EXPECT_TRUE(std::equal(tail.begin(), tail.end(), bytes.begin() + 4 * kKiB));
}

TEST_F(VirtualMemoryThreads, VGEN_07_ThreadsWithTheirOwnObjectsDoNotDisturbEachOther) {
  constexpr uint8_t kThreads = 6;
  constexpr int kRounds = 60;
  const FiguresStay watch;
  std::barrier start(kThreads);
  std::vector<std::thread> threads;
  for (uint8_t seed = 1; seed <= kThreads; ++seed) {
    threads.emplace_back([&start, seed] {
      EXPECT_SUCCESS(aclrtSetDevice(0));
      start.arrive_and_wait();
      for (int round = 0; round < kRounds; ++round) live_alone(seed);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

constexpr int kRaces = 100;

// Both calls at the same moment, each on a thread of its own.
template <typename First, typename Second>
std::pair<aclError, aclError> race(First first, Second second) {
  std::barrier start(2);
  aclError first_result = ACL_SUCCESS;
  aclError second_result = ACL_SUCCESS;
  std::thread other([&] {
    start.arrive_and_wait();
    second_result = second();
  });
  start.arrive_and_wait();
  first_result = first();
  other.join();
  return {first_result, second_result};
}

void expect_one_winner(std::pair<aclError, aclError> results) {
  EXPECT_EQ(std::min(results.first, results.second), ACL_SUCCESS);
  EXPECT_EQ(std::max(results.first, results.second), ACL_ERROR_RT_PARAM_INVALID);
}

TEST_F(VirtualMemoryThreads, VGEN_07_OneOfTwoFreesSucceeds) {
  const FiguresStay watch;
  for (int round = 0; round < kRaces; ++round) {
    const aclrtDrvMemHandle handle = create_block(kHugePage);
    const auto call = [handle] { return aclrtFreePhysical(handle); };
    expect_one_winner(race(call, call));
  }
}

TEST_F(VirtualMemoryThreads, VGEN_07_OneOfTwoReleasesSucceeds) {
  for (int round = 0; round < kRaces; ++round) {
    void* range = reserve(kHugePage);
    const auto call = [range] { return aclrtReleaseMemAddress(range); };
    expect_one_winner(race(call, call));
  }
}

TEST_F(VirtualMemoryThreads, VGEN_07_OneOfTwoUnmapsSucceeds) {
  const FiguresStay watch;
  for (int round = 0; round < kRaces; ++round) {
    MappedBlock mapped;
    void* start = mapped.mapping.give_up();
    const auto call = [start] { return aclrtUnmapMem(start); };
    expect_one_winner(race(call, call));
  }
}

TEST_F(VirtualMemoryThreads, VGEN_07_OneOfTwoMapsAtOneAddressSucceeds) {
  const FiguresStay watch;
  for (int round = 0; round < kRaces; ++round) {
    const Block first;
    const Block second;
    const Range range(kHugePage);
    const auto map = [&range](const Block& block) {
      return aclrtMapMem(range.start(), kHugePage, 0, block.handle(), 0);
    };
    const auto results = race([&] { return map(first); }, [&] { return map(second); });
    expect_one_winner(results);
    aclrtDrvMemHandle mapped = nullptr;
    EXPECT_SUCCESS(aclrtMemRetainAllocationHandle(range.start(), &mapped));
    EXPECT_EQ(mapped, results.first == ACL_SUCCESS ? first.handle() : second.handle());
    EXPECT_SUCCESS(aclrtFreePhysical(mapped));
    EXPECT_SUCCESS(aclrtUnmapMem(range.start()));
  }
}

TEST_F(VirtualMemoryThreads, VGEN_07_OneOfTwoWishesForOneAddressIsFulfilled) {
  const uint64_t start = find_free_start(kGiB);
  US_SKIP_UNLESS_FOUND(start);
  for (int round = 0; round < kRaces; ++round) {
    void* first = nullptr;
    void* second = nullptr;
    const auto wish = [start](void** range) {
      return aclrtReserveMemAddress(range, kGiB, 0, address(start), 0);
    };
    expect_one_winner(race([&] { return wish(&first); }, [&] { return wish(&second); }));
    EXPECT_EQ(number(first) + number(second), start);
    EXPECT_SUCCESS(aclrtReleaseMemAddress(address(start)));
  }
}

TEST_F(VirtualMemoryThreads, VGEN_07_ReleaseAgainstMapGivesOneWinner) {
  for (int round = 0; round < kRaces; ++round) {
    const Block block;
    void* range = reserve(kHugePage);
    const auto results = race([&] { return aclrtMapMem(range, kHugePage, 0, block.handle(), 0); },
                              [&] { return aclrtReleaseMemAddress(range); });
    expect_one_winner(results);
    if (results.first == ACL_SUCCESS) {
      EXPECT_SUCCESS(aclrtUnmapMem(range));
      EXPECT_SUCCESS(aclrtReleaseMemAddress(range));
    }
  }
}

// Whoever loses, the pool is full by exactly one block more.
TEST_F(VirtualMemoryThreads, VGEN_07_OneOfTwoTakesTheLastPage) {
  const size_t all_but_one = free_bytes(ACL_HBM_MEM_HUGE) / kHugePage * kHugePage - kHugePage;
  const Block most(all_but_one);
  const FiguresStay watch;
  const aclrtPhysicalMemProp property = block_property();
  for (int round = 0; round < kRaces; ++round) {
    aclrtDrvMemHandle first = nullptr;
    aclrtDrvMemHandle second = nullptr;
    const auto results =
        race([&] { return aclrtMallocPhysical(&first, kHugePage, &property, 0); },
             [&] { return aclrtMallocPhysical(&second, kHugePage, &property, 0); });
    EXPECT_EQ(std::min(results.first, results.second), ACL_SUCCESS);
    EXPECT_EQ(std::max(results.first, results.second), ACL_ERROR_RT_MEMORY_ALLOCATION);
    EXPECT_SUCCESS(aclrtFreePhysical(results.first == ACL_SUCCESS ? first : second));
  }
}

}  // namespace
}  // namespace understudy_test::vmm
