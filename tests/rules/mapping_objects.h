// SPDX-License-Identifier: Apache-2.0
//
// Scoped VMM objects for the tests of mapping and access. Each destructor asserts that its object
// can be given back, and FiguresStay that all memory came back: that is how a test of a refused
// call notices a mapping or a reference left behind.
#pragma once

#include <deque>
#include <initializer_list>
#include <numeric>
#include <optional>
#include <ostream>
#include <vector>

#include "support/rule_test.h"

namespace understudy_test::mapping {

inline constexpr size_t kGranule = 2 * kMiB;

using MapFunction = decltype(&aclrtMapMem);

class FiguresStay {
 public:
  FiguresStay() : before_(memory_figures()) {}
  ~FiguresStay() { EXPECT_EQ(memory_figures(), before_); }
  FiguresStay(const FiguresStay&) = delete;
  FiguresStay& operator=(const FiguresStay&) = delete;

 private:
  MemoryFigures before_;
};

// Makes a device current and gives it back, with the device that was current before.
class DeviceScope {
 public:
  explicit DeviceScope(int32_t device = 0) : device_(device) {
    if (aclrtGetDevice(&previous_) != ACL_SUCCESS) previous_ = kNone;
    EXPECT_SUCCESS(aclrtSetDevice(device_));
    figures_.emplace();
  }
  ~DeviceScope() {
    EXPECT_SUCCESS(aclrtSetDevice(device_));
    figures_.reset();
    EXPECT_SUCCESS(aclrtResetDeviceForce(device_));
    if (previous_ != kNone) {
      EXPECT_SUCCESS(aclrtSetDevice(previous_));
    }
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  static constexpr int32_t kNone = -1;
  int32_t device_;
  int32_t previous_ = kNone;
  std::optional<FiguresStay> figures_;
};

class VirtualMemoryTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (!HasFatalFailure()) figures_.emplace();
  }
  void TearDown() override {
    figures_.reset();
    DeviceTest::TearDown();
  }

 private:
  std::optional<FiguresStay> figures_;
};

class Reservation {
 public:
  explicit Reservation(size_t size) : start_(reserve(size)), size_(size) {}
  // Takes over a range that was reserved already.
  Reservation(void* start, size_t size) : start_(start), size_(size) {}
  ~Reservation() { EXPECT_SUCCESS(aclrtReleaseMemAddress(start_)); }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  void* start() const { return start_; }
  void* at(size_t offset) const { return understudy_test::at(start_, offset); }
  size_t size() const { return size_; }

 private:
  void* start_;
  size_t size_;
};

class Block {
 public:
  explicit Block(size_t size = kGranule, const aclrtPhysicalMemProp& property = block_property())
      : handle_(create_block(size, property)), size_(size) {}
  ~Block() {
    if (owned_) free();
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void free() {
    owned_ = false;
    EXPECT_SUCCESS(aclrtFreePhysical(handle_));
  }
  aclrtDrvMemHandle handle() const { return handle_; }
  size_t size() const { return size_; }

 private:
  aclrtDrvMemHandle handle_;
  size_t size_;
  bool owned_ = true;
};

class Mapping {
 public:
  Mapping(void* start, const Block& block, MapFunction map = aclrtMapMem) : start_(start) {
    const aclError result = map(start, block.size(), 0, block.handle(), 0);
    mapped_ = result == ACL_SUCCESS;
    EXPECT_EQ(result, ACL_SUCCESS) << recent_error();
  }
  // Takes over a mapping that some other call made.
  explicit Mapping(void* start) : start_(start), mapped_(true) {}
  ~Mapping() {
    if (mapped_) unmap();
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  void unmap() {
    mapped_ = false;
    EXPECT_SUCCESS(aclrtUnmapMem(start_));
  }
  void* start() const { return start_; }

 private:
  void* start_;
  bool mapped_ = false;
};

// The usual scene: one block that fills one reservation.
struct MappedBlock {
  explicit MappedBlock(size_t bytes = kGranule,
                       const aclrtPhysicalMemProp& property = block_property(),
                       MapFunction map = aclrtMapMem)
      : reservation(bytes), block(bytes, property), mapping(reservation.start(), block, map) {}

  void* start() const { return reservation.start(); }
  void* at(size_t offset) const { return reservation.at(offset); }
  size_t size() const { return block.size(); }

  Reservation reservation;
  Block block;
  Mapping mapping;
};

// Blocks mapped back to back from the start of one reservation.
class BlockRow {
 public:
  explicit BlockRow(std::initializer_list<size_t> sizes)
      : reservation_(std::accumulate(sizes.begin(), sizes.end(), size_t{0})) {
    size_t offset = 0;
    for (const size_t size : sizes) {
      blocks_.emplace_back(size);
      mappings_.emplace_back(reservation_.at(offset), blocks_.back());
      offset += size;
    }
  }

