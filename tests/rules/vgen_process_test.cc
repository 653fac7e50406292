// SPDX-License-Identifier: Apache-2.0
//
// The end of a process gives back what it held, however it ends.
// Covers: VGEN-10.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <ostream>

#include "rules/vmm_objects.h"

namespace understudy_test::vmm {
namespace {

class Pipe {
 public:
  Pipe() {
    if (pipe(ends_.data()) != 0) abort();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close(ends_[0]);
    close_writing();
  }
  void close_writing() {
    if (ends_[1] >= 0) close(std::exchange(ends_[1], -1));
  }
  bool send(char byte) { return write(ends_[1], &byte, 1) == 1; }
  // The next byte, or 0 when the other side is gone.
  char receive() {
    char byte = 0;
    return read(ends_[0], &byte, 1) == 1 ? byte : '\0';
  }

 private:
  std::array<int, 2> ends_;
};

constexpr size_t kHeldBlocks = 4;
constexpr size_t kHeldBytes = kHeldBlocks * kHugePage;

bool map_new_block(void* start, aclrtDrvMemHandle* handle) {
  const aclrtPhysicalMemProp property = block_property();
  return aclrtMallocPhysical(handle, kHugePage, &property, 0) == ACL_SUCCESS &&
         aclrtMapMem(start, kHugePage, 0, *handle, 0) == ACL_SUCCESS &&
         aclrtMemset(start, kHugePage, 0x3C, kHugePage) == ACL_SUCCESS;
}

// Four blocks: one never mapped, one mapped, one held by its mapping alone, one retained.
bool hold_blocks() {
  void* range = nullptr;
  aclrtDrvMemHandle handle = nullptr;
  const aclrtPhysicalMemProp property = block_property();
  return aclrtSetDevice(0) == ACL_SUCCESS &&
         aclrtReserveMemAddress(&range, kHeldBytes, 0, nullptr, 0) == ACL_SUCCESS &&
         aclrtMallocPhysical(&handle, kHugePage, &property, 0) == ACL_SUCCESS &&
         map_new_block(range, &handle) && map_new_block(at(range, kHugePage), &handle) &&
         aclrtFreePhysical(handle) == ACL_SUCCESS &&
         map_new_block(at(range, 2 * kHugePage), &handle) &&
         aclrtMemRetainAllocationHandle(at(range, 2 * kHugePage), &handle) == ACL_SUCCESS;
}

struct Ending {
  const char* name;
  int signal;  // 0: the process ends by itself
};

void PrintTo(const Ending& ending, std::ostream* out) { *out << ending.name; }

class ProcessEnd : public testing::TestWithParam<Ending> {};

INSTANTIATE_TEST_SUITE_P(Ways, ProcessEnd,
                         testing::Values(Ending{"exit", 0}, Ending{"SIGTERM", SIGTERM},
                                         Ending{"SIGKILL", SIGKILL}),
                         [](const auto& item) { return std::string(item.param.name); });

TEST_P(ProcessEnd, VGEN_10_EverythingTheProcessHeldIsDropped) {
  // Fresh, so that the child is born before this process has used the library.
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a2"});
  Pipe to_parent;
  Pipe to_child;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    to_child.close_writing();
    to_parent.send(hold_blocks() ? 'y' : 'n');
    to_child.receive();
    _exit(0);
  }
  to_parent.close_writing();
  const char answer = to_parent.receive();
  if (GetParam().signal == 0) {
    to_child.close_writing();
  } else {
    EXPECT_EQ(kill(child, GetParam().signal), 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(answer, 'y') << "the other process could not get its blocks";
  // Everything of the device can be had by others.
  const DeviceBinding binding;
  size_t free = 0;
  size_t total = 0;
  ASSERT_SUCCESS(aclrtGetMemInfo(ACL_HBM_MEM_HUGE, &free, &total));
  EXPECT_EQ(free, total);
  const aclrtDrvMemHandle all = create_block(total);
  EXPECT_SUCCESS(aclrtFreePhysical(all));
}

}  // namespace
}  // namespace understudy_test::vmm
