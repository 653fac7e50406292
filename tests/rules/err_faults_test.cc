// SPDX-License-Identifier: Apache-2.0
//
// Exceptions of tasks, aborting, memory errors and repair, time limits of operators: on a healthy
// and idle device.
// Covers: ERR-08, ERR-09, ERR-10, ERR-11, ERR-12, ERR-13, ERR-14, ERR-15, ERR-16, ERR-18, ERR-19.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "rules/product_objects.h"
#include "rules/runtime_support.h"

namespace understudy_test::runtime {
namespace {

class Faults : public NoDeviceTest {
 protected:
  void SetUp() override {
    NoDeviceTest::SetUp();
    ASSERT_SUCCESS(aclrtSetDevice(0));
  }
};

void on_exception(aclrtExceptionInfo*) { ADD_FAILURE() << "no task failed"; }

TEST_F(Faults, ERR_08_NullCallbacksAreRefused) {
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtExceptionInfoCallbackRegister(nullptr));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtExceptionInfoCallbackUnregister(nullptr));
}

TEST_F(Faults, ERR_08_WithoutAFailedTaskTheCallbackIsSilent) {
  EXPECT_SUCCESS(aclrtExceptionInfoCallbackRegister(on_exception));
  EXPECT_SUCCESS(aclrtSynchronizeDevice());
  EXPECT_NE(aclrtSetDevice(-1), ACL_SUCCESS);
  EXPECT_SUCCESS(aclrtExceptionInfoCallbackUnregister(on_exception));
}

TEST_F(Faults, ERR_09_NullRemovesTheSingleCallback) {
  EXPECT_SUCCESS(aclrtSetExceptionInfoCallback(on_exception));
  EXPECT_SUCCESS(aclrtSetExceptionInfoCallback(nullptr));
  EXPECT_SUCCESS(aclrtSetExceptionInfoCallback(nullptr));
}

TEST_F(Faults, ERR_10_NoInfoReadsAsAllOnes) {
  EXPECT_EQ(aclrtGetTaskIdFromExceptionInfo(nullptr), 0xFFFFFFFFu);
  EXPECT_EQ(aclrtGetStreamIdFromExceptionInfo(nullptr), 0xFFFFFFFFu);
  EXPECT_EQ(aclrtGetThreadIdFromExceptionInfo(nullptr), 0xFFFFFFFFu);
  EXPECT_EQ(aclrtGetDeviceIdFromExceptionInfo(nullptr), 0xFFFFFFFFu);
  EXPECT_EQ(aclrtGetErrorCodeFromExceptionInfo(nullptr), 0xFFFFFFFFu);
}

TEST_F(Faults, ERR_11_AnIdleDeviceIsAbortedAndStaysUsable) {
  const MappedBlock block = map_new_block();
  copy_in(block.address, pattern(4 * kKiB));
  EXPECT_SUCCESS(aclrtDeviceTaskAbort(0, 0));
  EXPECT_SUCCESS(aclrtDeviceTaskAbort(0, 1000));
  EXPECT_EQ(current_device(), 0);
  EXPECT_SUCCESS(aclrtSynchronizeDevice());
  EXPECT_EQ(copy_out(block.address, 4 * kKiB), pattern(4 * kKiB));
  drop(block);
}

TEST_F(Faults, ERR_11_UnknownDevicesAreNotAborted) {
  for (int32_t id : bad_device_ids()) {
    SCOPED_TRACE(id);
    EXPECT_NE(aclrtDeviceTaskAbort(id, 0), ACL_SUCCESS);
  }
}

TEST_F(Faults, ERR_12_AHealthyDeviceListsNoMemoryError) {
  aclrtMemUceInfo errors[2];
  memset(errors, 0, sizeof errors);
  size_t count = 77;
  EXPECT_SUCCESS(aclrtGetMemUceInfo(0, errors, 2, &count));
  EXPECT_EQ(count, 0u);
}

TEST_F(Faults, ERR_12_NullIsRefused) {
  aclrtMemUceInfo error;
  size_t count = 77;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetMemUceInfo(0, nullptr, 1, &count));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetMemUceInfo(0, &error, 1, nullptr));
  EXPECT_EQ(count, 77u);
}

TEST_F(Faults, ERR_13_RepairOfMemorySucceeds) {
  const MappedBlock block = map_new_block();
  copy_in(block.address, pattern(4 * kKiB));
  aclrtMemUceInfo error;
  memset(&error, 0, sizeof error);
  error.addr = block.address;
  error.len = 64;
  EXPECT_SUCCESS(aclrtMemUceRepair(0, &error, 1));
  EXPECT_EQ(copy_out(block.address, 4 * kKiB), pattern(4 * kKiB));
  drop(block);
}

