// SPDX-License-Identifier: Apache-2.0
//
// Blocks, reservations and mappings that end with their scope, and the values several groups of
// virtual memory rules walk through.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/rule_test.h"

namespace understudy_test::vmm {

inline constexpr size_t kHugePage = 2 * kMiB;
inline constexpr size_t kGiantPage = kGiB;

// ---- What the rules range over ----

inline constexpr std::array kDdrLeafAttributes = {ACL_DDR_MEM_HUGE, ACL_DDR_MEM_NORMAL,
                                                  ACL_DDR_MEM_P2P_HUGE, ACL_DDR_MEM_P2P_NORMAL};
// Accepted at a device, without the 1 GiB ones.
inline constexpr std::array kDeviceAttributes = {ACL_MEM_NORMAL,     ACL_MEM_HUGE,
                                                 ACL_MEM_P2P_NORMAL, ACL_MEM_P2P_HUGE,
                                                 ACL_HBM_MEM_HUGE,   ACL_HBM_MEM_NORMAL};
inline constexpr std::array kHostAttributes = {
    ACL_MEM_NORMAL,       ACL_MEM_HUGE,          ACL_MEM_P2P_NORMAL, ACL_MEM_P2P_HUGE,
    ACL_HBM_MEM_HUGE,     ACL_HBM_MEM_NORMAL,    ACL_DDR_MEM_HUGE,   ACL_DDR_MEM_NORMAL,
    ACL_DDR_MEM_P2P_HUGE, ACL_DDR_MEM_P2P_NORMAL};
inline constexpr std::array kGiantAttributes = {ACL_MEM_HUGE1G, ACL_MEM_P2P_HUGE1G,
                                                ACL_HBM_MEM_HUGE1G};
// Accepted nowhere.
inline constexpr std::array kForeignAttributes = {ACL_DDR_MEM,
                                                  ACL_HBM_MEM,
                                                  ACL_HBM_MEM_P2P_HUGE,
                                                  ACL_HBM_MEM_P2P_NORMAL,
                                                  ACL_HBM_MEM_P2P_HUGE1G,
                                                  static_cast<aclrtMemAttr>(18),
                                                  static_cast<aclrtMemAttr>(99),
                                                  static_cast<aclrtMemAttr>(-1)};
inline constexpr std::array kBlockLocations = {
    ACL_MEM_LOCATION_TYPE_HOST, ACL_MEM_LOCATION_TYPE_DEVICE, ACL_MEM_LOCATION_TYPE_HOST_NUMA};
inline constexpr std::array kHostLocations = {ACL_MEM_LOCATION_TYPE_HOST,
                                              ACL_MEM_LOCATION_TYPE_HOST_NUMA};

// The windows in which a caller may wish for an address: aclrtReserveMemAddress and its
// NoUCMemory form.
inline constexpr uint64_t kWindowStart = 16 * kTiB;
inline constexpr uint64_t kWindowEnd = 24 * kTiB;
inline constexpr uint64_t kNoUcWindowStart = 40 * kTiB;
inline constexpr uint64_t kNoUcWindowEnd = 224 * kTiB;

// The name of a test on a product or profile: letters, digits and underscores are all that gtest
// takes, and bare digits would pass for an index.
inline std::string test_name_on(const std::string& profile) {
  std::string name = "on_" + profile;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

// ---- Nothing changed ----

// No library hands this out: an output that still holds it was not written.
inline void* untouched() { return address(0x5EA7ED0000005EA7); }
inline constexpr size_t kUntouchedSize = 0x5EA7ED;

// Field by field: padding may differ between copies.
inline bool same_property(const aclrtPhysicalMemProp& a, const aclrtPhysicalMemProp& b) {
  return a.handleType == b.handleType && a.allocationType == b.allocationType &&
         a.memAttr == b.memAttr && a.location.type == b.location.type &&
         a.location.id == b.location.id && a.reserve == b.reserve;
}

// The figures of the current device; nothing where the thread has no context to ask in.
inline MemoryFigures figures_if_bound() {
  int32_t device = 0;
  return aclrtGetDevice(&device) == ACL_SUCCESS ? memory_figures() : MemoryFigures{};
}

// Expects that the current device's memory figures at the end of the scope are those at its start.
class FiguresStay {
 public:
  FiguresStay() : before_(figures_if_bound()) {}
  FiguresStay(const FiguresStay&) = delete;
  FiguresStay& operator=(const FiguresStay&) = delete;
  ~FiguresStay() { EXPECT_TRUE(figures_if_bound() == before_) << "memory figures changed"; }

 private:
  const MemoryFigures before_;
};

inline void expect_block_refused(aclError code, size_t size, const aclrtPhysicalMemProp& property,
                                 uint64_t flags = 0) {
  const FiguresStay watch;
  aclrtDrvMemHandle handle = untouched();
  EXPECT_FAILS(code, aclrtMallocPhysical(&handle, size, &property, flags));
  EXPECT_EQ(handle, untouched());
}

inline void expect_reserve_refused(aclError code, size_t size, size_t alignment, void* expected,
                                   uint64_t flags) {
  const FiguresStay watch;
  void* range = untouched();
  EXPECT_FAILS(code, aclrtReserveMemAddress(&range, size, alignment, expected, flags));
  EXPECT_EQ(range, untouched());
}

// ---- Threads and devices ----

// For tests in a fresh process, where a fixture would bind the parent already.
class DeviceBinding {
 public:
  explicit DeviceBinding(int32_t device = 0) : device_(device) {
    EXPECT_SUCCESS(aclrtSetDevice(device_));
  }
  DeviceBinding(const DeviceBinding&) = delete;
  DeviceBinding& operator=(const DeviceBinding&) = delete;
  ~DeviceBinding() { aclrtResetDeviceForce(device_); }

 private:
  const int32_t device_;
};

inline uint32_t device_count() {
  uint32_t count = 0;
  EXPECT_SUCCESS(aclrtGetDeviceCount(&count));
  return count;
}

// A new thread has no context.
template <typename Body>
void on_bare_thread(Body body) {
  std::thread(std::move(body)).join();
}

// ---- Objects ----

class Block {
 public:
  explicit Block(size_t size = kHugePage, const aclrtPhysicalMemProp& property = block_property())
      : size_(size), handle_(create_block(size, property)) {}
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    if (handle_ != nullptr) {
      EXPECT_SUCCESS(aclrtFreePhysical(handle_));
    }
  }

  size_t size() const { return size_; }
  aclrtDrvMemHandle handle() const { return handle_; }
  // From here on the test frees it.
  aclrtDrvMemHandle give_up() { return std::exchange(handle_, nullptr); }

 private:
  const size_t size_;
  aclrtDrvMemHandle handle_;
};

class Range {
 public:
  explicit Range(size_t size, uint64_t flags = 0, void* expected = nullptr)
      : start_(reserve(size, flags, expected)) {}
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
  ~Range() {
    if (start_ != nullptr) {
      EXPECT_SUCCESS(aclrtReleaseMemAddress(start_));
    }
  }

