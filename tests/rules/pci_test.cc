// SPDX-License-Identifier: Apache-2.0
//
// Places of devices on the PCIe bus: aclrtDeviceGetPCIBusId, aclrtDeviceGetByPCIBusId.
// Covers: PCI-01, PCI-02, PCI-03, PCI-04, PCI-05, PCI-06.
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "rules/product_objects.h"
#include "rules/runtime_support.h"

namespace understudy_test::runtime {
namespace {

class PciBusId : public NoDeviceTest {};

constexpr int32_t kTextSize = 13;

std::string bus_id(int32_t device) {
  std::string buffer(kTextSize + 3, '?');
  EXPECT_SUCCESS(aclrtDeviceGetPCIBusId(device, buffer.data(), kTextSize));
  EXPECT_EQ(buffer[kTextSize - 1], '\0');
  EXPECT_EQ(buffer.substr(kTextSize), "???") << "no byte beyond the text is written";
  return buffer.c_str();
}

int32_t device_at(const std::string& bus_id) {
  int32_t device = -77;
  EXPECT_SUCCESS(aclrtDeviceGetByPCIBusId(bus_id.c_str(), &device));
  return device;
}

void expect_not_found(aclError code, const std::string& bus_id) {
  SCOPED_TRACE(bus_id);
  int32_t device = -77;
  EXPECT_FAILS(code, aclrtDeviceGetByPCIBusId(bus_id.c_str(), &device));
  EXPECT_EQ(device, -77);
}

TEST_F(PciBusId, PCI_01_BadArgumentsAreRefusedAndNothingIsWritten) {
  char buffer[kTextSize];
  memset(buffer, '?', sizeof buffer);
  int32_t device = -77;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtDeviceGetPCIBusId(0, nullptr, kTextSize));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtDeviceGetPCIBusId(-1, nullptr, 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtDeviceGetByPCIBusId(nullptr, &device));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtDeviceGetByPCIBusId(bus_id(0).c_str(), nullptr));
  for (const int32_t size : {12, 1, 0, -1, std::numeric_limits<int32_t>::min()}) {
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtDeviceGetPCIBusId(0, buffer, size));
  }
  for (const int32_t id : bad_device_ids()) {
    EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtDeviceGetPCIBusId(id, buffer, kTextSize));
  }
  EXPECT_EQ(std::string(buffer, sizeof buffer), std::string(sizeof buffer, '?'));
  EXPECT_EQ(device, -77);
}

TEST_F(PciBusId, PCI_02_PCI_03_EveryDeviceHasItsTextOfTheForm) {
  const std::regex form("[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-9a-f]");
  std::set<std::string> seen;
  for (int32_t device = 0; device < static_cast<int32_t>(device_count()); ++device) {
    const std::string text = bus_id(device);
    EXPECT_TRUE(std::regex_match(text, form)) << text;
    EXPECT_EQ(bus_id(device), text) << "stable";
    seen.insert(text);
  }
  EXPECT_EQ(seen.size(), device_count());
}

TEST_F(PciBusId, PCI_04_PCI_06_TheTextFindsItsDeviceInEitherCaseWithoutAContext) {
  on_new_thread([] {
    for (int32_t device = 0; device < static_cast<int32_t>(device_count()); ++device) {
      std::string text = bus_id(device);
      EXPECT_EQ(device_at(text), device);
      for (char& letter : text) letter = static_cast<char>(std::toupper(letter));
      EXPECT_EQ(device_at(text), device);
    }
  });
  // It is the id that aclrtSetDevice takes.
  ASSERT_SUCCESS(aclrtSetDevice(device_at(bus_id(3))));
  EXPECT_EQ(current_device(), 3);
}

TEST_F(PciBusId, PCI_05_OtherTextsAreRefused) {
  for (const char* const text :
       {"", "0", "0000:3d:00", "0000:3d:00.", "0000:3d:00.00", "0000:3d:00.0 ", " 0000:3d:00.0",
        "000:3d:00.0", "00000:3d:00.0", "0000-3d-00.0", "0000:3g:00.0", "0000:3d:00:0",
        "0000:3d:00.g", "0x00:3d:00.0", "0000:+d:00.0", "not a place on any bus at all"}) {
    expect_not_found(ACL_ERROR_RT_PARAM_INVALID, text);
  }
  for (const char* const text : {"ffff:ff:1f.7", "0000:00:00.0", "0001:01:00.0", "FFFF:FF:FF.F"}) {
    expect_not_found(ACL_ERROR_RT_INVALID_DEVICEID, text);
  }
}

// The parent, which sees all devices, tells the child what it saw.
TEST(PciBusIdOfVisibleDevices, PCI_03_PCI_04_PCI_05_TheTextIsThatOfThePhysicalDevice) {
  const char* const told = getenv("US_BUS_IDS");
  const std::string texts = told != nullptr ? told : bus_id(2) + bus_id(5) + bus_id(3);
  US_FRESH_PROCESS({"ASCEND_RT_VISIBLE_DEVICES", "2,5"}, {"US_BUS_IDS", texts});
  EXPECT_EQ(bus_id(0), texts.substr(0, 12));
  EXPECT_EQ(bus_id(1), texts.substr(12, 12));
  EXPECT_EQ(device_at(texts.substr(12, 12)), 1);
  expect_not_found(ACL_ERROR_RT_INVALID_DEVICEID, texts.substr(24));
}

class PciBusIdOn : public ProductTest {};
INSTANTIATE_TEST_SUITE_P(Products, PciBusIdOn, every_product(), product_name);

TEST_P(PciBusIdOn, PCI_01_PCI_06_SomeProductsHaveIt) {
  US_ON_PRODUCT();
  char buffer[kTextSize];
  int32_t device = -77;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtDeviceGetPCIBusId(0, nullptr, kTextSize));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtDeviceGetByPCIBusId(nullptr, &device));
  EXPECT_SUPPORTED(is_modern(), aclrtDeviceGetPCIBusId(0, buffer, kTextSize));
  if (!is_modern()) strcpy(buffer, "0000:01:00.0");
  EXPECT_SUPPORTED(is_modern(), aclrtDeviceGetByPCIBusId(buffer, &device));
  EXPECT_EQ(device, is_modern() ? 0 : -77);
}

TEST(PciBusIdOfOtherLinks, PCI_06_AProfileWithAnotherLinkHasNone) {
  US_FRESH_PROCESS({"UNDERSTUDY_FEATURES", "-pcie"});
  char buffer[kTextSize];
  int32_t device = -77;
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtDeviceGetPCIBusId(0, buffer, 1));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtDeviceGetByPCIBusId("", &device));
}

}  // namespace
}  // namespace understudy_test::runtime
