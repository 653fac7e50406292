// SPDX-License-Identifier: Apache-2.0
//
// Plans the memory of an inference server with the allocation policies, on one device, and prints
// where each block went: which pages it has, and what it cost the device. Written against the
// public headers alone, it runs unchanged on an Ascend device.
//
//   weights        huge pages or nothing: a model that falls back to small pages is too slow
//   lookup table   the same for all requests: read-only for the program once it is placed
//   KV cache       giant pages, where the device has them
//   activations    huge pages first, and it may fall back
//   flags          a few bytes each, in normal pages
//   staging        page-locked host memory, cut into pieces by hand
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "acl/acl_understudy.h"

// Only the software NPU has these.
extern "C" __attribute__((weak)) aclError aclUnderstudyGetBacking(int32_t deviceId,
                                                                  aclUnderstudyBacking* backing);
extern "C" __attribute__((weak)) aclError aclUnderstudyGetHostMemory(
    aclUnderstudyHostMemory* memory);

namespace {

constexpr size_t kKiB = size_t{1} << 10;
constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kGiB = size_t{1} << 30;

void check(aclError code, const char* call) {
  if (code == ACL_SUCCESS) return;
  const char* text = aclGetRecentErrMsg();
  std::fprintf(stderr, "%s failed with %d: %s\n", call, code, text == nullptr ? "" : text);
  std::exit(1);
}
#define CHECK(call) check((call), #call)

std::string text_of(size_t bytes) {
  char text[32];
  if (bytes >= kGiB && bytes % (kGiB / 4) == 0) {
    std::snprintf(text, sizeof text, "%.4g GiB", static_cast<double>(bytes) / kGiB);
  } else if (bytes >= kMiB) {
    std::snprintf(text, sizeof text, "%.4g MiB", static_cast<double>(bytes) / kMiB);
  } else if (bytes >= kKiB) {
    std::snprintf(text, sizeof text, "%.4g KiB", static_cast<double>(bytes) / kKiB);
  } else {
    std::snprintf(text, sizeof text, "%zu B", bytes);
  }
  return text;
}

size_t free_of(aclrtMemAttr kind) {
  size_t free = 0;
  size_t total = 0;
  CHECK(aclrtGetMemInfo(kind, &free, &total));
  return free;
}

struct Free {
  size_t normal = free_of(ACL_MEM_NORMAL);
  size_t huge = free_of(ACL_MEM_HUGE);
};

// One line of the plan. Several policies are tried in turn: 207000 and 207001 say "not this way".
struct Wish {
  const char* name;
  size_t size;
  std::vector<uint32_t> policies;
  uint16_t module;  // shows up in aclrtGetMemUsageInfo
};

const char* name_of(uint32_t policy) {
  switch (policy & ~uint32_t{ACL_MEM_ACCESS_USER_SPACE_READONLY}) {
    case ACL_MEM_MALLOC_HUGE_FIRST:
      return "HUGE_FIRST";
    case ACL_MEM_MALLOC_HUGE_ONLY:
      return "HUGE_ONLY";
    case ACL_MEM_MALLOC_NORMAL_ONLY:
      return "NORMAL_ONLY";
    case ACL_MEM_MALLOC_HUGE1G_ONLY:
      return "HUGE1G_ONLY";
    default:
      return "other";
  }
}

bool means_try_another(aclError code) {
  return code == ACL_ERROR_RT_FEATURE_NOT_SUPPORT || code == ACL_ERROR_RT_MEMORY_ALLOCATION;
}

void show(const Wish& wish, uint32_t policy, void* block, const Free& before) {
  const Free after;
  aclrtPtrAttributes attributes;
  CHECK(aclrtPointerGetAttributes(block, &attributes));
  const bool read_only = (policy & ACL_MEM_ACCESS_USER_SPACE_READONLY) != 0;
  std::printf("  %-13s %9s  %-11s%-3s 0x%012" PRIx64 "  %7s pages  %9s normal %9s huge\n",
              wish.name, text_of(wish.size).c_str(), name_of(policy), read_only ? " ro" : "",
              reinterpret_cast<uint64_t>(block), text_of(attributes.pageSize).c_str(),
              text_of(before.normal - after.normal).c_str(),
              text_of(before.huge - after.huge).c_str());
}

void* allocate(const Wish& wish) {
  aclrtMallocAttribute attribute = {};
  attribute.attr = ACL_RT_MEM_ATTR_MODULE_ID;
  attribute.value.moduleId = wish.module;
  aclrtMallocConfig configuration = {&attribute, 1};
  for (const uint32_t policy : wish.policies) {
    const Free before;
    void* block = nullptr;
    const aclError code = aclrtMallocWithCfg(
        &block, wish.size, static_cast<aclrtMemMallocPolicy>(policy), &configuration);
    if (code == ACL_SUCCESS) {
      show(wish, policy, block, before);
      return block;
    }
    std::printf("  %-13s %9s  %-11s    %d, %s\n", wish.name, text_of(wish.size).c_str(),
                name_of(policy), code, aclGetRecentErrMsg());
    if (!means_try_another(code)) break;
  }
  std::exit(1);
}

// A host block for three kinds of messages. Each piece has room for what the device may read
// behind its end, and starts at a multiple of 64.
void carve_staging() {
  constexpr size_t kStaging = 8 * kMiB;
  const size_t lengths[] = {1000, 70000, 4 * kMiB};
  void* block = nullptr;
  CHECK(aclrtMallocHost(&block, kStaging));
  std::printf("\nstaging: %s of page-locked host memory at 0x%012" PRIx64 ", cut by hand\n",
              text_of(kStaging).c_str(), reinterpret_cast<uint64_t>(block));
  size_t offset = 0;
  for (const size_t length : lengths) {
    const size_t piece = ((length - 1) / 32 + 1) * 32 + 32;
    std::memset(static_cast<char*>(block) + offset, 0x5A, length);
    std::printf("  %8zu bytes at +%-8zu take %zu\n", length, offset, piece);
    offset += ((piece - 1) / 64 + 1) * 64;
  }
  if (aclUnderstudyGetHostMemory != nullptr) {
    aclUnderstudyHostMemory memory;
    CHECK(aclUnderstudyGetHostMemory(&memory));
    std::printf("  of the host: %s locked, %s present but not locked\n",
                text_of(memory.locked).c_str(), text_of(memory.unlocked).c_str());
  }
  CHECK(aclrtFreeHost(block));
}

void show_usage() {
  std::printf("\nuse by module\n");
  aclrtMemUsageInfo usage[8];
  size_t count = 0;
  if (aclrtGetMemUsageInfo(0, usage, 8, &count) != ACL_SUCCESS) return;
  for (size_t i = 0; i < count; ++i) {
    std::printf("  %-12s %9s now, %9s at most\n", usage[i].name,
                text_of(usage[i].curMemSize).c_str(), text_of(usage[i].memPeakSize).c_str());
  }
  if (aclUnderstudyGetBacking == nullptr) return;
  aclUnderstudyBacking backing;
  CHECK(aclUnderstudyGetBacking(0, &backing));
  std::printf(
      "  behind all of it the host has %s: memory that was never written costs nothing\n",
      text_of(backing.smallPages + backing.collapsed + backing.hugetlb2m + backing.hugetlb1g)
          .c_str());
}

void show_refusals(void* table) {
  std::printf("\nwriting to the lookup table: %d, ", aclrtMemset(table, 64, 0, 64));
  std::printf("%s\n", aclGetRecentErrMsg());
  void* block = nullptr;
  std::printf("all that is left, in one block: %d, ",
              aclrtMalloc(&block, free_of(ACL_HBM_MEM), ACL_MEM_MALLOC_HUGE_FIRST));
  std::printf("%s\n", aclGetRecentErrMsg());
}

}  // namespace

