// SPDX-License-Identifier: Apache-2.0
//
// Queued tasks once took a device address that had been released, and was ordinary memory of the
// program by the time they ran, for host memory: they read and wrote it.
#include <optional>
#include <ostream>

#include "rules/async_objects.h"
#include "rules/vmm_objects.h"

namespace understudy_test {
namespace {

constexpr size_t kSize = 2 * kMiB;

struct QueuedTask {
  const char* name;
  aclError (*queue)(void* device, void* host, aclrtStream stream);

  friend std::ostream& operator<<(std::ostream& out, const QueuedTask& task) {
    return out << task.name;
  }
};

constexpr QueuedTask kTasks[] = {
    {"CopyIn",
     [](void* device, void* host, aclrtStream stream) {
       return aclrtMemcpyAsync(device, kSize, host, kSize, ACL_MEMCPY_HOST_TO_DEVICE, stream);
     }},
    {"CopyOut",
     [](void* device, void* host, aclrtStream stream) {
       return aclrtMemcpyAsync(host, kSize, device, kSize, ACL_MEMCPY_DEVICE_TO_HOST, stream);
     }},
    {"Set",
     [](void* device, void*, aclrtStream stream) {
       return aclrtMemsetAsync(device, kSize, 0x77, kSize, stream);
     }},
};

// Memory of the program's own at an address of its choice.
class OwnMemoryAt {
 public:
  explicit OwnMemoryAt(void* start)
      : data_(vmm::map_own_memory(number(start), kSize, PROT_READ | PROT_WRITE)) {
    EXPECT_EQ(data_, start) << "the address is still taken";
  }
  ~OwnMemoryAt() {
    if (exists()) munmap(data_, kSize);
  }
  OwnMemoryAt(const OwnMemoryAt&) = delete;
  OwnMemoryAt& operator=(const OwnMemoryAt&) = delete;

  bool exists() const { return data_ != MAP_FAILED; }
  void* data() const { return data_; }

 private:
  void* const data_;
};

class ReleasedAddress : public DeviceTest, public testing::WithParamInterface<QueuedTask> {};

TEST_P(ReleasedAddress, HostMemoryThatIsThereByThenIsNotTouched) {
  const TestStream stream;
  const HostBlock host(kSize);
  const std::vector<uint8_t> in_the_block = pattern(kSize, 3);
  const std::vector<uint8_t> at_the_address = pattern(kSize, 4);
  store(host.data(), in_the_block);
  std::optional<LiveMapping> mapping(std::in_place, kSize);
  void* const device = mapping->data();
  copy_in(device, pattern(kSize, 5));

  Gate gate(stream.get());
  gate.wait_until_reached();
  EXPECT_SUCCESS(GetParam().queue(device, host.data(), stream.get()));
  mapping.reset();
  const OwnMemoryAt own(device);
  ASSERT_TRUE(own.exists());
  store(own.data(), at_the_address);
  gate.open();
  expect_task_failed(stream.get(), device);
  EXPECT_TRUE(holds(own.data(), at_the_address));
  EXPECT_TRUE(holds(host.data(), in_the_block));
}

INSTANTIATE_TEST_SUITE_P(QueuedTasks, ReleasedAddress, testing::ValuesIn(kTasks),
                         [](const testing::TestParamInfo<QueuedTask>& task) {
                           return std::string(task.param.name);
                         });

}  // namespace
}  // namespace understudy_test
