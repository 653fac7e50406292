// SPDX-License-Identifier: Apache-2.0
//
// How many instructions is a public call? This program makes one round of calls as often as it is
// asked to; scripts/budget.py has Valgrind count what that takes, and compares it with
// bench/budget/budget.json.
//
//   bench_budget --list          the names of the rounds
//   bench_budget ROUND COUNT     makes that round so often
//   bench_budget --smoke         makes each a few times
//
// The bytes that are moved are few: what the C library does with them is not counted.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "support/device.h"
#include "support/fail.h"
#include "support/private_server.h"

using namespace bench;

namespace {

constexpr size_t kFew = 64;
constexpr size_t kPage = size_t{4} << 10;

template <typename Calls>
void repeat(uint64_t count, Calls calls) {
  for (uint64_t i = 0; i < count; ++i) calls();
}

void* allocate(size_t size) {
  void* memory = nullptr;
  check(aclrtMalloc(&memory, size, ACL_MEM_MALLOC_HUGE_FIRST));
  return memory;
}

// What a copy has written before.
void* allocate_written(size_t size) {
  void* const memory = allocate(size);
  check(aclrtMemset(memory, size, 1, size));
  return memory;
}

// ---- Copies ----

void copy_to_device(uint64_t count) {
  void* const device = allocate_written(kPage);
  char host[kFew] = {};
  repeat(count, [&] { check(aclrtMemcpy(device, kFew, host, kFew, ACL_MEMCPY_HOST_TO_DEVICE)); });
}

void copy_to_host(uint64_t count) {
  void* const device = allocate_written(kPage);
  char host[kFew] = {};
  repeat(count, [&] { check(aclrtMemcpy(host, kFew, device, kFew, ACL_MEMCPY_DEVICE_TO_HOST)); });
}

void copy_within_device(uint64_t count) {
  void* const to = allocate_written(kPage);
  void* const from = allocate_written(kPage);
  repeat(count, [&] { check(aclrtMemcpy(to, kFew, from, kFew, ACL_MEMCPY_DEVICE_TO_DEVICE)); });
}

void set(uint64_t count) {
  void* const device = allocate_written(kPage);
  repeat(count, [&] { check(aclrtMemset(device, kFew, 1, kFew)); });
}

// ---- Allocations ----

void allocate_and_free(uint64_t count) {
  repeat(count, [] { check(aclrtFree(allocate(kPage))); });
}

void allocate_and_free_on_host(uint64_t count) {
  repeat(count, [] {
    void* memory = nullptr;
    check(aclrtMallocHost(&memory, kPage));
    check(aclrtFreeHost(memory));
  });
}

void allocate_and_free_in_pool(uint64_t count) {
  const aclrtStream stream = create_stream();
  const aclrtMemPool pool = create_pool();
  repeat(count, [&] {
    void* memory = nullptr;
    check(aclrtMemPoolMallocAsync(&memory, kPage, pool, stream));
    check(aclrtMemPoolFreeAsync(memory, stream));
  });
  check(aclrtSynchronizeStream(stream));
}

// ---- Virtual memory ----

void create_map_unmap_free(uint64_t count) {
  std::byte* const address = reserve_addresses(kGranule);
  repeat(count, [&] {
    const aclrtDrvMemHandle block = create_block(kGranule);
    map_block(address, kGranule, block);
    check(aclrtUnmapMem(address));
    check(aclrtFreePhysical(block));
  });
}

void map_and_unmap(uint64_t count) {
  std::byte* const address = reserve_addresses(kGranule);
  const aclrtDrvMemHandle block = create_block(kGranule);
  repeat(count, [&] {
    map_block(address, kGranule, block);
    check(aclrtUnmapMem(address));
  });
}

void reserve_and_release(uint64_t count) {
  repeat(count, [] { check(aclrtReleaseMemAddress(reserve_addresses(kGranule))); });
}

// ---- Questions ----

void get_memory_information(uint64_t count) {
  size_t free = 0;
  size_t total = 0;
  repeat(count, [&] { check(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total)); });
}

void get_pointer_attributes(uint64_t count) {
  void* const device = allocate_written(kPage);
  aclrtPtrAttributes attributes = {};
  repeat(count, [&] { check(aclrtPointerGetAttributes(device, &attributes)); });
}

void set_device(uint64_t count) {
  repeat(count, [] { check(aclrtSetDevice(0)); });
}

// ---- Streams, whose tasks run on a thread of their own ----

void copy_and_synchronize(uint64_t count) {
  const aclrtStream stream = create_stream();
  void* const device = allocate_written(kPage);
  void* host = nullptr;
  check(aclrtMallocHost(&host, kPage));
  repeat(count, [&] {
    check(aclrtMemcpyAsync(device, kFew, host, kFew, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    check(aclrtSynchronizeStream(stream));
  });
}

void record_event(uint64_t count) {
  const aclrtStream stream = create_stream();
  aclrtEvent event = nullptr;
  check(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
  repeat(count, [&] { check(aclrtRecordEvent(event, stream)); });
  check(aclrtSynchronizeStream(stream));
}

struct Round {
  const char* name;
  void (*make)(uint64_t count);
};
constexpr Round kRounds[] = {
    {"memcpy 64 B H2D", copy_to_device},
    {"memcpy 64 B D2H", copy_to_host},
    {"memcpy 64 B D2D", copy_within_device},
    {"memset 64 B", set},
    {"malloc + free 4 KiB", allocate_and_free},
    {"malloc + free 4 KiB host", allocate_and_free_on_host},
    {"malloc + free 4 KiB pool", allocate_and_free_in_pool},
    {"create + map + unmap + free 2 MiB", create_map_unmap_free},
    {"map + unmap 2 MiB", map_and_unmap},
    {"reserve + release 2 MiB", reserve_and_release},
    {"get memory information", get_memory_information},
    {"get pointer attributes", get_pointer_attributes},
    {"set device", set_device},
    {"async memcpy 64 B H2D + synchronize", copy_and_synchronize},
    {"record event", record_event},
};

}  // namespace

int main(int argc, char** argv) {
  constexpr uint64_t kSmoke = 10;
  const char* const name = argc > 1 ? argv[1] : "";
  if (argc == 2 && strcmp(name, "--list") == 0) {
    for (const Round& round : kRounds) puts(round.name);
    return 0;
  }
  const bool is_smoke = argc == 2 && strcmp(name, "--smoke") == 0;
  if (argc != 3 && !is_smoke)
    fail("knows --list, --smoke and ROUND COUNT; ./dev bench --budget runs it");
  const uint64_t count = is_smoke ? kSmoke : strtoull(argv[2], nullptr, 10);
  use_private_server();
  start_device();
  bool is_known = false;
  for (const Round& round : kRounds) {
    if (!is_smoke && strcmp(name, round.name) != 0) continue;
    round.make(count);
    is_known = true;
  }
  if (!is_known) fail("there is no round '%s'; bench_budget --list names them", name);
}
