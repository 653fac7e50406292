// SPDX-License-Identifier: Apache-2.0
//
// Tests that pass, fail and leak on purpose, for test_gtest_listener.py, which reads what they
// print. The argument --leaks=warn or --leaks=off, and --no-errors, are options of the listener.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "understudy/gtest_listener.h"
#include "understudy/leak_limits.h"

namespace {

constexpr std::size_t kSize = (2 << 20) - 64;  // with the padding, one huge page

class OnDevice : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS); }
};

TEST_F(OnDevice, IsClean) {
  void* memory = nullptr;
  ASSERT_EQ(aclrtMalloc(&memory, kSize, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(memory), ACL_SUCCESS);
  EXPECT_NE(aclrtFree(nullptr), ACL_SUCCESS);
}

TEST_F(OnDevice, LeaksMemoryAndStreams) {
  void* memory = nullptr;
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtMalloc(&memory, kSize, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
}

TEST_F(OnDevice, LeavesWhatItsResetEnds) {
  void* memory = nullptr;
  ASSERT_EQ(aclrtMalloc(&memory, kSize, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDeviceForce(0), ACL_SUCCESS);
}

TEST_F(OnDevice, Fails) {
  EXPECT_NE(aclrtFree(nullptr), ACL_SUCCESS);
  (void)aclGetRecentErrMsg();
  std::thread([] { EXPECT_NE(aclrtFreeHost(nullptr), ACL_SUCCESS); }).join();
  EXPECT_EQ(aclrtSetDevice(99), ACL_SUCCESS);
}

TEST_F(OnDevice, FailsOften) {
  for (int i = 0; i < 1000; ++i) EXPECT_NE(aclrtSetDevice(1000 + i), ACL_SUCCESS);
  FAIL();
}

TEST_F(OnDevice, FailsAndLeaks) {
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
  FAIL() << "its own reason";
}

TEST_F(OnDevice, FailsWithoutErrors) { FAIL(); }

void* allocate(std::size_t size) {
  void* memory = nullptr;
  EXPECT_EQ(aclrtMalloc(&memory, size, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  return memory;
}

TEST_F(OnDevice, LimitAllowsWhatEnds) {
  const understudy::testing::LimitLeaks limit;
  EXPECT_EQ(aclrtFree(allocate(kSize)), ACL_SUCCESS);
}

TEST_F(OnDevice, LimitIsPassed) {
  void* memory = nullptr;
  {
    const understudy::testing::LimitLeaks limit;
    memory = allocate(kSize);
  }
  EXPECT_EQ(aclrtFree(memory), ACL_SUCCESS);
}

TEST_F(OnDevice, LimitAllowsBytes) {
  void* memory = nullptr;
  {
    const understudy::testing::LimitLeaks limit(2 << 20);
    memory = allocate(kSize);
  }
  EXPECT_EQ(aclrtFree(memory), ACL_SUCCESS);
}

TEST_F(OnDevice, LimitOfObjectsIsPassed) {
  void* memory[] = {nullptr, nullptr};
  {
    const understudy::testing::LimitLeaks limit(4 << 20, 1);
    for (void*& each : memory) each = allocate(kSize);
  }
  for (void* const each : memory) EXPECT_EQ(aclrtFree(each), ACL_SUCCESS);
}

TEST_F(OnDevice, RatchetHolds) {
  void* first = nullptr;
  EXPECT_TRUE(understudy::testing::ratchet([&] {
    if (first == nullptr) first = allocate(kSize);  // what the first cycle keeps is no growth
    EXPECT_EQ(aclrtFree(allocate(kSize)), ACL_SUCCESS);
  }));
  EXPECT_EQ(aclrtFree(first), ACL_SUCCESS);
}

TEST_F(OnDevice, RatchetFindsGrowth) {
  std::vector<void*> kept;
  (void)understudy::testing::ratchet([&] { kept.push_back(allocate(kSize)); }, 6, 2);
  EXPECT_EQ(kept.size(), 6U);
  for (void* const each : kept) EXPECT_EQ(aclrtFree(each), ACL_SUCCESS);
}

TEST(Server, IsThatOfTheProgram) { std::printf("server %s\n", getenv("UNDERSTUDY_RUNTIME_DIR")); }

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  understudy::testing::Options options;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--leaks=warn") == 0) options.leaks = understudy::testing::Leaks::kWarn;
    if (strcmp(argv[i], "--leaks=off") == 0) options.leaks = understudy::testing::Leaks::kOff;
    if (strcmp(argv[i], "--no-errors") == 0) options.errors = false;
  }
  const bool has_server = understudy::testing::private_server();
  const bool is_installed = understudy::testing::install(options);
  std::printf("private server: %d, installed: %d\n", has_server, is_installed);
  return RUN_ALL_TESTS();
}
