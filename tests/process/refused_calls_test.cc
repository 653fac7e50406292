// SPDX-License-Identifier: Apache-2.0
//
// Hosts that refuse a system call which the library would like to use, as old kernels and
// containers do: everything works by other means. Each test runs in a program that was started
// behind a filter, so the library never saw the call succeed.
#include "support/refused_calls.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "rules/share_objects.h"
#include "support/fork_safety.h"
#include "support/process_environment.h"

namespace understudy_test::share {
namespace {

// Starts this program anew, with the same arguments, behind filters that `refuse` installs: so they
// are there before the library is loaded. Returns in the program that was started anew.
inline void restart_behind(const std::function<bool()>& refuse) {
  constexpr const char* kMark = "UNDERSTUDY_TEST_REFUSED";
  if (getenv(kMark) != nullptr) return;
  std::vector<std::string> arguments;
  std::ifstream command("/proc/self/cmdline");
  for (std::string argument; std::getline(command, argument, '\0');) arguments.push_back(argument);
  std::vector<char*> pointers = pointers_to(arguments);
  if (refuse() && setenv(kMark, "1", 1) == 0) execv("/proc/self/exe", pointers.data());
  FAIL() << "no restart behind a filter: " << strerror(errno);
}

struct Refusal {
  const char* name;
  std::function<bool()> install;
};
void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.name; }

class RefusedCalls : public testing::TestWithParam<Refusal> {};

constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, which older headers lack
constexpr int kCollapse = 25;       // MADV_COLLAPSE

INSTANTIATE_TEST_SUITE_P(
    Of, RefusedCalls,
    testing::Values(
        Refusal{"pidfd_open_unknown", [] { return refuse_system_call(SYS_pidfd_open, ENOSYS); }},
        Refusal{"pidfd_open_forbidden", [] { return refuse_system_call(SYS_pidfd_open, EPERM); }},
        Refusal{"getrandom_unknown", [] { return refuse_system_call(SYS_getrandom, ENOSYS); }},
        Refusal{"getrandom_forbidden", [] { return refuse_system_call(SYS_getrandom, EPERM); }},
        Refusal{"wipe_on_fork", [] { return refuse_advice(MADV_WIPEONFORK, EINVAL); }},
        Refusal{"populate_write", [] { return refuse_advice(kPopulateWrite, EINVAL); }},
        Refusal{"collapse", [] { return refuse_advice(kCollapse, EINVAL); }},
        Refusal{"all",
                [] {
                  return refuse_system_call(SYS_pidfd_open, ENOSYS) &&
                         refuse_system_call(SYS_getrandom, ENOSYS) &&
                         refuse_advice(MADV_WIPEONFORK, EINVAL) &&
                         refuse_advice(kPopulateWrite, EINVAL) && refuse_advice(kCollapse, EINVAL);
                }}),
    [](const auto& item) { return std::string(item.param.name); });

int use_device_and_host_memory() {
  if (aclrtSetDevice(0) != ACL_SUCCESS) return 1;
  void* device = nullptr;
  void* host = nullptr;
  aclrtStream stream = nullptr;
  if (aclrtMalloc(&device, 4 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS) return 2;
  if (aclrtMallocHost(&host, 4 * kMiB) != ACL_SUCCESS) return 3;
  if (aclrtCreateStream(&stream) != ACL_SUCCESS) return 4;
  memset(host, 7, 4 * kMiB);
  if (aclrtMemcpyAsync(device, 4 * kMiB, host, 4 * kMiB, ACL_MEMCPY_HOST_TO_DEVICE, stream) !=
          ACL_SUCCESS ||
      aclrtSynchronizeStream(stream) != ACL_SUCCESS) {
    return 5;
  }
  memset(host, 0, 4 * kMiB);
  if (aclrtMemcpy(host, 4 * kMiB, device, 4 * kMiB, ACL_MEMCPY_DEVICE_TO_HOST) != ACL_SUCCESS) {
    return 6;
  }
  if (static_cast<const uint8_t*>(host)[4 * kMiB - 1] != 7) return 7;
  if (aclrtDestroyStream(stream) != ACL_SUCCESS) return 8;
  if (aclrtFreeHost(host) != ACL_SUCCESS || aclrtFree(device) != ACL_SUCCESS) return 9;
  return 0;
}

TEST_P(RefusedCalls, MemoryAndStreamsWork) {
  US_FRESH_PROCESS();
  ASSERT_NO_FATAL_FAILURE(restart_behind(GetParam().install));
  EXPECT_EQ(use_device_and_host_memory(), 0) << recent_error();
}

TEST_P(RefusedCalls, ForkChildHasARuntimeOfItsOwn) {
  US_SKIP_UNLESS_THREADS_MAY_FORK();
  US_FRESH_PROCESS();
  ASSERT_NO_FATAL_FAILURE(restart_behind(GetParam().install));
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const aclrtDrvMemHandle block = create_block(2 * kMiB);
  const pid_t child = fork();
  if (child == 0) {
    // Without the handles of its parent, and with the parent's charge still there.
    if (aclrtFreePhysical(block) == ACL_SUCCESS) _exit(20);
    _exit(use_device_and_host_memory());
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_SUCCESS(aclrtFreePhysical(block));
}

TEST_P(RefusedCalls, WhitelistAdmitsThoseItNamesAndNoOthers) {
  US_FRESH_PROCESS();
  ASSERT_NO_FATAL_FAILURE(restart_behind(GetParam().install));
  ASSERT_SUCCESS(aclrtSetDevice(0));
  Remote listed;
  Remote other;
  const Offer offer = offer_block(kGranule, kListed, 7);
  const Offer second = offer_block(kGranule, kEveryone, 9);
  EXPECT_NE(offer.token, second.token);
  list(offer.token, {listed.id()});
  EXPECT_EQ(other.import(offer.token), ACL_ERROR_RT_NO_PERMISSION);
  {
    RemoteView view(listed, offer.token);
    EXPECT_TRUE(view.shows(7));
    view.write(8);
    EXPECT_TRUE(is_marked(offer.view.start, kGranule, 8));
  }
  RemoteView open(other, second.token);
  EXPECT_TRUE(open.shows(9));
}

TEST_P(RefusedCalls, EndOfAProcessIsNoticed) {
  US_FRESH_PROCESS();
  ASSERT_NO_FATAL_FAILURE(restart_behind(GetParam().install));
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const size_t before = free_bytes(ACL_HBM_MEM_HUGE);
  Remote exporter;
  const Offer offer = exporter.call(offer_block, kGranule, kEveryone, uint8_t{7});
  const View view = import_view(offer.token, kGranule, 0);
  exporter.kill();
  EXPECT_EQ(import_with(Version::kV1, offer.token, 0).code, ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_TRUE(is_marked(view.start, kGranule, 7));
  close_view(view);
  EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE), before);
}

}  // namespace
}  // namespace understudy_test::share
