// SPDX-License-Identifier: Apache-2.0
//
// Two models share one device that has room for one of them at a time. While the first one rests,
// its process gives all its device memory back, the second one uses it, and then the first one goes
// on where it was: same addresses, same bytes. The second model is another process.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "acl/acl.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;

void check(aclError code, const char* call) {
  if (code == ACL_SUCCESS) return;
  const char* text = aclGetRecentErrMsg();
  std::fprintf(stderr, "%s failed with %d: %s\n", call, code, text == nullptr ? "" : text);
  std::exit(1);
}
#define CHECK(call) check((call), #call)

size_t free_mebibytes() {
  size_t free = 0;
  size_t total = 0;
  CHECK(aclrtGetMemInfo(ACL_HBM_MEM_HUGE, &free, &total));
  return free / kMiB;
}

void* load_model(size_t size, int contents) {
  void* weights = nullptr;
  CHECK(aclrtMallocAlign32(&weights, size, ACL_MEM_MALLOC_HUGE_ONLY));
  CHECK(aclrtMemset(weights, size, contents, 64 * kMiB));
  return weights;
}

// The other process: it wants nearly all of the device.
int run_second_model(size_t size) {
  CHECK(aclrtSetDevice(0));
  void* weights = nullptr;
  if (aclrtMallocAlign32(&weights, size, ACL_MEM_MALLOC_HUGE_ONLY) != ACL_SUCCESS) return 2;
  CHECK(aclrtMemset(weights, size, 2, kMiB));
  CHECK(aclrtFree(weights));
  return 0;
}

bool second_model_fits(size_t size) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) _exit(run_second_model(size));
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

uint32_t say_stage(int32_t device, void* stage) {
  std::printf("  callback: %s on device %d, %zu MiB free\n", static_cast<const char*>(stage),
              device, free_mebibytes());
  return 0;
}

}  // namespace

int main() {
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
  const size_t size = (free_mebibytes() - 256) * kMiB;
  void* const weights = load_model(size, 1);
  std::printf("the first model has %zu MiB, %zu MiB are free\n", size / kMiB, free_mebibytes());
  std::printf("the second model fits: %s\n", second_model_fits(size) ? "yes" : "no");

  char backup[] = "BACKUP_POST";
  char restore[] = "RESTORE_POST";
  CHECK(aclrtSnapShotCallbackRegister(ACL_RT_SNAPSHOT_BACKUP_POST, say_stage, backup));
  CHECK(aclrtSnapShotCallbackRegister(ACL_RT_SNAPSHOT_RESTORE_POST, say_stage, restore));

  CHECK(aclrtSnapShotProcessLock(getpid(), nullptr));
  CHECK(aclrtSnapShotProcessBackup(getpid(), nullptr));
  std::printf("the first model is backed up, %zu MiB are free\n", free_mebibytes());
  std::printf("the second model fits: %s\n", second_model_fits(size) ? "yes" : "no");
  CHECK(aclrtSnapShotProcessRestore(getpid(), nullptr));
  CHECK(aclrtSnapShotProcessUnlock(getpid(), nullptr));

  std::vector<uint8_t> bytes(kMiB);
  CHECK(aclrtMemcpy(bytes.data(), bytes.size(), weights, bytes.size(), ACL_MEMCPY_DEVICE_TO_HOST));
  size_t right = 0;
  for (const uint8_t byte : bytes) right += byte == 1;
  std::printf("the first model is back at %p, %zu of %zu bytes are as they were\n", weights, right,
              bytes.size());
  CHECK(aclrtFree(weights));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  return right == bytes.size() ? 0 : 1;
}