  void* start() const { return start_; }
  void* byte(size_t offset) const { return at(start_, offset); }
  void* give_up() { return std::exchange(start_, nullptr); }

 protected:
  // For ranges that are reserved in another way and given back in the same.
  struct Adopted {
    void* start;
  };
  explicit Range(Adopted range) : start_(range.start) {}

 private:
  void* start_;
};

class Mapping {
 public:
  Mapping(void* start, size_t size, aclrtDrvMemHandle handle) : start_(start) {
    EXPECT_SUCCESS(aclrtMapMem(start, size, 0, handle, 0));
  }
  Mapping(void* start, const Block& block) : Mapping(start, block.size(), block.handle()) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (start_ != nullptr) {
      EXPECT_SUCCESS(aclrtUnmapMem(start_));
    }
  }

  void* start() const { return start_; }
  void* give_up() { return std::exchange(start_, nullptr); }

 private:
  void* start_;
};

// A block mapped at the start of a reservation of its own.
struct MappedBlock {
  explicit MappedBlock(size_t size = kHugePage,
                       const aclrtPhysicalMemProp& property = block_property())
      : block(size, property), range(size), mapping(range.start(), block) {}

  void* start() const { return range.start(); }

  Block block;
  Range range;
  Mapping mapping;
};

// Whether bytes go in and come out again. Needs a current context.
inline void expect_usable(void* start, uint8_t seed = 1) {
  const std::vector<uint8_t> bytes = pattern(4 * kKiB, seed);
  copy_in(start, bytes);
  EXPECT_TRUE(copy_out(start, bytes.size()) == bytes);
}

// ---- Free addresses ----

// Memory of the program's own exactly there, or MAP_FAILED. MAP_FIXED besides NOREPLACE keeps
// ThreadSanitizer from turning an address it does not like into 0.
inline void* map_own_memory(uint64_t start, size_t size, int protection) {
  return mmap(address(start), size, protection,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED | MAP_FIXED_NOREPLACE, -1, 0);
}

enum class HostRange { kFree, kOccupied, kUnmappable };

inline HostRange host_range(uint64_t start, size_t size) {
  void* probe = map_own_memory(start, size, PROT_NONE);
  if (probe == MAP_FAILED) {
    return errno == EEXIST ? HostRange::kOccupied : HostRange::kUnmappable;
  }
  munmap(probe, size);
  return HostRange::kFree;
}

using ReserveFunction = decltype(&aclrtReserveMemAddress);

inline bool accepts(ReserveFunction function, uint64_t start, size_t size) {
  void* range = nullptr;
  const bool accepted = function(&range, size, 0, address(start), 0) == ACL_SUCCESS;
  if (accepted) {
    EXPECT_SUCCESS(aclrtReleaseMemAddress(range));
  }
  return accepted;
}

// A free range at a multiple of 1 GiB in [low, high). Where the host has one free, that is it and
// the library has to accept it. Else (a sanitizer holds the window) one the library accepts; 0 if
// there is none.
inline uint64_t find_free_start(ReserveFunction function, uint64_t low, uint64_t high,
                                size_t size) {
  const uint64_t step = (high - low) / 256 / kGiB * kGiB;
  for (uint64_t start = low; start + size <= high; start += step) {
    if (host_range(start, size) == HostRange::kFree) return start;
  }
  for (uint64_t start = low; start + size <= high; start += step) {
    if (accepts(function, start, size)) return start;
  }
  return 0;
}

inline uint64_t find_free_start(size_t size) {
  return find_free_start(aclrtReserveMemAddress, kWindowStart, kWindowEnd, size);
}

inline uint64_t find_free_no_uc_start(size_t size) {
  return find_free_start(aclrtReserveMemAddressNoUCMemory, kNoUcWindowStart, kNoUcWindowEnd, size);
}

}  // namespace understudy_test::vmm

// Skips where nothing in the window of the wish is free.
#define US_SKIP_UNLESS_FOUND(start) \
  if ((start) == 0) GTEST_SKIP() << "no free address in the window of this process"
