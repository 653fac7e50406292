// SPDX-License-Identifier: Apache-2.0
//
// The key driver: what older drivers lack, and what programs are told of their version.
// Covers: RETAIN-07.
#include <array>
#include <cstring>
#include <ostream>
#include <string>

#include "rules/runtime_support.h"

namespace understudy_test::runtime {
namespace {

struct Driver {
  std::string name;
  std::string value;    // of the key
  std::string version;  // as programs are told
  int32_t number;
  bool retains;
};
std::ostream& operator<<(std::ostream& stream, const Driver& driver) {
  return stream << driver.name;
}

class EachDriver : public testing::TestWithParam<Driver> {};
INSTANTIATE_TEST_SUITE_P(
    Configuration, EachDriver,
    testing::Values(Driver{"newest", "newest", "26.0.RC1", 259'999'901, true},
                    Driver{"of_26_0", "26.0.RC1", "26.0.RC1", 259'999'901, true},
                    Driver{"of_25_5", "25.5.0", "25.5.0", 250'500'000, false},
                    Driver{"of_25_3", "25.3.RC1", "25.3.RC1", 250'299'901, false},
                    Driver{"of_25_2", "25.2.0", "25.2.0", 250'200'000, false},
                    Driver{"of_25_0", "25.0.RC1", "25.0.RC1", 249'999'901, false}),
    case_name<Driver>);

std::string version_of(std::string package) {
  std::array<char, ACL_PKG_VERSION_MAX_SIZE> text{};
  EXPECT_SUCCESS(aclsysGetVersionStr(package.data(), text.data()));
  return text.data();
}

aclError retain(const MappedBlock& block) {
  aclrtDrvMemHandle handle = nullptr;
  const aclError code = aclrtMemRetainAllocationHandle(block.address, &handle);
  EXPECT_EQ(handle != nullptr, code == ACL_SUCCESS);
  if (code == ACL_SUCCESS) {
    EXPECT_SUCCESS(aclrtFreePhysical(handle));
  }
  return code;
}

TEST_P(EachDriver, TellsItsVersion) {
  US_FRESH_PROCESS({"UNDERSTUDY_DRIVER", GetParam().value});
  EXPECT_EQ(version_of("driver"), GetParam().version);
  std::string package = "driver";
  int32_t number = 0;
  EXPECT_SUCCESS(aclsysGetVersionNum(package.data(), &number));
  EXPECT_EQ(number, GetParam().number);
  aclCANNPackageVersion version;
  memset(&version, 0, sizeof version);
  EXPECT_SUCCESS(aclsysGetCANNVersion(ACL_PKG_NAME_DRIVER, &version));
  EXPECT_EQ(version.version, GetParam().version);
  EXPECT_EQ(
      std::string(version.majorVersion) + "." + version.minorVersion + "." + version.releaseVersion,
      GetParam().version);
  EXPECT_EQ(version_of("runtime"), "9.0.0") << "the other packages stay";
}

TEST_P(EachDriver, RETAIN_07_RetainsHandlesOrSaysFromWhichDriverOn) {
  US_FRESH_PROCESS({"UNDERSTUDY_DRIVER", GetParam().value});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const MappedBlock block = map_new_block();
  const aclError code = retain(block);
  if (GetParam().retains) {
    EXPECT_EQ(code, ACL_SUCCESS);
  } else {
    EXPECT_EQ(code, ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    EXPECT_EQ(recent_error(),
              "aclrtMemRetainAllocationHandle: driver " + GetParam().version +
                  " does not have this function; drivers from 26.0.RC1 on have it\n");
  }
  drop(block);
}

TEST(ConfiguredDriver, FeaturesComeOnTopOfIt) {
  US_FRESH_PROCESS({"UNDERSTUDY_DRIVER", "25.5.0"}, {"UNDERSTUDY_FEATURES", "+retain_handle"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const MappedBlock block = map_new_block();
  EXPECT_EQ(retain(block), ACL_SUCCESS);
  EXPECT_EQ(version_of("driver"), "25.5.0");
  drop(block);
}

TEST(ConfiguredDriver, WhatTheProductLacksIsNotTheDriversFault) {
  US_FRESH_PROCESS({"UNDERSTUDY_DRIVER", "25.5.0"}, {"UNDERSTUDY_PRODUCT", "ipv350"});
  EXPECT_SUCCESS(aclInit(nullptr));
  int place = 0;
  aclrtDrvMemHandle handle = nullptr;
  EXPECT_EQ(aclrtMemRetainAllocationHandle(&place, &handle), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  const std::string text = recent_error();
  EXPECT_NE(text.find("product ipv350"), std::string::npos) << text;
  EXPECT_SUCCESS(aclFinalize());
}

TEST(ConfiguredDriver, AWrongConfigurationIsSeenOnlyByWhatItDecides) {
  US_FRESH_PROCESS({"UNDERSTUDY_DRIVER", "24.0"});
  EXPECT_EQ(version_of("runtime"), "9.0.0");
  std::string package = "driver";
  std::array<char, ACL_PKG_VERSION_MAX_SIZE> text = {'#'};
  EXPECT_EQ(aclsysGetVersionStr(package.data(), text.data()), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(text[0], '#');
  EXPECT_EQ(recent_error(),
            "aclsysGetVersionStr: configuration key driver has the value \"24.0\" "
            "(UNDERSTUDY_DRIVER); allowed: newest, 26.0.RC1, 25.5.0, 25.3.RC1, 25.2.0, 25.0.RC1\n");
}

}  // namespace
}  // namespace understudy_test::runtime
