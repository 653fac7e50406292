// SPDX-License-Identifier: Apache-2.0
//
// Four processes use managed memory at the same time: in each of them the CPU and the devices see
// one another's writes, prefetch and advice keep their order, and none notices another one's end.
// Covers: MANAGED-04, MANAGED-16, MANAGED-22.
#include <cstdint>
#include <memory>
#include <vector>

#include "rules/managed_objects.h"
#include "support/peer.h"

namespace understudy_test {
namespace {

constexpr size_t kSize = 3 * kGranule;
constexpr uint32_t kRounds = 20;

// One exchange between CPU and device: counts up in memory, each side adding to what the other
// wrote.
void exchange(const ManagedBlock& block, uint32_t round, int32_t device, aclrtStream stream) {
  auto* const words = static_cast<volatile uint32_t*>(block.data());
  const size_t last = kSize / sizeof(uint32_t) - 1;
  words[last] = round;  // the CPU
  // The device carries it to the front, in the order of the stream, with hints in between.
  EXPECT_SUCCESS(aclrtMemManagedPrefetchAsync(block.data(), kSize, on_device(device), 0, stream));
  EXPECT_SUCCESS(aclrtMemcpyAsync(block.data(), 4, block.at(last * 4), 4,
                                  ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
  EXPECT_SUCCESS(aclrtMemcpyAsync(block.at(kGranule), 4, block.data(), 4,
                                  ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
  EXPECT_SUCCESS(aclrtMemManagedPrefetchAsync(block.data(), kGranule, on_host(), 0, stream));
  EXPECT_EQ(last_prefetch(block.data(), kGranule), kHostId);
  EXPECT_EQ(last_prefetch(block.at(kGranule), kGranule), device);
  EXPECT_SUCCESS(finish(stream));
  EXPECT_EQ(words[0], round);
  EXPECT_EQ(words[kGranule / 4], round);
  EXPECT_SUCCESS(aclrtMemManagedAdvise(block.data(), kGranule,
                                       ACL_MEM_ADVISE_SET_PREFERRED_LOCATION,
                                       on_device(static_cast<int32_t>(round % 8))));
  EXPECT_EQ(preferred(block.data(), kGranule), static_cast<int32_t>(round % 8));
}

// Exchanges as often as it is told, and answers each time.
US_PEER(ManagedExchanges) {
  const auto device = channel.receive<int32_t>();
  ASSERT_SUCCESS(aclrtSetDevice(device));
  {
    const ManagedBlock block(kSize);
    const TestStream stream;
    for (uint32_t round = 0; channel.receive_bytes(&round, sizeof round);) {
      exchange(block, round, device, stream.get());
      channel.send(testing::Test::HasFailure());
    }
  }
  EXPECT_SUCCESS(aclrtResetDeviceForce(device));
}

TEST(ManagedMemoryOfProcesses, MANAGED_04_MANAGED_16_FourOfThemUseItAtTheSameTime) {
  std::vector<std::unique_ptr<Peer>> peers;
  for (int32_t i = 0; i < 4; ++i) {
    peers.push_back(std::make_unique<Peer>(ManagedExchanges));
    peers.back()->send(i % 2);  // two on each of two devices
  }
  for (uint32_t round = 1; round <= kRounds; ++round) {
    for (const auto& peer : peers) peer->send(round);
    for (const auto& peer : peers) EXPECT_FALSE(peer->receive<bool>()) << "round " << round;
    if (round == kRounds / 2) {  // one is killed with work under way
      peers.back()->send(round);
      peers.back()->kill();
      peers.pop_back();
    }
  }
  for (const auto& peer : peers) peer->finish();
}

TEST(ManagedMemoryOfProcesses, MANAGED_22_TheLimitIsEachProcesssOwn) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  {
    void* large = nullptr;
    const aclError code = aclrtMemAllocManaged(&large, 3 * kTiB, kGlobal);
    if (code == ACL_ERROR_RT_FEATURE_NOT_SUPPORT) {
      GTEST_SKIP() << "this host has no 3 TiB of addresses";
    }
    ASSERT_SUCCESS(code);
    Peer peer(ManagedExchanges);
    peer.send(int32_t{0});
    peer.send(uint32_t{1});
    EXPECT_FALSE(peer.receive<bool>());
    peer.finish();
    EXPECT_SUCCESS(aclrtFree(large));
  }
  EXPECT_SUCCESS(aclrtResetDeviceForce(0));
}

}  // namespace
}  // namespace understudy_test
