// SPDX-License-Identifier: Apache-2.0
// A storm of random calls, for what reads recordings:
//   recorded_storm CALLS SEED
// Several threads allocate, map, copy and order streams by events, each with objects of its own, so
// that which calls a thread makes follows from the seed alone. At most CALLS calls in all; some of
// them fail, as they should. Some memory is still held at the end.
#include <acl/acl.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kPage = 2 * kMiB;
constexpr size_t kSlots = 96;
constexpr unsigned kThreads = 4;
constexpr int32_t kDevices = 2;
constexpr size_t kMostHeld = 64;  // of each kind

void require(aclError code, const char* what) {
  if (code == ACL_SUCCESS) return;
  fprintf(stderr, "%s: %d\n", what, code);
  exit(2);
}

class Storm {
 public:
  Storm(size_t calls, uint64_t seed, int32_t device)
      : left_(calls), random_(seed), device_(device) {}

  void run() {
    set_up();
    while (left_ > kOfOneStep + kOfTheEnd) step();
    for (const aclrtStream stream : streams_) {
      require(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
    }
  }

 private:
  static constexpr size_t kOfTheEnd = 2;
  static constexpr size_t kOfOneStep = 4;  // the most that a step makes

  size_t below(size_t limit) { return random_() % limit; }
  // Counts a call that must succeed.
  void make(aclError code, const char* what) {
    --left_;
    require(code, what);
  }
  template <typename T>
  T take_one(std::vector<T>& from) {
    std::swap(from[below(from.size())], from.back());
    const T taken = from.back();
    from.pop_back();
    return taken;
  }

  void set_up();
  void step();
  void allocate();
  void map();
  void unmap();
  void copy();
  void order();
  void make_mistake();

  struct Mapped {
    size_t slot;
    aclrtDrvMemHandle block;
  };

  size_t left_;
  std::mt19937_64 random_;
  int32_t device_;
  std::array<aclrtStream, 2> streams_{};
  std::array<aclrtEvent, 8> events_{};
  char* reserved_ = nullptr;
  void* host_ = nullptr;
  void* scratch_ = nullptr;
  std::vector<void*> allocations_;
  std::vector<size_t> free_slots_;
  std::vector<Mapped> mapped_;
};

void Storm::set_up() {
  make(aclrtSetDevice(device_), "aclrtSetDevice");
  for (aclrtStream& stream : streams_) make(aclrtCreateStream(&stream), "aclrtCreateStream");
  for (aclrtEvent& event : events_) make(aclrtCreateEvent(&event), "aclrtCreateEvent");
  void* reserved = nullptr;
  make(aclrtReserveMemAddress(&reserved, kSlots * kPage, 0, nullptr, 1), "aclrtReserveMemAddress");
  reserved_ = static_cast<char*>(reserved);
  make(aclrtMallocHost(&host_, kMiB), "aclrtMallocHost");
  make(aclrtMalloc(&scratch_, kMiB, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
  for (size_t slot = 0; slot < kSlots; ++slot) free_slots_.push_back(slot);
}

[[gnu::noinline]] void Storm::allocate() {
  if (allocations_.size() >= kMostHeld || (!allocations_.empty() && below(2) == 0)) {
    make(aclrtFree(take_one(allocations_)), "aclrtFree");
    return;
  }
  constexpr std::array<size_t, 6> kSizes = {4096, 100'000, kMiB, kPage, 3 * kPage, 10 * kPage};
  void* made = nullptr;
  make(aclrtMalloc(&made, kSizes[below(kSizes.size())], ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
  allocations_.push_back(made);
}

[[gnu::noinline]] void Storm::map() {
  if (free_slots_.empty()) return unmap();
  aclrtPhysicalMemProp properties = {};
  properties.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
  properties.memAttr = ACL_HBM_MEM_HUGE;
  properties.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = static_cast<uint32_t>(device_);
  aclrtDrvMemHandle block = nullptr;
  make(aclrtMallocPhysical(&block, kPage, &properties, 0), "aclrtMallocPhysical");
  const size_t slot = take_one(free_slots_);
  make(aclrtMapMem(reserved_ + slot * kPage, kPage, 0, block, 0), "aclrtMapMem");
  mapped_.push_back({slot, block});
}

[[gnu::noinline]] void Storm::unmap() {
  if (mapped_.empty()) return map();
  const Mapped gone = take_one(mapped_);
  make(aclrtUnmapMem(reserved_ + gone.slot * kPage), "aclrtUnmapMem");
  make(aclrtFreePhysical(gone.block), "aclrtFreePhysical");
  free_slots_.push_back(gone.slot);
}

[[gnu::noinline]] void Storm::copy() {
  const size_t size = size_t{64} << below(10);
  const aclrtStream stream = streams_[below(streams_.size())];
  if (below(2) == 0) {
    make(aclrtMemcpyAsync(scratch_, size, host_, size, ACL_MEMCPY_HOST_TO_DEVICE, stream),
         "aclrtMemcpyAsync");
  } else {
    make(aclrtMemsetAsync(scratch_, size, 0, size, stream), "aclrtMemsetAsync");
  }
}

[[gnu::noinline]] void Storm::order() {
  const size_t from = below(streams_.size());
  const aclrtEvent event = events_[below(events_.size())];
  make(aclrtRecordEvent(event, streams_[from]), "aclrtRecordEvent");
  make(aclrtStreamWaitEvent(streams_[1 - from], event), "aclrtStreamWaitEvent");
  if (below(8) == 0) make(aclrtSynchronizeStream(streams_[from]), "aclrtSynchronizeStream");
}

// Calls that fail.
[[gnu::noinline]] void Storm::make_mistake() {
  --left_;
  if (aclrtFree(reserved_ + 4096) == ACL_SUCCESS) require(1, "aclrtFree of what is not its own");
}

void Storm::step() {
  const size_t choice = below(1000);
  if (choice < 320) {
    allocate();
  } else if (choice < 480) {
    map();
  } else if (choice < 620) {
    unmap();
  } else if (choice < 860) {
    copy();
  } else if (choice < 998) {
    order();
  } else {
    make_mistake();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const size_t calls = argc == 3 ? strtoull(argv[1], nullptr, 10) : 0;
  if (calls < 200) {
    fprintf(stderr, "usage: recorded_storm CALLS SEED, with 200 calls at least\n");
    return 2;
  }
  const uint64_t seed = strtoull(argv[2], nullptr, 10);
  require(aclInit(nullptr), "aclInit");
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      const auto device = static_cast<int32_t>(number % kDevices);
      Storm((calls - 1) / kThreads, seed * kThreads + number, device).run();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return 0;
}
