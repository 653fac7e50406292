// SPDX-License-Identifier: Apache-2.0
//
// Atomic operations of a device on memory of the host and of other devices.
// Covers: ATOM-01, ATOM-02, ATOM-03, ATOM-04, ATOM-05.
#include <vector>

#include "rules/product_objects.h"
#include "rules/runtime_support.h"

namespace understudy_test::runtime {
namespace {

class AtomicCapabilities : public NoDeviceTest {};

constexpr uint32_t kUntouched = 0xA5A5A5A5;

std::vector<aclrtAtomicOperation> every_operation() {
  std::vector<aclrtAtomicOperation> operations;
  for (int64_t number = 0; number <= 12; ++number) {
    operations.push_back(enum_value<aclrtAtomicOperation>(number));
  }
  for (const int64_t number : {30, 31, 32, 40, 41, 42, 43, 44}) {
    operations.push_back(enum_value<aclrtAtomicOperation>(number));
  }
  return operations;
}

// Both functions, the second between devices 0 and 1 unless told otherwise.
struct CapabilityFunction {
  const char* name;
  aclError (*call)(uint32_t* capabilities, const aclrtAtomicOperation* operations, uint32_t count,
                   int32_t device);

  void expect_refused(aclError code, uint32_t* capabilities, const aclrtAtomicOperation* operations,
                      uint32_t count, int32_t device = 0) const {
    (void)recent_error();
    EXPECT_TRUE(fails_with(code, call(capabilities, operations, count, device), name));
  }
};
constexpr CapabilityFunction kFunctions[] = {
    {"aclrtDeviceGetHostAtomicCapabilities", aclrtDeviceGetHostAtomicCapabilities},
    {"aclrtDeviceGetP2PAtomicCapabilities",
     [](uint32_t* capabilities, const aclrtAtomicOperation* operations, uint32_t count,
        int32_t device) {
       return aclrtDeviceGetP2PAtomicCapabilities(capabilities, operations, count, device, 1);
     }},
};

TEST_F(AtomicCapabilities, ATOM_01_BadArgumentsAreRefused) {
  const aclrtAtomicOperation operation = ACL_RT_ATOMIC_OPERATION_CAS;
  uint32_t capability = kUntouched;
  for (const CapabilityFunction& function : kFunctions) {
    function.expect_refused(ACL_ERROR_INVALID_PARAM, nullptr, &operation, 1);
    function.expect_refused(ACL_ERROR_INVALID_PARAM, &capability, nullptr, 1);
    function.expect_refused(ACL_ERROR_INVALID_PARAM, nullptr, nullptr, 0, -1);
    function.expect_refused(ACL_ERROR_RT_PARAM_INVALID, &capability, &operation, 0);
  }
  EXPECT_EQ(capability, kUntouched);
}

TEST_F(AtomicCapabilities, ATOM_02_BadDevicesAreRefused) {
  const aclrtAtomicOperation operation = ACL_RT_ATOMIC_OPERATION_CAS;
  uint32_t capability = kUntouched;
  for (const int32_t id : bad_device_ids()) {
    for (const CapabilityFunction& function : kFunctions) {
      function.expect_refused(ACL_ERROR_RT_INVALID_DEVICEID, &capability, &operation, 1, id);
    }
    EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID,
                 aclrtDeviceGetP2PAtomicCapabilities(&capability, &operation, 1, 0, id));
    EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID,
                 aclrtDeviceGetP2PAtomicCapabilities(&capability, &operation, 1, id, id));
  }
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtDeviceGetP2PAtomicCapabilities(&capability, &operation, 1, 2, 2));
  EXPECT_EQ(capability, kUntouched);
}

TEST_F(AtomicCapabilities, ATOM_03_OneUnknownOperationRefusesAll) {
  for (const CapabilityFunction& function : kFunctions) {
    for (const int64_t number : {-1, 13, 29, 33, 39, 45, 0x7FFFFFFF}) {
      SCOPED_TRACE(number);
      const aclrtAtomicOperation operations[] = {ACL_RT_ATOMIC_OPERATION_AND,
                                                 enum_value<aclrtAtomicOperation>(number)};
      uint32_t capabilities[] = {kUntouched, kUntouched};
      function.expect_refused(ACL_ERROR_RT_PARAM_INVALID, capabilities, operations, 2);
      EXPECT_EQ(capabilities[0], kUntouched);
      EXPECT_EQ(capabilities[1], kUntouched);
    }
  }
}

TEST_F(AtomicCapabilities, ATOM_04_ATOM_05_AsManyMasksAreWrittenAndNoneHasABit) {
  const std::vector<aclrtAtomicOperation> operations = every_operation();
  on_new_thread([&] {
    for (const CapabilityFunction& function : kFunctions) {
      SCOPED_TRACE(function.name);
      std::vector<uint32_t> capabilities(operations.size() + 1, kUntouched);
      EXPECT_SUCCESS(function.call(capabilities.data(), operations.data(),
                                   static_cast<uint32_t>(operations.size()), 0));
      EXPECT_EQ(capabilities.back(), kUntouched);
      capabilities.pop_back();
      EXPECT_EQ(capabilities, std::vector<uint32_t>(operations.size(), 0));
    }
  });
}

class AtomicCapabilitiesOn : public ProductTest {};
INSTANTIATE_TEST_SUITE_P(Products, AtomicCapabilitiesOn, every_product(), product_name);

TEST_P(AtomicCapabilitiesOn, ATOM_01_ATOM_05_EveryProductButOneHasTheFunctions) {
  US_ON_PRODUCT();
  const aclrtAtomicOperation operation = ACL_RT_ATOMIC_OPERATION_CAS;
  for (const CapabilityFunction& function : kFunctions) {
    uint32_t capability = kUntouched;
    function.expect_refused(ACL_ERROR_INVALID_PARAM, nullptr, &operation, 1);
    (void)recent_error();
    const bool has = GetParam() != "ipv350";
    const aclError code = function.call(&capability, &operation, 1, 0);
    EXPECT_EQ(code, has ? ACL_SUCCESS : ACL_ERROR_RT_FEATURE_NOT_SUPPORT) << recent_error();
    EXPECT_EQ(capability, has ? 0 : kUntouched);
  }
}

}  // namespace
}  // namespace understudy_test::runtime
