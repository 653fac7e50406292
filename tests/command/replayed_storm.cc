// SPDX-License-Identifier: Apache-2.0
//
// Calls at random, right and wrong ones, whose codes depend on nothing but their order: what a
// replay has to reproduce one by one. Threads hand each other what they made.
//
//   replayed_storm CALLS SEED THREADS
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kPage = 2 * kMiB;

// What all threads have; one takes a thing out before it uses it.
template <typename T>
class Shared {
 public:
  void put(T value) {
    const std::lock_guard lock(mutex_);
    values_.push_back(value);
  }
  // One at random; nothing if there is none.
  bool take(uint64_t number, T& value) {
    const std::lock_guard lock(mutex_);
    if (values_.empty()) return false;
    std::swap(values_[number % values_.size()], values_.back());
    value = values_.back();
    values_.pop_back();
    return true;
  }

 private:
  std::mutex mutex_;
  std::vector<T> values_;
};

struct Range {
  void* address;
  size_t size;
};

struct World {
  Shared<Range> allocations;
  Shared<Range> host;
  Shared<Range> reservations;  // mapped as a whole, by one block
  Shared<aclrtDrvMemHandle> blocks;
  aclrtMemPool pool = nullptr;
};

class Storm {
 public:
  Storm(World& world, uint64_t seed) : world_(world), random_(seed) {}

  void run(int calls) {
    aclrtSetDevice(0);
    aclrtCreateStream(&stream_);
    aclrtCreateEventWithFlag(&event_, ACL_EVENT_SYNC);
    for (int i = 0; i < calls; ++i) step();
    aclrtSynchronizeStream(stream_);
    aclrtDestroyEvent(event_);
    aclrtDestroyStream(stream_);
  }

 private:
  using Step = void (Storm::*)();

  uint64_t number(uint64_t below) { return random_() % below; }
  void step() {
    static constexpr std::array<Step, 20> kSteps = {
        &Storm::allocate,    &Storm::allocate,      &Storm::free,       &Storm::free,
        &Storm::free_twice,  &Storm::allocate_host, &Storm::free_host,  &Storm::copy_in,
        &Storm::copy_around, &Storm::set,           &Storm::make_block, &Storm::map,
        &Storm::map_wrongly, &Storm::unmap,         &Storm::unmap,      &Storm::ask,
        &Storm::wrong_copy,  &Storm::order_streams, &Storm::use_pool,   &Storm::nonsense};
    (this->*kSteps.at(number(kSteps.size())))();
  }