int main() {
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
  const Free start;
  std::printf("%s, device 0: %s in normal pages, %s in huge pages\n\n", aclrtGetSocName(),
              text_of(start.normal).c_str(), text_of(start.huge).c_str());

  constexpr uint32_t kReadOnly = ACL_MEM_ACCESS_USER_SPACE_READONLY;
  const Wish plan[] = {
      {"weights", 14 * kGiB, {ACL_MEM_MALLOC_HUGE_ONLY}, 40},
      {"lookup table", 3 * kMiB, {kReadOnly | ACL_MEM_MALLOC_HUGE_ONLY}, 40},
      {"KV cache", 19 * kGiB / 10, {ACL_MEM_MALLOC_HUGE1G_ONLY, ACL_MEM_MALLOC_HUGE_FIRST}, 41},
      {"activations", 700 * kMiB, {ACL_MEM_MALLOC_HUGE_FIRST}, 42},
      {"flags", 4 * kKiB, {ACL_MEM_MALLOC_HUGE_FIRST}, 42},
  };
  std::vector<void*> blocks;
  for (const Wish& wish : plan) blocks.push_back(allocate(wish));
  CHECK(aclrtMemset(blocks.back(), 4 * kKiB, 1, 4 * kKiB));
  show_usage();
  show_refusals(blocks[1]);
  carve_staging();

  for (void* const block : blocks) CHECK(aclrtFree(block));
  const Free end;
  const bool all_back = start.normal == end.normal && start.huge == end.huge;
  std::printf("\nfreed: %s\n", all_back ? "the device has all of it back" : "SOMETHING IS MISSING");
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  return all_back ? 0 : 1;
}
