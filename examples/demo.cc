// SPDX-License-Identifier: Apache-2.0
//
// A tour of virtual memory on the software NPU, written against the public headers alone: it runs
// unchanged on an Ascend device.
//
//   1. the seven steps: reserve, create, map, use, unmap, free, release
//   2. sleep and wake: give the memory back, keep the address, go on at the same place
//   3. one block seen at two addresses
//
// After each step it draws the device's address space and memory.
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "acl/acl_understudy.h"

// Only the software NPU has this one.
extern "C" __attribute__((weak)) aclError aclUnderstudyGetBacking(int32_t deviceId,
                                                                  aclUnderstudyBacking* backing);

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kBlock = 20 * kMiB;  // a common size in caching allocators
constexpr size_t kSegment = 4 * kBlock;
constexpr int kCells = 4;  // one per block of the segment

void check(aclError code, const char* call) {
  if (code == ACL_SUCCESS) return;
  const char* text = aclGetRecentErrMsg();
  std::fprintf(stderr, "%s failed with %d: %s\n", call, code, text == nullptr ? "" : text);
  std::exit(1);
}
#define CHECK(call) check((call), #call)

void* at(void* base, size_t offset) { return static_cast<char*>(base) + offset; }

// What the device says, drawn: a cell per block-sized piece of each segment.
class Picture {
 public:
  void add_segment(const char* name, void* base) { segments_.push_back({name, base}); }
  void remove_segments() { segments_.clear(); }

