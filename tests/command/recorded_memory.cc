// SPDX-License-Identifier: Apache-2.0
// A program with all that exports of recordings show, for test_trace_exports.py: memory of two
// devices, of the host and of a child, in use and not; streams that wait for each other; calls that
// fail; and memory that is never freed.
//   recorded_memory           one round
//   recorded_memory CALLS     that many calls at least, of allocations that live for a while
#include <acl/acl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <deque>

namespace {

constexpr size_t kMiB = size_t{1} << 20;

void require(aclError code, const char* what) {
  if (code == ACL_SUCCESS) return;
  fprintf(stderr, "%s: %d\n", what, code);
  exit(2);
}
#define REQUIRE(call) require(call, #call)

[[gnu::noinline]] void* allocate(size_t bytes) {
  void* memory = nullptr;
  REQUIRE(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  return memory;
}

aclrtPhysicalMemProp properties(uint32_t device) {
  aclrtPhysicalMemProp prop = {};
  prop.memAttr = ACL_HBM_MEM_HUGE;
  prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = device;
  return prop;
}

[[gnu::noinline]] aclrtDrvMemHandle create_block(size_t bytes) {
  const aclrtPhysicalMemProp prop = properties(0);
  aclrtDrvMemHandle block = nullptr;
  REQUIRE(aclrtMallocPhysical(&block, bytes, &prop, 0));
  return block;
}

// One block is mapped twice, one is mapped again elsewhere, and one nowhere at the end.
[[gnu::noinline]] void use_virtual_memory() {
  void* base = nullptr;
  REQUIRE(aclrtReserveMemAddress(&base, 64 * kMiB, 0, nullptr, 1));
  char* const range = static_cast<char*>(base);
  aclrtDrvMemHandle twice = create_block(2 * kMiB);
  aclrtDrvMemHandle again = create_block(4 * kMiB);
  aclrtDrvMemHandle nowhere = create_block(6 * kMiB);
  REQUIRE(aclrtMapMem(range, 2 * kMiB, 0, twice, 0));
  REQUIRE(aclrtMapMem(range + 8 * kMiB, 2 * kMiB, 0, twice, 0));
  REQUIRE(aclrtUnmapMem(range));
  REQUIRE(aclrtMapMem(range, 4 * kMiB, 0, again, 0));
  REQUIRE(aclrtUnmapMem(range));
  REQUIRE(aclrtMapMem(range, 6 * kMiB, 0, nowhere, 0));
  REQUIRE(aclrtUnmapMem(range));
  REQUIRE(aclrtMapMem(range + 16 * kMiB, 4 * kMiB, 0, again, 0));
  aclrtDrvMemHandle freed = create_block(8 * kMiB);
  REQUIRE(aclrtFreePhysical(freed));
}

// None of them finds enough memory.
[[gnu::noinline]] void ask_for_too_much() {
  void* memory = nullptr;
  aclrtDrvMemHandle block = nullptr;
  const aclrtPhysicalMemProp prop = properties(1);
  const size_t too_much = size_t{1} << 44;
  if (aclrtMalloc(&memory, too_much, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS) exit(3);
  if (aclrtMallocPhysical(&block, too_much, &prop, 0) == ACL_SUCCESS) exit(3);
  if (aclrtFree(nullptr) == ACL_SUCCESS) exit(3);
}

void do_nothing(void*) {}

[[gnu::noinline]] void use_streams() {
  aclrtStream first = nullptr;
  aclrtStream second = nullptr;
  aclrtEvent event = nullptr;
  void* host = nullptr;
  void* const memory = allocate(12 * kMiB);
  REQUIRE(aclrtCreateStream(&first));
  REQUIRE(aclrtCreateStream(&second));
  REQUIRE(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC));
  REQUIRE(aclrtMallocHost(&host, kMiB));
  REQUIRE(aclrtLaunchHostFunc(first, do_nothing, nullptr));
  REQUIRE(aclrtRecordEvent(event, first));
  REQUIRE(aclrtStreamWaitEvent(second, event));
  REQUIRE(aclrtMemcpyAsync(memory, kMiB, host, kMiB, ACL_MEMCPY_HOST_TO_DEVICE, second));
  REQUIRE(aclrtSynchronizeStream(second));
  REQUIRE(aclrtSynchronizeStream(first));
  REQUIRE(aclrtDestroyEvent(event));
  REQUIRE(aclrtDestroyStream(first));
  REQUIRE(aclrtDestroyStream(second));
  REQUIRE(aclrtFreeHost(host));
  REQUIRE(aclrtFree(memory));
}

// At the addresses of its parent's memory.
void use_memory_in_child() {
  const pid_t child = fork();
  if (child == 0) {
    REQUIRE(aclInit(nullptr));
    REQUIRE(aclrtSetDevice(0));
    void* const memory = allocate(5 * kMiB);
    allocate(kMiB);
    REQUIRE(aclrtFree(memory));
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) exit(4);
}

void use_everything() {
  use_memory_in_child();
  REQUIRE(aclInit(nullptr));
  REQUIRE(aclrtSetDevice(1));
  allocate(7 * kMiB);
  REQUIRE(aclrtSetDevice(0));
  allocate(1000);
  use_virtual_memory();
  ask_for_too_much();
  use_streams();
}

void make_calls(unsigned long calls) {
  REQUIRE(aclInit(nullptr));
  REQUIRE(aclrtSetDevice(0));
  std::deque<void*> alive;
  for (unsigned long call = 0; call < calls; call += 2) {
    alive.push_back(allocate((call % 97 + 1) * 65536));
    if (alive.size() <= 200) continue;
    REQUIRE(aclrtFree(alive.front()));
    alive.pop_front();
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1) {
    make_calls(strtoul(arguments[1], nullptr, 10));
  } else {
    use_everything();
  }
  _exit(0);  // nothing is given back
}