TEST_F(Faults, ERR_13_BadArgumentsAreRefused) {
  std::vector<aclrtMemUceInfo> errors(MAX_MEM_UCE_INFO_ARRAY_SIZE + 1);
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemUceRepair(0, nullptr, 1));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemUceRepair(0, errors.data(), errors.size()));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemUceRepair(0, errors.data(), SIZE_MAX));
  for (size_t word : {size_t{0}, size_t{UCE_INFO_RESERVED_SIZE - 1}}) {
    SCOPED_TRACE(word);
    errors[1].reserved[word] = 1;
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemUceRepair(0, errors.data(), 2));
    errors[1].reserved[word] = 0;
  }
}

TEST_F(Faults, ERR_14_AHealthyDeviceHasNoErrorAndRepairSucceeds) {
  aclrtErrorInfo info;
  memset(&info, 0xFF, sizeof info);
  EXPECT_SUCCESS(aclrtGetErrorVerbose(0, &info));
  EXPECT_EQ(info.errorType, ACL_RT_NO_ERROR);
  EXPECT_SUCCESS(aclrtRepairError(0, &info));
}

TEST_F(Faults, ERR_14_NullIsRefused) {
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetErrorVerbose(0, nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtRepairError(0, nullptr));
}

uint32_t operator_limit_ms() {
  uint32_t limit = 0xAAAAAAAA;
  EXPECT_SUCCESS(aclrtGetOpExecuteTimeout(&limit));
  return limit;
}

uint64_t operator_interval() {
  uint64_t interval = 0;
  EXPECT_SUCCESS(aclrtGetOpTimeOutInterval(&interval));
  EXPECT_GT(interval, 0u);
  return interval;
}

// Microseconds that count after a limit was asked for.
uint64_t limit_after(uint64_t asked) {
  uint64_t in_force = 0;
  EXPECT_SUCCESS(aclrtSetOpExecuteTimeOutV2(asked, &in_force));
  EXPECT_EQ(operator_limit_ms(), in_force / 1000);
  return in_force;
}

TEST_F(Faults, ERR_15_ERR_19_TheOperatorLimitIsStoredInWholeIntervals) {
  US_FRESH_PROCESS();
  const uint64_t interval = operator_interval();
  const uint64_t most = 254 * interval;
  EXPECT_EQ(limit_after(1), interval);
  EXPECT_EQ(limit_after(interval), interval);
  EXPECT_EQ(limit_after(interval + 1), 2 * interval);
  EXPECT_EQ(limit_after(most - 1), most);
  EXPECT_EQ(limit_after(most), most);
  for (const uint64_t large : {most + 1, UINT64_MAX - 1, UINT64_MAX}) {
    EXPECT_EQ(limit_after(large), most);
  }
  EXPECT_SUCCESS(aclrtSetOpExecuteTimeOut(10));
  EXPECT_EQ(operator_limit_ms(), (10'000'000 + interval - 1) / interval * interval / 1000);
  EXPECT_SUCCESS(aclrtSetOpExecuteTimeOut(0xFFFFFFFF));
  EXPECT_EQ(operator_limit_ms(), most / 1000);
}

TEST_F(Faults, ERR_19_ZeroIsTheLongestOrNoLimit) {
  US_FRESH_PROCESS();
  const uint64_t interval = operator_interval();
  const uint64_t longest = interval < 100'000 ? UINT64_MAX : 254 * interval;
  const uint32_t longest_ms =
      interval < 100'000 ? 0xFFFFFFFF : static_cast<uint32_t>(longest / 1000);
  uint64_t in_force = 0;
  EXPECT_SUCCESS(aclrtSetOpExecuteTimeOutV2(0, &in_force));
  EXPECT_EQ(in_force, longest);
  EXPECT_EQ(operator_limit_ms(), longest_ms);
  EXPECT_SUCCESS(aclrtSetOpExecuteTimeOut(1));
  EXPECT_SUCCESS(aclrtSetOpExecuteTimeOut(0));
  EXPECT_EQ(operator_limit_ms(), longest_ms);
}

