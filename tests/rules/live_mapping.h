// SPDX-License-Identifier: Apache-2.0
//
// What tests of copying, setting and asking start from: a mapped block, bytes that must not change,
// a thread without a context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "support/rule_test.h"

namespace understudy_test {

inline constexpr size_t kGranule = 2 * kMiB;
inline constexpr size_t kPage = 4 * kKiB;

inline aclrtPhysicalMemProp host_property() {
  return block_property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST, 0);
}

// Makes a device current for the thread and gives it back at the end of its scope. For tests that
// run in a fresh process, whose parent must not touch the library.
class DeviceSession {
 public:
  explicit DeviceSession(int32_t device = 0) : device_(device) {
    EXPECT_SUCCESS(aclrtSetDevice(device_));
  }
  ~DeviceSession() { EXPECT_SUCCESS(aclrtResetDeviceForce(device_)); }
  DeviceSession(const DeviceSession&) = delete;
  DeviceSession& operator=(const DeviceSession&) = delete;

 private:
  const int32_t device_;
};

// A block mapped over the whole of a reservation of its own, taken down at the end of its scope.
class LiveMapping {
 public:
  explicit LiveMapping(size_t size = kGranule,
                       const aclrtPhysicalMemProp& property = block_property())
      : size_(size), data_(reserve(size)), handle_(create_block(size, property)) {
    EXPECT_SUCCESS(aclrtMapMem(data_, size_, 0, handle_, 0));
  }
  ~LiveMapping() {
    EXPECT_SUCCESS(aclrtUnmapMem(data_));
    EXPECT_SUCCESS(aclrtFreePhysical(handle_));
    EXPECT_SUCCESS(aclrtReleaseMemAddress(data_));
  }
  LiveMapping(const LiveMapping&) = delete;
  LiveMapping& operator=(const LiveMapping&) = delete;

  size_t size() const { return size_; }
  void* data() const { return data_; }
  void* at(size_t offset) const { return understudy_test::at(data_, offset); }
  aclrtDrvMemHandle handle() const { return handle_; }

 private:
  const size_t size_;
  void* const data_;
  const aclrtDrvMemHandle handle_;
};

// A mapping with known bytes, and the memory figures of its birth: nothing done elsewhere may
// change either. Needs a current context.
class Bystander {
 public:
  explicit Bystander(uint8_t seed = 200) : first_(pattern(kPage, seed)), last_(first_) {
    for (uint8_t& byte : last_) byte = static_cast<uint8_t>(~byte);
    copy_in(mapping_.data(), first_);
    copy_in(mapping_.at(mapping_.size() - kPage), last_);
    figures_ = memory_figures();
  }

  void expect_unchanged() const {
    EXPECT_EQ(memory_figures(), figures_);
    expect_bytes_unchanged();
  }
  void expect_bytes_unchanged() const {
    EXPECT_TRUE(copy_out(mapping_.data(), kPage) == first_) << "the first page changed";
    EXPECT_TRUE(copy_out(mapping_.at(mapping_.size() - kPage), kPage) == last_)
        << "the last page changed";
  }
  const LiveMapping& mapping() const { return mapping_; }

 private:
  LiveMapping mapping_;
  std::vector<uint8_t> first_;
  std::vector<uint8_t> last_;
  MemoryFigures figures_;
};

// Runs the body on a thread that never had a context.
template <typename Body>
void on_bare_thread(Body body) {
  std::thread(std::move(body)).join();
}

}  // namespace understudy_test