  void draw(const char* title) const {
    std::printf("\n%s\n", title);
    for (const Segment& segment : segments_) draw_segment(segment);
    size_t free = 0;
    size_t total = 0;
    CHECK(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
    const size_t used = total - free;
    std::printf("    memory     [%s] %zu MiB of %zu MiB used\n", bar(used, kSegment).c_str(),
                used / kMiB, total / kMiB);
  }

 private:
  struct Segment {
    const char* name;
    void* base;
  };

  static void draw_segment(const Segment& segment) {
    std::printf("    %s 0x%" PRIx64 " |", segment.name, reinterpret_cast<uint64_t>(segment.base));
    for (int cell = 0; cell < kCells; ++cell) {
      void* const address = at(segment.base, static_cast<size_t>(cell) * kBlock);
      aclrtPtrAttributes attributes;
      CHECK(aclrtPointerGetAttributes(address, &attributes));
      if (attributes.location.type == ACL_MEM_LOCATION_TYPE_DEVICE) {
        std::printf(" dev%u ##|", attributes.location.id);
      } else {
        std::printf("    .   |");
      }
    }
    std::printf("\n");
  }

  static std::string bar(size_t used, size_t whole) {
    constexpr size_t kWidth = 32;
    const size_t filled = used >= whole ? kWidth : used * kWidth / whole;
    return std::string(filled, '#') + std::string(kWidth - filled, '.');
  }

  std::vector<Segment> segments_;
};

aclrtDrvMemHandle create_block() {
  aclrtPhysicalMemProp property = {};
  property.handleType = ACL_MEM_HANDLE_TYPE_NONE;
  property.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
  property.memAttr = ACL_HBM_MEM_HUGE;
  property.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  property.location.id = 0;
  aclrtDrvMemHandle handle = nullptr;
  CHECK(aclrtMallocPhysical(&handle, kBlock, &property, 0));
  return handle;
}

void* reserve_segment() {
  void* base = nullptr;
  CHECK(aclrtReserveMemAddress(&base, kSegment, 0, nullptr, 1));
  return base;
}

std::vector<uint32_t> numbers(size_t bytes, uint32_t first) {
  std::vector<uint32_t> values(bytes / sizeof(uint32_t));
  std::iota(values.begin(), values.end(), first);
  return values;
}

bool same_on_device(const void* device, const std::vector<uint32_t>& expected) {
  std::vector<uint32_t> seen(expected.size());
  const size_t bytes = seen.size() * sizeof(uint32_t);
  CHECK(aclrtMemcpy(seen.data(), bytes, device, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
  return seen == expected;
}

void say(bool ok, const char* sentence) {
  std::printf("    %s %s\n", ok ? "yes:" : "NO: ", sentence);
  if (!ok) std::exit(1);
}

// What the host really paid for, and with which pages.
void show_host_memory() {
  if (aclUnderstudyGetBacking == nullptr) return;
  aclUnderstudyBacking backing;
  CHECK(aclUnderstudyGetBacking(0, &backing));
  std::printf("    host       %" PRIu64 " MiB in 2 MiB pages, %" PRIu64
              " MiB in 4 KiB pages, %" PRIu64 " MiB from hugetlb pools\n",
              backing.collapsed / kMiB, backing.smallPages / kMiB,
              (backing.hugetlb2m + backing.hugetlb1g) / kMiB);
}

void seven_steps(Picture& picture) {
  std::printf("\n== 1. The seven steps ==\n");
  void* const segment = reserve_segment();
  picture.add_segment("segment A ", segment);
  picture.draw("reserved 80 MiB of addresses: no memory is taken");

  aclrtDrvMemHandle first = create_block();
  aclrtDrvMemHandle second = create_block();
  picture.draw("created two blocks of 20 MiB: memory is taken, nothing is mapped");

  CHECK(aclrtMapMem(segment, kBlock, 0, first, 0));
  CHECK(aclrtMapMem(at(segment, kBlock), kBlock, 0, second, 0));
  picture.draw("mapped them side by side");

  const std::vector<uint32_t> values = numbers(2 * kBlock, 1);
  CHECK(aclrtMemcpy(segment, kSegment, values.data(), 2 * kBlock, ACL_MEMCPY_HOST_TO_DEVICE));
  say(same_on_device(segment, values), "one copy of 40 MiB spans both blocks and comes back");
  show_host_memory();

  CHECK(aclrtUnmapMem(segment));
  CHECK(aclrtUnmapMem(at(segment, kBlock)));
  CHECK(aclrtFreePhysical(first));
  CHECK(aclrtFreePhysical(second));
  CHECK(aclrtReleaseMemAddress(segment));
  picture.remove_segments();
  picture.draw("unmapped, freed, released: everything is back");
}

void sleep_and_wake(Picture& picture) {
  std::printf("\n== 2. Sleep and wake on the same address ==\n");
  void* const segment = reserve_segment();
  picture.add_segment("segment B ", segment);
  const std::vector<uint32_t> state = numbers(kBlock, 7);

  aclrtDrvMemHandle block = create_block();
  CHECK(aclrtMapMem(segment, kBlock, 0, block, 0));
  CHECK(aclrtMemcpy(segment, kBlock, state.data(), kBlock, ACL_MEMCPY_HOST_TO_DEVICE));
  picture.draw("awake");

  std::vector<uint32_t> saved(state.size());
  CHECK(aclrtMemcpy(saved.data(), kBlock, segment, kBlock, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(aclrtUnmapMem(segment));
  CHECK(aclrtFreePhysical(block));
  picture.draw("asleep: the memory is free for others, the address is kept");

  block = create_block();
  CHECK(aclrtMapMem(segment, kBlock, 0, block, 0));
  CHECK(aclrtMemcpy(segment, kBlock, saved.data(), kBlock, ACL_MEMCPY_HOST_TO_DEVICE));
  picture.draw("awake again, with a new block");
  say(same_on_device(segment, state), "pointers into the segment are as good as before");

  CHECK(aclrtUnmapMem(segment));
  CHECK(aclrtFreePhysical(block));
  CHECK(aclrtReleaseMemAddress(segment));
  picture.remove_segments();
}

void two_addresses(Picture& picture) {
  std::printf("\n== 3. One block at two addresses ==\n");
  void* const left = reserve_segment();
  void* const right = reserve_segment();
  picture.add_segment("segment C ", left);
  picture.add_segment("segment D ", right);
  aclrtDrvMemHandle block = create_block();
  CHECK(aclrtMapMem(left, kBlock, 0, block, 0));
  CHECK(aclrtMapMem(at(right, 2 * kBlock), kBlock, 0, block, 0));
  picture.draw("one block of 20 MiB, mapped twice, paid for once");

  CHECK(aclrtMemset(left, kBlock, 0x2A, kBlock));
  uint8_t seen = 0;
  CHECK(aclrtMemcpy(&seen, 1, at(right, 3 * kBlock - 1), 1, ACL_MEMCPY_DEVICE_TO_HOST));
  say(seen == 0x2A, "what is written through C is read through D");

  CHECK(aclrtUnmapMem(left));
  CHECK(aclrtUnmapMem(at(right, 2 * kBlock)));
  const aclError twice = aclrtUnmapMem(left);
  const char* text = aclGetRecentErrMsg();
  std::printf("    unmapping C a second time: %d, %s", twice, text == nullptr ? "\n" : text);
  CHECK(aclrtFreePhysical(block));
  CHECK(aclrtReleaseMemAddress(left));
  CHECK(aclrtReleaseMemAddress(right));
  picture.remove_segments();
}

}  // namespace

int main() {
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
  uint32_t devices = 0;
  CHECK(aclrtGetDeviceCount(&devices));
  std::printf("%u devices, %s\n", devices, aclrtGetSocName());
  std::printf(
      "legend: ## mapped, . reserved only; a cell is 20 MiB of addresses, a # of memory 2.5 MiB\n");

  Picture picture;
  seven_steps(picture);
  sleep_and_wake(picture);
  two_addresses(picture);
  picture.draw("the end: nothing is left behind");

  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  return 0;
}
