// SPDX-License-Identifier: Apache-2.0
//
// Kernels without a compute engine: a host function on a stream stands in for a kernel. With
// host_access=allow the CPU sees device memory at its device address, so the function reads and
// writes its operands where a kernel would. Here c = a + b, in tiles on two streams, over physical
// memory that was mapped behind one another. The order is the stream's: copies in, kernel, copy
// out. On an Ascend device a launch of the real kernel takes the place of aclrtLaunchHostFunc; all
// other calls stay.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "acl/acl.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kTile = 8 * kMiB;  // bytes of each operand in a tile
constexpr unsigned kTiles = 6;
constexpr unsigned kStreams = 2;
constexpr size_t kVector = kTiles * kTile;
constexpr size_t kElements = kVector / sizeof(float);

void check(aclError code, const char* call) {
  if (code == ACL_SUCCESS) return;
  const char* text = aclGetRecentErrMsg();
  std::fprintf(stderr, "%s failed with %d: %s\n", call, code, text == nullptr ? "" : text);
  std::exit(1);
}
#define CHECK(call) check((call), #call)

// The kernel and its arguments, which are device addresses.
struct VectorAdd {
  const float* a;
  const float* b;
  float* c;
  size_t count;
};

void vector_add(void* argument) {
  const auto& task = *static_cast<const VectorAdd*>(argument);
  for (size_t i = 0; i < task.count; ++i) task.c[i] = task.a[i] + task.b[i];
}

// Addresses for three vectors, with a block of physical memory behind each tile of each vector.
class DeviceVectors {
 public:
  DeviceVectors() {
    CHECK(aclrtReserveMemAddress(&base_, 3 * kVector, 0, nullptr, 0));
    aclrtPhysicalMemProp properties = {};
    properties.handleType = ACL_MEM_HANDLE_TYPE_NONE;
    properties.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
    properties.memAttr = ACL_HBM_MEM_HUGE;
    properties.location = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
    for (size_t offset = 0; offset < 3 * kVector; offset += kTile) {
      aclrtDrvMemHandle block = nullptr;
      CHECK(aclrtMallocPhysical(&block, kTile, &properties, 0));
      CHECK(aclrtMapMem(static_cast<char*>(base_) + offset, kTile, 0, block, 0));
      blocks_.push_back(block);
    }
  }
  ~DeviceVectors() {
    for (size_t n = 0; n < blocks_.size(); ++n) {
      CHECK(aclrtUnmapMem(static_cast<char*>(base_) + n * kTile));
      CHECK(aclrtFreePhysical(blocks_[n]));
    }
    CHECK(aclrtReleaseMemAddress(base_));
  }
  DeviceVectors(const DeviceVectors&) = delete;
  DeviceVectors& operator=(const DeviceVectors&) = delete;

  float* vector(unsigned number) const { return static_cast<float*>(base_) + number * kElements; }

 private:
  void* base_ = nullptr;
  std::vector<aclrtDrvMemHandle> blocks_;
};

float* page_locked_vector() {
  void* memory = nullptr;
  CHECK(aclrtMallocHost(&memory, kVector));
  return static_cast<float*>(memory);
}

}  // namespace

int main() {
  // For programs of your own: UNDERSTUDY_HOST_ACCESS=allow in the environment.
  setenv("UNDERSTUDY_HOST_ACCESS", "allow", 0);
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
  bool right = true;
  {
    const DeviceVectors device;
    float* const a = page_locked_vector();
    float* const b = page_locked_vector();
    float* const c = page_locked_vector();
    for (size_t i = 0; i < kElements; ++i) {
      a[i] = static_cast<float>(i % 1000);
      b[i] = static_cast<float>(i % 7) / 8;
    }
    aclrtStream streams[kStreams] = {};
    for (aclrtStream& stream : streams) CHECK(aclrtCreateStream(&stream));

    std::vector<VectorAdd> kernels(kTiles);
    for (unsigned tile = 0; tile < kTiles; ++tile) {
      aclrtStream const stream = streams[tile % kStreams];
      const size_t first = tile * (kTile / sizeof(float));
      kernels[tile] = {device.vector(0) + first, device.vector(1) + first, device.vector(2) + first,
                       kTile / sizeof(float)};
      CHECK(aclrtMemcpyAsync(device.vector(0) + first, kTile, a + first, kTile,
                             ACL_MEMCPY_HOST_TO_DEVICE, stream));
      CHECK(aclrtMemcpyAsync(device.vector(1) + first, kTile, b + first, kTile,
                             ACL_MEMCPY_HOST_TO_DEVICE, stream));
      CHECK(aclrtLaunchHostFunc(stream, vector_add, &kernels[tile]));
      CHECK(aclrtMemcpyAsync(c + first, kTile, device.vector(2) + first, kTile,
                             ACL_MEMCPY_DEVICE_TO_HOST, stream));
      std::printf("stream %u  tile %u  %zu MiB at %p + %p -> %p\n", tile % kStreams, tile,
                  kTile / kMiB, static_cast<const void*>(kernels[tile].a),
                  static_cast<const void*>(kernels[tile].b),
                  static_cast<const void*>(kernels[tile].c));
    }
    for (aclrtStream const stream : streams) CHECK(aclrtSynchronizeStream(stream));
    for (size_t i = 0; i < kElements; ++i) right = right && c[i] == a[i] + b[i];
    std::printf("\n%zu sums, a[%d] + b[%d] = %g: %s\n", kElements, 12345, 12345,
                static_cast<double>(c[12345]), right ? "all right" : "SOMETHING IS WRONG");

    for (aclrtStream const stream : streams) CHECK(aclrtDestroyStream(stream));
    for (float* const memory : {a, b, c}) CHECK(aclrtFreeHost(memory));
  }
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  return right ? 0 : 1;
}
