// SPDX-License-Identifier: Apache-2.0
//
// What the tests of the runtime groups (INIT, DEV, PEER, CTX, ERR) share.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "support/rule_test.h"

namespace understudy_test::runtime {

inline constexpr size_t kBlockSize = 2 * kMiB;

// Runs the body on a thread of its own, which starts without a context, and waits for its end.
template <typename Body>
void on_new_thread(Body body) {
  std::thread thread(body);
  thread.join();
}

// The names of the cases of a TEST_P whose parameter has a `name`.
template <typename Case>
std::string case_name(const testing::TestParamInfo<Case>& parameter) {
  return parameter.param.name;
}

inline uint32_t device_count() {
  uint32_t count = 0;
  EXPECT_SUCCESS(aclrtGetDeviceCount(&count));
  EXPECT_GT(count, 0u);
  return count;
}

inline std::vector<int32_t> bad_device_ids() {
  const int32_t count = static_cast<int32_t>(device_count());
  return {-1, count, count + 1, std::numeric_limits<int32_t>::max(),
          std::numeric_limits<int32_t>::min()};
}

inline int32_t current_device() {
  int32_t device = -1;
  EXPECT_SUCCESS(aclrtGetDevice(&device));
  return device;
}

inline aclrtContext current_context() {
  aclrtContext context = nullptr;
  EXPECT_SUCCESS(aclrtGetCurrentContext(&context));
  EXPECT_NE(context, nullptr);
  return context;
}

inline aclrtContext create_context(int32_t device = 0) {
  aclrtContext context = nullptr;
  EXPECT_SUCCESS(aclrtCreateContext(&context, device));
  EXPECT_NE(context, nullptr);
  return context;
}

inline aclrtStream default_stream() {
  aclrtStream stream = nullptr;
  EXPECT_SUCCESS(aclrtCtxGetCurrentDefaultStream(&stream));
  EXPECT_NE(stream, nullptr);
  return stream;
}

inline bool default_context_exists(int32_t device) {
  int32_t active = -1;
  EXPECT_SUCCESS(aclrtGetPrimaryCtxState(device, nullptr, &active));
  return active == 1;
}

// What device 0 has of a kind. IPV350 has no default context, so a context of its own asks.
inline size_t total_memory(aclrtMemAttr attribute = ACL_HBM_MEM) {
  const aclrtContext context = create_context(0);
  size_t free = 0;
  size_t total = 0;
  EXPECT_SUCCESS(aclrtGetMemInfo(attribute, &free, &total));
  EXPECT_LE(free, total);
  EXPECT_SUCCESS(aclrtDestroyContext(context));
  return total;
}

// The stream functions of this chapter are the limits; they tell whether a handle is still good.
inline bool stream_is_usable(aclrtStream stream) {
  uint32_t value = 0;
  const aclError code = aclrtGetStreamResLimit(stream, ACL_RT_DEV_RES_CUBE_CORE, &value);
  (void)recent_error();
  return code == ACL_SUCCESS;
}

// The outermost id that this process can learn of itself: the first of the NSpid line.
inline int32_t outermost_visible_id() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("NSpid:", 0) != 0) continue;
    std::istringstream numbers(line.substr(6));
    int32_t id = -1;
    numbers >> id;
    return id;
  }
  return getpid();
}

// Device memory at an address of its own.
struct MappedBlock {
  aclrtDrvMemHandle handle = nullptr;
  void* address = nullptr;
  size_t size = 0;
};

inline MappedBlock map_new_block(uint32_t device = 0, size_t size = kBlockSize) {
  MappedBlock block;
  block.size = size;
  block.handle =
      create_block(size, block_property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, device));
  block.address = reserve(size);
  EXPECT_SUCCESS(aclrtMapMem(block.address, size, 0, block.handle, 0));
  return block;
}

inline void drop(const MappedBlock& block) {
  EXPECT_SUCCESS(aclrtUnmapMem(block.address));
  EXPECT_SUCCESS(aclrtFreePhysical(block.handle));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(block.address));
}

// Starts and ends with no device set, so that reference counts are known.
class NoDeviceTest : public testing::Test {
 protected:
  void SetUp() override { reset_every_device(); }
  void TearDown() override { reset_every_device(); }

 private:
  static void reset_every_device() {
    for (uint32_t device = 0; device < device_count(); ++device) {
      (void)aclrtResetDeviceForce(static_cast<int32_t>(device));
    }
    (void)recent_error();
  }
};

}  // namespace understudy_test::runtime