struct OperatorProduct {
  std::string product;
  uint32_t seconds;
};
class OperatorLimit : public testing::TestWithParam<OperatorProduct> {};
INSTANTIATE_TEST_SUITE_P(Products, OperatorLimit,
                         testing::Values(OperatorProduct{"a2", 1091}, OperatorProduct{"a3", 1091},
                                         OperatorProduct{"950", 1091},
                                         OperatorProduct{"200i", 1091}, OperatorProduct{"inf", 547},
                                         OperatorProduct{"trn", 68}),
                         [](const auto& rules) {
                           return test_name_of_product(rules.param.product);
                         });

TEST_P(OperatorLimit, ERR_19_ALimitThatWasNeverSetIsThatOfTheProduct) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam().product});
  EXPECT_EQ(operator_limit_ms(), GetParam().seconds * 1000);
}

TEST_F(Faults, ERR_15_TheLimitInForceNeedsAPlace) {
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtSetOpExecuteTimeOutV2(1'000'000, nullptr));
}

TEST_F(Faults, ERR_16_NullOutputsAreRefused) {
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetOpTimeOutInterval(nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetOpExecuteTimeout(nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetThreadLastTaskId(nullptr));
}

TEST_F(Faults, ERR_16_TheIntervalAndTheTaskAreThere) {
  US_FRESH_PROCESS();
  EXPECT_GT(operator_interval(), 0u);
  uint32_t task = 0xAAAAAAAA;
  EXPECT_SUCCESS(aclrtGetThreadLastTaskId(&task));
  EXPECT_NE(task, 0xAAAAAAAA);
}

class FaultsOn : public ProductTest {};
INSTANTIATE_TEST_SUITE_P(Products, FaultsOn, every_product(), product_name);

TEST_P(FaultsOn, ERR_16_NoProductTakesMilliseconds_C8) {
  US_ON_PRODUCT();
  const uint32_t before = operator_limit_ms();
  for (const uint32_t timeout : {0u, 3000u, 0xFFFFFFFFu}) {
    EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtSetOpExecuteTimeOutWithMs(timeout));
  }
  EXPECT_EQ(operator_limit_ms(), before);
}

TEST_P(FaultsOn, ERR_18_OlderProductsLackAbortAndRepair) {
  US_ON_PRODUCT();
  const bool has = !is_older();
  EXPECT_SUPPORTED(has, aclrtDeviceTaskAbort(0, 1000));
  const auto callback = [](int32_t, aclrtDeviceTaskAbortStage, uint32_t, void*) { return 0; };
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtSetDeviceTaskAbortCallback(nullptr, callback, nullptr));
  EXPECT_SUPPORTED(has, aclrtSetDeviceTaskAbortCallback("ERR_18", callback, nullptr));
  aclrtMemUceInfo error;
  memset(&error, 0, sizeof error);
  size_t count = 77;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetMemUceInfo(0, nullptr, 1, &count));
  EXPECT_SUPPORTED(has, aclrtGetMemUceInfo(0, &error, 1, &count));
  EXPECT_EQ(count, has ? 0u : 77u);
  EXPECT_SUPPORTED(has, aclrtMemUceRepair(0, &error, 1));
  aclrtErrorInfo info;
  memset(&info, 0, sizeof info);
  EXPECT_SUPPORTED(has, aclrtGetErrorVerbose(0, &info));
  EXPECT_SUPPORTED(has, aclrtRepairError(0, &info));
}

TEST_F(Faults, ERR_18_AnyLimitIsTaken) {
  for (const uint32_t timeout : {1u, 36u * 60'000, 36u * 60'000 + 1, 0xFFFFFFFFu}) {
    EXPECT_SUCCESS(aclrtDeviceTaskAbort(0, timeout));
  }
}

using Stages = std::vector<std::pair<int32_t, aclrtDeviceTaskAbortStage>>;
int32_t note_stage(int32_t device, aclrtDeviceTaskAbortStage stage, uint32_t, void* args) {
  static_cast<Stages*>(args)->emplace_back(device, stage);
  return 0;
}

TEST_F(Faults, ERR_16_TheAbortCallbackRunsBeforeAndAfterTheAbort) {
  US_FRESH_PROCESS();
  Stages stages;
  ASSERT_SUCCESS(aclrtSetDeviceTaskAbortCallback("ERR_16", note_stage, &stages));
  EXPECT_SUCCESS(aclrtDeviceTaskAbort(0, 1000));
  const Stages expected = {{0, ACL_RT_DEVICE_TASK_ABORT_PRE}, {0, ACL_RT_DEVICE_TASK_ABORT_POST}};
  EXPECT_EQ(stages, expected);
}

}  // namespace
}  // namespace understudy_test::runtime