  void allocate() {
    const size_t size = size_t{1} << (10 + number(14));
    Range made{nullptr, size};
    if (aclrtMalloc(&made.address, size, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS) {
      world_.allocations.put(made);
    }
  }
  void free() {
    Range range;
    if (world_.allocations.take(random_(), range)) aclrtFree(range.address);
  }
  void free_twice() {
    Range range;
    if (!world_.allocations.take(random_(), range)) return;
    aclrtFree(static_cast<char*>(range.address) + 512);
    aclrtFree(range.address);
    if (number(2) == 0) {
      aclrtMemset(nullptr, 16, 0, 16);
    } else {
      aclrtFree(nullptr);
    }
  }
  void allocate_host() {
    Range made{nullptr, size_t{4096} << number(6)};
    if (aclrtMallocHost(&made.address, made.size) == ACL_SUCCESS) world_.host.put(made);
  }
  void free_host() {
    Range range;
    if (!world_.host.take(random_(), range)) return;
    aclrtFreeHost(static_cast<char*>(range.address) + 64);
    aclrtFreeHost(range.address);
  }
  void copy_in() {
    Range range;
    if (!world_.allocations.take(random_(), range)) return;
    std::vector<char> bytes(std::min<size_t>(range.size, 65536));
    aclrtMemcpy(range.address, range.size, bytes.data(), bytes.size(), ACL_MEMCPY_HOST_TO_DEVICE);
    aclrtMemcpyAsync(range.address, range.size, bytes.data(), bytes.size(),
                     ACL_MEMCPY_HOST_TO_DEVICE, stream_);
    aclrtMemcpyAsync(bytes.data(), bytes.size(), range.address, bytes.size() / 2,
                     ACL_MEMCPY_DEVICE_TO_HOST, stream_);
    aclrtSynchronizeStream(stream_);
    world_.allocations.put(range);
  }
  void copy_around() {
    Range from;
    Range to;
    if (!world_.allocations.take(random_(), from)) return;
    if (world_.allocations.take(random_(), to)) {
      aclrtMemcpyAsync(to.address, to.size, from.address, from.size / 2 + 1,
                       ACL_MEMCPY_DEVICE_TO_DEVICE, stream_);
      aclrtSynchronizeStream(stream_);
      world_.allocations.put(to);
    }
    world_.allocations.put(from);
  }
  void set() {
    Range range;
    if (!world_.allocations.take(random_(), range)) return;
    aclrtMemset(range.address, range.size, 7, range.size + number(2));
    aclrtMemsetAsync(range.address, range.size, 7, range.size, stream_);
    aclrtSynchronizeStream(stream_);
    world_.allocations.put(range);
  }
  void make_block() {
    aclrtPhysicalMemProp properties = {};
    properties.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
    properties.memAttr = number(8) == 0 ? static_cast<aclrtMemAttr>(77) : ACL_HBM_MEM_HUGE;
    properties.location = {static_cast<uint32_t>(number(16) == 0 ? 99 : 0),
                           ACL_MEM_LOCATION_TYPE_DEVICE};
    aclrtDrvMemHandle block = nullptr;
    const size_t size = number(8) == 0 ? 12345 : kPage * (1 + number(4));
    if (aclrtMallocPhysical(&block, size, number(20) == 0 ? nullptr : &properties, 0) ==
        ACL_SUCCESS) {
      world_.blocks.put(block);
    }
  }
  void map() {
    aclrtPhysicalMemProp properties = {};
    properties.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
    properties.memAttr = ACL_HBM_MEM_HUGE;
    properties.location = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
    Range made{nullptr, kPage * (1 + number(4))};
    aclrtDrvMemHandle block = nullptr;
    aclrtReserveMemAddress(&made.address, made.size, 0, nullptr, 0);
    aclrtMallocPhysical(&block, made.size, &properties, 0);
    aclrtMapMem(made.address, made.size, 0, block, 0);
    aclrtMemAccessDesc access = {};
    access.flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE;
    access.location = {static_cast<uint32_t>(number(4) == 0 ? 50 : 0),
                       ACL_MEM_LOCATION_TYPE_DEVICE};
    aclrtMemSetAccess(made.address, made.size, &access, 1);
    aclrtDrvMemHandle again = nullptr;
    if (number(3) == 0 && aclrtMemRetainAllocationHandle(made.address, &again) == ACL_SUCCESS) {
      aclrtFreePhysical(again);
    }
    aclrtFreePhysical(block);
    aclrtMemset(made.address, made.size, 1, 4096);
    world_.reservations.put(made);
  }
  void map_wrongly() {
    Range range;
    aclrtDrvMemHandle block = nullptr;
    if (world_.blocks.take(random_(), block)) {
      if (world_.reservations.take(random_(), range)) {
        aclrtMapMem(range.address, range.size, 0, block, 0);
        aclrtReleaseMemAddress(range.address);
        world_.reservations.put(range);
      }
      aclrtFreePhysical(block);
      aclrtFreePhysical(block);
    }
  }
  void unmap() {
    Range range;
    if (!world_.reservations.take(random_(), range)) return;
    if (number(3) == 0) aclrtUnmapMem(static_cast<char*>(range.address) + 4096);
    aclrtUnmapMem(range.address);
    if (number(3) == 0) aclrtUnmapMem(range.address);
    aclrtReleaseMemAddress(range.address);
    if (number(3) == 0) aclrtReleaseMemAddress(range.address);
  }
  void ask() {
    size_t free = 0;
    size_t total = 0;
    aclrtGetMemInfo(number(4) == 0 ? static_cast<aclrtMemAttr>(1234) : ACL_HBM_MEM, &free, &total);
    aclrtGetMemInfo(ACL_HBM_MEM, nullptr, &total);
    aclrtSetDevice(static_cast<int32_t>(number(3) == 0 ? 1000 : 0));
    Range range;
    if (!world_.allocations.take(random_(), range)) return;
    aclrtPtrAttributes attributes;
    aclrtPointerGetAttributes(range.address, &attributes);
    world_.allocations.put(range);
  }
  void wrong_copy() {
    Range range;
    if (!world_.allocations.take(random_(), range)) return;
    char bytes[256] = {};
    aclrtMemcpy(range.address, 16, bytes, 64, ACL_MEMCPY_HOST_TO_DEVICE);
    aclrtMemcpy(range.address, range.size, bytes, 64, static_cast<aclrtMemcpyKind>(99));
    aclrtMemcpy(bytes, sizeof bytes, range.address, 64, ACL_MEMCPY_HOST_TO_DEVICE);
    world_.allocations.put(range);
  }
  void order_streams() {
    aclrtStream other = nullptr;
    aclrtCreateStream(&other);
    aclrtRecordEvent(event_, stream_);
    aclrtStreamWaitEvent(other, event_);
    aclrtSynchronizeStream(other);
    aclrtDestroyStream(other);
    aclrtSynchronizeStream(other);
    aclrtRecordEvent(nullptr, stream_);
  }
  void use_pool() {
    void* memory = nullptr;
    aclrtMemPoolMallocAsync(&memory, size_t{1024} << number(12), world_.pool, stream_);
    aclrtMemsetAsync(memory, 1024, 0, 1024, stream_);
    aclrtMemPoolFreeAsync(memory, stream_);
    aclrtSynchronizeStream(stream_);
  }
  void nonsense() {
    void* memory = nullptr;
    aclrtMalloc(&memory, 0, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc(nullptr, 4096, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc(&memory, size_t{1} << 50, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtFree(reinterpret_cast<void*>(0x1234));
    aclrtDestroyEvent(reinterpret_cast<void*>(0x77));
    aclrtSynchronizeStream(reinterpret_cast<void*>(0x99));
    aclrtIpcMemClose("no such key");
    aclrtReserveMemAddress(&memory, 4097, 0, nullptr, 0);
  }

  World& world_;
  std::mt19937_64 random_;
  aclrtStream stream_ = nullptr;
  aclrtEvent event_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int calls = std::atoi(argv[1]);
  const uint64_t seed = std::strtoull(argv[2], nullptr, 10);
  const int threads = std::atoi(argv[3]);
  aclInit(nullptr);
  aclrtSetDevice(0);
  World world;
  aclrtMemPoolProps properties = {};
  properties.allocType = ACL_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
  aclrtMemPoolCreate(&world.pool, &properties);
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) {
    running.emplace_back(
        [&, i] { Storm(world, seed * 1000 + static_cast<uint64_t>(i)).run(calls / threads); });
  }
  for (std::thread& thread : running) thread.join();
  aclrtResetDevice(0);
  aclFinalize();
  return 0;
}
