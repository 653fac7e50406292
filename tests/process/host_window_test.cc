// SPDX-License-Identifier: Apache-2.0
//
// host_p2p_memory is what all processes of a server have together of the host's memory for copies
// between devices (PHYS-29).
// Covers: PHYS-29.
#include <cstdint>
#include <string>
#include <vector>

#include "process/ledger_objects.h"

namespace understudy_test::ledger {
namespace {

constexpr char kLimit[] = "UNDERSTUDY_HOST_P2P_MEMORY";

aclError take_block(size_t size, aclrtDrvMemHandle* handle) {
  const aclrtPhysicalMemProp property =
      block_property(ACL_MEM_P2P_HUGE, ACL_MEM_LOCATION_TYPE_HOST_NUMA, 0);
  return aclrtMallocPhysical(handle, size, &property, 0);
}

// Takes a block of each size that it is told, keeps them, and frees them all at a size of 0.
US_PEER(HostWindowUser) {
  std::vector<aclrtDrvMemHandle> blocks;
  ASSERT_SUCCESS(aclrtSetDevice(0));
  for (size_t size = 0; channel.receive_bytes(&size, sizeof size);) {
    aclrtDrvMemHandle handle = nullptr;
    const aclError code = size == 0 ? ACL_SUCCESS : take_block(size, &handle);
    if (handle != nullptr) blocks.push_back(handle);
    if (size == 0) {
      for (const aclrtDrvMemHandle block : blocks) EXPECT_SUCCESS(aclrtFreePhysical(block));
      blocks.clear();
    }
    channel.send(code);
  }
}

US_PEER(HostWindowJoiner) { serve_first_call(channel); }

aclError tell(Peer& user, size_t size) {
  user.send(size);
  return user.receive<aclError>();
}

TEST(HostWindow, PHYS_29_ProcessesShareWhatTheHostHas) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"}, {kLimit, "8M"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  Peer user(HostWindowUser);
  EXPECT_EQ(tell(user, 6 * kMiB), ACL_SUCCESS);
  aclrtDrvMemHandle own = nullptr;
  EXPECT_EQ(take_block(4 * kMiB, &own), ACL_ERROR_RT_MEMORY_ALLOCATION);
  EXPECT_EQ(own, nullptr);
  EXPECT_EQ(recent_error(),
            "aclrtMallocPhysical: 4 MiB for copies between devices were asked of the host; it has "
            "2 MiB of 8 MiB free (host_p2p_memory)\n");
  EXPECT_SUCCESS(take_block(2 * kMiB, &own));
  EXPECT_EQ(tell(user, 2 * kMiB), ACL_ERROR_RT_MEMORY_ALLOCATION);
  EXPECT_SUCCESS(aclrtFreePhysical(own));
  EXPECT_EQ(tell(user, 2 * kMiB), ACL_SUCCESS);
  EXPECT_EQ(tell(user, 0), ACL_SUCCESS);
  EXPECT_SUCCESS(take_block(8 * kMiB, &own));
  EXPECT_SUCCESS(aclrtFreePhysical(own));
}

TEST(HostWindow, PHYS_29_WhatADeadProcessHadComesBack) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"}, {kLimit, "8M"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  Peer user(HostWindowUser);
  EXPECT_EQ(tell(user, 8 * kMiB), ACL_SUCCESS);
  aclrtDrvMemHandle own = nullptr;
  EXPECT_EQ(take_block(2 * kMiB, &own), ACL_ERROR_RT_MEMORY_ALLOCATION);
  user.kill();
  EXPECT_SUCCESS(take_block(8 * kMiB, &own));
  EXPECT_SUCCESS(aclrtFreePhysical(own));
}

TEST(HostWindow, ProcessesMustAgreeOnIt) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"}, {kLimit, "8M"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  for (const auto& [value, text] :
       {Variable{"16M", "host_p2p_memory 16 MiB"}, Variable{"none", "host_p2p_memory none"}}) {
    SCOPED_TRACE(value);
    Peer joiner(HostWindowJoiner, {{kLimit, value}});
    const Outcome first = outcome_of(joiner, FirstCall::kSetDevice);
    EXPECT_EQ(first.code, ACL_ERROR_INVALID_PARAM);
    EXPECT_TRUE(first.names("host_p2p_memory 8 MiB")) << first.message();
    EXPECT_TRUE(first.names(text)) << first.message();
  }
}

TEST(HostWindow, ProductsWithoutItIgnoreTheKey) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a2"}, {kLimit, "8M"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  Peer joiner(HostWindowJoiner, {{kLimit, "16M"}});
  const Outcome first = outcome_of(joiner, FirstCall::kSetDevice);
  EXPECT_EQ(first.code, ACL_SUCCESS) << first.message();
}

}  // namespace
}  // namespace understudy_test::ledger
