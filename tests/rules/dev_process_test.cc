// SPDX-License-Identifier: Apache-2.0
//
// What a process sees of its devices: the visible list, the run mode, its own id, waiting for work.
// Covers: DEV-16, DEV-17, DEV-18, DEV-19, DEV-20, DEV-22, DEV-23.
#include <sys/wait.h>
#include <unistd.h>

#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "rules/runtime_support.h"

namespace understudy_test::runtime {
namespace {

class DeviceProcess : public NoDeviceTest {};

// The numbers that the visible devices have on the whole machine.
std::vector<int32_t> visible_devices() {
  std::vector<int32_t> devices;
  for (uint32_t id = 0; id < device_count(); ++id) {
    int32_t logic = -1;
    EXPECT_SUCCESS(aclrtGetLogicDevIdByUserDevId(static_cast<int32_t>(id), &logic));
    devices.push_back(logic);
  }
  return devices;
}

struct VisibleList {
  std::string name;
  std::string text;
  std::vector<int32_t> devices;
};
std::ostream& operator<<(std::ostream& stream, const VisibleList& list) {
  return stream << list.name;
}
class VisibleDevices : public testing::TestWithParam<VisibleList> {};

TEST_P(VisibleDevices, DEV_16_AreRenumberedFromZero) {
  US_FRESH_PROCESS({"ASCEND_RT_VISIBLE_DEVICES", GetParam().text});
  const std::vector<int32_t>& expected = GetParam().devices;
  EXPECT_EQ(device_count(), expected.size());
  EXPECT_EQ(visible_devices(), expected);
  const int32_t count = static_cast<int32_t>(expected.size());
  EXPECT_SUCCESS(aclrtSetDevice(count - 1));
  EXPECT_EQ(current_device(), count - 1);
  EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtSetDevice(count));
}

INSTANTIATE_TEST_SUITE_P(
    Device, VisibleDevices,
    testing::Values(VisibleList{"one", "5", {5}}, VisibleList{"some", "1,4,6", {1, 4, 6}},
                    VisibleList{"all", "0,1,2,3,4,5,6,7", {0, 1, 2, 3, 4, 5, 6, 7}},
                    VisibleList{"stops_at_a_number_too_large", "0,2,8,3", {0, 2}},
                    VisibleList{"stops_at_a_word", "0,2,x,3", {0, 2}},
                    VisibleList{"stops_at_a_negative_number", "0,2,-1,3", {0, 2}},
                    VisibleList{"stops_where_it_descends", "3,1,5", {3}}),
    case_name<VisibleList>);

TEST(DeviceOfProduct, DEV_16_AnInvalidFirstEntryLeavesNoDevice) {
  US_FRESH_PROCESS({"ASCEND_RT_VISIBLE_DEVICES", "none,0,1"});
  uint32_t count = 77;
  if (aclrtGetDeviceCount(&count) == ACL_SUCCESS) {
    EXPECT_EQ(count, 0u);
  }
  EXPECT_NE(aclrtSetDevice(0), ACL_SUCCESS);
}

TEST_F(DeviceProcess, DEV_17_RunModeNeedsAPointerAndNoContext) {
  on_new_thread([] {
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetRunMode(nullptr));
    aclrtRunMode mode = ACL_DEVICE;
    EXPECT_SUCCESS(aclrtGetRunMode(&mode));
  });
}

TEST_F(DeviceProcess, DEV_18_TheProgramRunsOnTheHost) {
  aclrtRunMode mode = ACL_DEVICE;
  EXPECT_SUCCESS(aclrtGetRunMode(&mode));
  EXPECT_EQ(mode, ACL_HOST);
}

TEST(DeviceOfProduct, DEV_18_InTheRcFormItRunsOnTheDevice) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "200i-rc"});
  aclrtRunMode mode = ACL_HOST;
  EXPECT_SUCCESS(aclrtGetRunMode(&mode));
  EXPECT_EQ(mode, ACL_DEVICE);
}

TEST_F(DeviceProcess, DEV_19_SynchronizeNeedsAContext) {
  on_new_thread([] {
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtSynchronizeDevice());
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtSynchronizeDeviceWithTimeout(-1));
  });
}

TEST_F(DeviceProcess, DEV_19_AnIdleDeviceIsSynchronizedAtOnce) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_SUCCESS(aclrtSynchronizeDevice());
  const aclrtContext context = create_context(1);
  EXPECT_SUCCESS(aclrtSynchronizeDevice());
  EXPECT_SUCCESS(aclrtDestroyContext(context));
}

TEST_F(DeviceProcess, DEV_20_OnlyMinusOneAndPositiveTimeoutsAreGood) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  for (int32_t timeout : {0, -2, -1000, std::numeric_limits<int32_t>::min()}) {
    SCOPED_TRACE(timeout);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtSynchronizeDeviceWithTimeout(timeout));
  }
  for (int32_t timeout : {-1, 1, 1000, std::numeric_limits<int32_t>::max()}) {
    SCOPED_TRACE(timeout);
    EXPECT_SUCCESS(aclrtSynchronizeDeviceWithTimeout(timeout));
  }
}

TEST_F(DeviceProcess, DEV_22_NullIsRefused) {
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtDeviceGetBareTgid(nullptr));
}

TEST_F(DeviceProcess, DEV_23_TheIdIsThatOfTheProcess) {
  on_new_thread([] {
    int32_t id = -1;
    EXPECT_SUCCESS(aclrtDeviceGetBareTgid(&id));
    EXPECT_EQ(id, outermost_visible_id());
  });
}

TEST_F(DeviceProcess, DEV_23_AForkedChildHasItsOwnId) {
  int32_t own = -1;
  EXPECT_SUCCESS(aclrtDeviceGetBareTgid(&own));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int32_t id = -1;
    _exit(aclrtDeviceGetBareTgid(&id) == ACL_SUCCESS && id == outermost_visible_id() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace understudy_test::runtime
