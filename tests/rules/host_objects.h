// SPDX-License-Identifier: Apache-2.0
//
// What the tests of host memory, registration and allocated addresses share: blocks that end with
// their scope, what the library says about an address, what the kernel says about a page.
#pragma once

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "rules/live_mapping.h"
#include "support/rule_test.h"

namespace understudy_test {

// ---- Nothing changed ----

// No library hands this out: an output that still holds it was not written.
inline void* host_sentinel() { return address(0x5EA7ED0000C0FFEE); }

// Expects that the figures of the current device end as they began.
class HostMemoryTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (!HasFatalFailure()) before_.emplace(memory_figures());
  }
  void TearDown() override {
    if (before_) {
      EXPECT_EQ(memory_figures(), *before_);
    }
    DeviceTest::TearDown();
  }

 private:
  std::optional<MemoryFigures> before_;
};

// The name of a test on a product: gtest takes letters, digits and underscores.
inline std::string host_product_name(const testing::TestParamInfo<std::string>& product) {
  std::string name = "on_" + product.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// ---- Memory that ends with its scope ----

// Attributes of aclrtMallocHostWithCfg.
inline aclrtMallocAttribute host_attribute(aclrtMallocAttrType type, uint32_t value) {
  aclrtMallocAttribute attribute;
  memset(&attribute, 0, sizeof attribute);
  attribute.attr = type;
  if (type == ACL_RT_MEM_ATTR_MODULE_ID) {
    attribute.value.moduleId = static_cast<uint16_t>(value);
  } else {
    attribute.value.vaFlag = value;
  }
  return attribute;
}

class HostConfiguration {
 public:
  HostConfiguration(std::initializer_list<aclrtMallocAttribute> attributes)
      : attributes_(attributes), config_{attributes_.data(), attributes_.size()} {}
  HostConfiguration(const HostConfiguration&) = delete;
  HostConfiguration& operator=(const HostConfiguration&) = delete;

  aclrtMallocConfig* get() { return &config_; }

 private:
  std::vector<aclrtMallocAttribute> attributes_;
  aclrtMallocConfig config_;
};

inline void* allocate_host(size_t size) {
  void* data = nullptr;
  EXPECT_SUCCESS(aclrtMallocHost(&data, size));
  EXPECT_NE(data, nullptr);
  return data;
}

inline void* allocate_host_with(size_t size, aclrtMallocConfig* config) {
  void* data = nullptr;
  EXPECT_SUCCESS(aclrtMallocHostWithCfg(&data, size, config));
  EXPECT_NE(data, nullptr);
  return data;
}

class HostBlock {
 public:
  explicit HostBlock(size_t size) : HostBlock(allocate_host(size), size) {}
  // Takes over a block that was allocated in another way.
  HostBlock(void* data, size_t size) : data_(data), size_(size) {}
  ~HostBlock() {
    if (data_ != nullptr) {
      EXPECT_SUCCESS(aclrtFreeHost(data_));
    }
  }
  HostBlock(HostBlock&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
  HostBlock& operator=(HostBlock&&) = delete;

  void* data() const { return data_; }
  void* at(size_t offset) const { return understudy_test::at(data_, offset); }
  size_t size() const { return size_; }
  // From here on the test frees it.
  void* give_up() { return std::exchange(data_, nullptr); }

 private:
  void* data_;
  size_t size_;
};

// Device memory from aclrtMalloc.
class MallocedMemory {
 public:
  explicit MallocedMemory(size_t size, aclrtMemMallocPolicy policy = ACL_MEM_MALLOC_HUGE_FIRST)
      : size_(size) {
    EXPECT_SUCCESS(aclrtMalloc(&data_, size, policy));
    EXPECT_NE(data_, nullptr);
  }
  ~MallocedMemory() {
    if (data_ != nullptr) {
      EXPECT_SUCCESS(aclrtFree(data_));
    }
  }
  MallocedMemory(const MallocedMemory&) = delete;
  MallocedMemory& operator=(const MallocedMemory&) = delete;

  void* data() const { return data_; }
  void* at(size_t offset) const { return understudy_test::at(data_, offset); }
  size_t size() const { return size_; }
  void* give_up() { return std::exchange(data_, nullptr); }

 private:
  void* data_ = nullptr;
  size_t size_;
};

// Memory of the program's own, in whole pages.
class OwnMemory {
 public:
  explicit OwnMemory(size_t size)
      : data_(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
        size_(size) {
    EXPECT_NE(data_, MAP_FAILED);
  }
  ~OwnMemory() { munmap(data_, size_); }
  OwnMemory(const OwnMemory&) = delete;
  OwnMemory& operator=(const OwnMemory&) = delete;

  void* data() const { return data_; }
  void* at(size_t offset) const { return understudy_test::at(data_, offset); }
  size_t size() const { return size_; }

 private:
  void* data_;
  size_t size_;
};

// ---- Bytes, by the CPU ----

inline void store(void* start, const std::vector<uint8_t>& bytes) {
  memcpy(start, bytes.data(), bytes.size());
}
inline bool holds(const void* start, const std::vector<uint8_t>& bytes) {
  return memcmp(start, bytes.data(), bytes.size()) == 0;
}

// ---- Cutting a block into segments (HOST-09) ----

constexpr size_t align_up(size_t length, size_t unit) { return ((length - 1) / unit + 1) * unit; }

// What a segment of so many bytes takes, and how far behind its start the next one starts.
constexpr size_t segment_room(size_t length) { return align_up(length, 32) + 32; }
constexpr size_t segment_step(size_t length) { return align_up(segment_room(length), 64); }

struct HostSegment {
  void* start;
  size_t length;
  uint8_t seed;
};

inline size_t room_for_segments(const std::vector<size_t>& lengths) {
  size_t room = 0;
  for (const size_t length : lengths) room += segment_step(length);
  return room;
}

inline std::vector<HostSegment> cut_into_segments(void* block, const std::vector<size_t>& lengths) {
  std::vector<HostSegment> segments;
  uint8_t seed = 0;
  size_t offset = 0;
  for (const size_t length : lengths) {
    segments.push_back({at(block, offset), length, ++seed});
    offset += segment_step(length);
  }
  return segments;
}

inline void expect_segments_intact(const std::vector<HostSegment>& segments) {
  for (const HostSegment& segment : segments) {
    SCOPED_TRACE(segment.length);
    EXPECT_TRUE(holds(segment.start, pattern(segment.length, segment.seed)));
  }
}

// ---- What the library says about an address ----

// Starts from values no answer can have, so that a forgotten field shows.
inline aclrtPtrAttributes where_is(const void* pointer) {
  aclrtPtrAttributes attributes;
  memset(&attributes, 0x5a, sizeof attributes);
  EXPECT_SUCCESS(aclrtPointerGetAttributes(pointer, &attributes));
  return attributes;
}

inline void expect_at_host(const void* pointer) {
  SCOPED_TRACE(pointer);
  const aclrtPtrAttributes attributes = where_is(pointer);
  EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_HOST);
  EXPECT_EQ(attributes.location.id, 0u);
}

inline void expect_at_device(const void* pointer, uint32_t device, uint32_t page_size) {
  SCOPED_TRACE(pointer);
  const aclrtPtrAttributes attributes = where_is(pointer);
  EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(attributes.location.id, device);
  EXPECT_EQ(attributes.pageSize, page_size);
}

inline void expect_unknown_place(const void* pointer) {
  SCOPED_TRACE(pointer);
  EXPECT_EQ(where_is(pointer).location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
}

inline void expect_address_range(void* byte, const void* start, size_t size) {
  SCOPED_TRACE(byte);
  void* found = host_sentinel();
  size_t found_size = SIZE_MAX;
  EXPECT_SUCCESS(aclrtMemGetAddressRange(byte, &found, &found_size));
  EXPECT_EQ(found, start);
  EXPECT_EQ(found_size, size);
}

inline void expect_no_address_range(void* byte) {
  SCOPED_TRACE(byte);
  void* found = host_sentinel();
  size_t found_size = SIZE_MAX;
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemGetAddressRange(byte, &found, &found_size));
  EXPECT_EQ(found, nullptr);
  EXPECT_EQ(found_size, SIZE_MAX);
}

// ---- What the kernel says about a page ----

// The VmFlags of each area of this process that holds a part of the range.
inline std::vector<std::string> kernel_flags(const void* start, size_t size) {
  std::vector<std::string> flags;
  std::ifstream areas("/proc/self/smaps");
  EXPECT_TRUE(areas.is_open());
  bool holds_part = false;
  for (std::string line; std::getline(areas, line);) {
    uint64_t from = 0;
    uint64_t to = 0;
    if (sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64, &from, &to) == 2) {
      holds_part = from < number(start) + size && to > number(start);
    } else if (holds_part && line.rfind("VmFlags:", 0) == 0) {
      flags.push_back(line + " ");
    }
  }
  return flags;
}

// Pages of the hugetlb pool ("ht") cannot be swapped, locked ("lo") or not.
inline bool is_page_locked(const void* start, size_t size) {
  const std::vector<std::string> areas = kernel_flags(start, size);
  for (const std::string& flags : areas) {
    const bool locked = flags.find(" lo ") != std::string::npos;
    const bool from_pool = flags.find(" ht ") != std::string::npos;
    if (!locked && !from_pool) return false;
  }
  return !areas.empty();
}

inline bool is_resident(const void* start, size_t size) {
  const uint64_t first = number(start) / kPage * kPage;
  const uint64_t pages = (number(start) + size - first + kPage - 1) / kPage;
  std::vector<unsigned char> resident(pages);
  EXPECT_EQ(mincore(address(first), pages * kPage, resident.data()), 0) << strerror(errno);
  for (const unsigned char page : resident) {
    if ((page & 1) == 0) return false;
  }
  return true;
}

// Bytes this process has locked: the VmLck line.
inline size_t locked_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmLck:", 0) != 0) continue;
    std::istringstream figure(line.substr(6));
    size_t kilobytes = 0;
    figure >> kilobytes;
    return kilobytes * kKiB;
  }
  ADD_FAILURE() << "no VmLck in /proc/self/status";
  return 0;
}

// Not mlock(): sanitizers replace that by nothing.
inline bool lock_for_real(void* data, size_t size) { return syscall(SYS_mlock, data, size) == 0; }

// The limit may be too low.
inline bool can_lock_pages(size_t size) {
  const OwnMemory probe(size);
  return lock_for_real(probe.data(), size) && is_page_locked(probe.data(), size);
}

}  // namespace understudy_test

#define US_SKIP_UNLESS_LOCKABLE(size)           \
  if (!::understudy_test::can_lock_pages(size)) \
  GTEST_SKIP() << "the lock limit of this process is too low"