  void* start() const { return reservation_.start(); }
  void* at(size_t offset) const { return reservation_.at(offset); }
  size_t size() const { return reservation_.size(); }
  Block& block(size_t index) { return blocks_[index]; }
  Mapping& mapping(size_t index) { return mappings_[index]; }

 private:
  Reservation reservation_;
  std::deque<Block> blocks_;
  std::deque<Mapping> mappings_;
};

// Writes bytes that depend on `seed` to the first and last kilobyte of a range; is_marked finds
// them again.
inline void mark(void* start, size_t size, uint8_t seed) {
  copy_in(start, pattern(kKiB, seed));
  copy_in(at(start, size - kKiB), pattern(kKiB, static_cast<uint8_t>(seed + 100)));
}
inline bool is_marked(const void* start, size_t size, uint8_t seed) {
  const void* last = static_cast<const char*>(start) + size - kKiB;
  return copy_out(start, kKiB) == pattern(kKiB, seed) &&
         copy_out(last, kKiB) == pattern(kKiB, static_cast<uint8_t>(seed + 100));
}

inline aclrtMemLocation device_location(uint32_t id) {
  return aclrtMemLocation{.id = id, .type = ACL_MEM_LOCATION_TYPE_DEVICE};
}
inline aclrtMemLocation host_location() {
  return aclrtMemLocation{.id = 0, .type = ACL_MEM_LOCATION_TYPE_HOST};
}
inline aclrtPhysicalMemProp host_property(
    aclrtMemAttr attribute = ACL_HBM_MEM_HUGE,
    aclrtMemLocationType location = ACL_MEM_LOCATION_TYPE_HOST) {
  return block_property(attribute, location, 0);
}

inline aclrtMemAccessDesc access_entry(
    aclrtMemLocation location, aclrtMemAccessFlags flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE) {
  aclrtMemAccessDesc entry{};
  entry.flags = flags;
  entry.location = location;
  return entry;
}

// Grants and asks; each asserts success.
inline void grant(void* start, size_t size, aclrtMemLocation location) {
  aclrtMemAccessDesc entry = access_entry(location);
  EXPECT_SUCCESS(aclrtMemSetAccess(start, size, &entry, 1));
}
inline uint64_t access_of(void* start, aclrtMemLocation location) {
  uint64_t flag = ~uint64_t{0};
  EXPECT_SUCCESS(aclrtMemGetAccess(start, &location, &flag));
  return flag;
}

inline bool is_mapped(void* address) {
  size_t size = 0;
  const bool mapped = aclrtMemGetAddressRange(address, nullptr, &size) == ACL_SUCCESS;
  (void)recent_error();
  return mapped;
}

// The two calls that obey the same map rules (NOACC-01), as a test parameter.
struct MapCall {
  const char* name;
  MapFunction call;
  bool owner_has_access;

  friend std::ostream& operator<<(std::ostream& out, const MapCall& map) { return out << map.name; }
};

inline constexpr MapCall kMapCalls[] = {
    {"aclrtMapMem", aclrtMapMem, true},
    {"aclrtMemMapNoAccess", aclrtMemMapNoAccess, false},
};

inline testing::AssertionResult map_is_refused(const MapCall& map, aclError code, void* start,
                                               size_t size, aclrtDrvMemHandle handle,
                                               size_t offset = 0, uint64_t flags = 0) {
  FiguresStay figures;
  (void)recent_error();
  return fails_with(code, map.call(start, size, offset, handle, flags), map.name);
}

// Lets the owning device use what either call mapped.
inline void let_owner_in(const MapCall& map, void* start, size_t size, uint32_t device = 0) {
  if (!map.owner_has_access) grant(start, size, device_location(device));
}

class MapCallTest : public VirtualMemoryTest, public testing::WithParamInterface<MapCall> {
 protected:
  testing::AssertionResult is_refused(aclError code, void* start, size_t size,
                                      aclrtDrvMemHandle handle, size_t offset = 0,
                                      uint64_t flags = 0) const {
    return map_is_refused(GetParam(), code, start, size, handle, offset, flags);
  }
  static void let_owner_in(void* start, size_t size, uint32_t device = 0) {
    mapping::let_owner_in(GetParam(), start, size, device);
  }
};

inline auto both_map_calls() { return testing::ValuesIn(kMapCalls); }
inline std::string name_of(const testing::TestParamInfo<MapCall>& info) { return info.param.name; }

}  // namespace understudy_test::mapping
