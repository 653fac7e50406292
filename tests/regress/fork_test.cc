// SPDX-License-Identifier: Apache-2.0
//
// Faults once found in fork children: they kept the parent's memory alive, or closed files that
// were not the library's. A child answers through its exit code.
#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <functional>
#include <string>

#include "support/rule_test.h"

namespace understudy_test {
namespace {

int exit_code_of_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool has_open_memory_file() {
  DIR* const folder = opendir("/proc/self/fd");
  bool found = false;
  while (const dirent* entry = readdir(folder)) {
    char target[PATH_MAX] = {};
    const std::string path = std::string("/proc/self/fd/") + entry->d_name;
    if (readlink(path.c_str(), target, sizeof target - 1) > 0) {
      found = found || std::string(target).find("memfd:understudy") != std::string::npos;
    }
  }
  closedir(folder);
  return found;
}

// Device memory in use, so that there is something to inherit.
class ForkTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    block_ = create_block(2 * kMiB);
    range_ = reserve(2 * kMiB);
    ASSERT_SUCCESS(aclrtMapMem(range_, 2 * kMiB, 0, block_, 0));
    copy_in(range_, pattern(4 * kKiB));
  }
  void TearDown() override {
    EXPECT_TRUE(copy_out(range_, 4 * kKiB) == pattern(4 * kKiB));
    EXPECT_SUCCESS(aclrtUnmapMem(range_));
    EXPECT_SUCCESS(aclrtFreePhysical(block_));
    EXPECT_SUCCESS(aclrtReleaseMemAddress(range_));
    DeviceTest::TearDown();
  }

  aclrtDrvMemHandle block_ = nullptr;
  void* range_ = nullptr;
};

TEST_F(ForkTest, AnIdleChildKeepsNoneOfItsParentsMemory) {
  ASSERT_TRUE(has_open_memory_file());
  EXPECT_EQ(exit_code_of_child([] { return has_open_memory_file() ? 1 : 0; }), 0);
}

TEST_F(ForkTest, AChildsOwnFilesStayOpen) {
  const auto body = [] {
    for (int descriptor = 3; descriptor < 256; ++descriptor) close(descriptor);
    int files[16];
    for (int& file : files) file = open("/dev/null", O_WRONLY | O_CLOEXEC);
    uint32_t count = 0;
    if (aclrtGetDeviceCount(&count) != ACL_SUCCESS) return 1;
    for (const int file : files) {
      if (write(file, "x", 1) != 1) return 2;
    }
    return 0;
  };
  EXPECT_EQ(exit_code_of_child(body), 0);
}

TEST_F(ForkTest, AChildStartsCleanAndMayUseTheLibrary) {
  const auto body = [this] {
    if (aclrtFreePhysical(block_) == ACL_SUCCESS) return 1;
    if (aclrtUnmapMem(range_) == ACL_SUCCESS) return 2;
    if (aclrtSetDevice(0) != ACL_SUCCESS) return 3;
    size_t free = 0;
    size_t total = 0;
    if (aclrtGetMemInfo(ACL_HBM_MEM, &free, &total) != ACL_SUCCESS) return 4;
    const aclrtPhysicalMemProp property = block_property();
    aclrtDrvMemHandle block = nullptr;
    void* range = nullptr;
    if (aclrtMallocPhysical(&block, 2 * kMiB, &property, 0) != ACL_SUCCESS) return 5;
    if (aclrtReserveMemAddress(&range, 2 * kMiB, 0, nullptr, 0) != ACL_SUCCESS) return 6;
    if (aclrtMapMem(range, 2 * kMiB, 0, block, 0) != ACL_SUCCESS) return 7;
    if (aclrtMemset(range, 2 * kMiB, 7, 2 * kMiB) != ACL_SUCCESS) return 8;
    return 0;
  };
  EXPECT_EQ(exit_code_of_child(body), 0);
}

// What the program had chosen for the process is the parent's, like its handles.
TEST(ForkChild, StartsWithoutTheChoicesOfItsParent) {
  US_FRESH_PROCESS();
  ASSERT_SUCCESS(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1));
  uint32_t unset = 0;
  ASSERT_SUCCESS(aclrtGetOpExecuteTimeout(&unset));
  ASSERT_SUCCESS(aclrtSetOpExecuteTimeOut(7));
  EXPECT_EQ(exit_code_of_child([unset] {
              int64_t option = -1;
              uint32_t timeout = 1;
              if (aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &option) != ACL_SUCCESS) return 1;
              if (aclrtGetOpExecuteTimeout(&timeout) != ACL_SUCCESS) return 2;
              return option == 0 && timeout == unset ? 0 : 3;
            }),
            0);
}

}  // namespace
}  // namespace understudy_test
