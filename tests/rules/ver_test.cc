// SPDX-License-Identifier: Apache-2.0
//
// Versions of the interface and of packages, the SoC name, capabilities.
// Covers: VER-01, VER-02, VER-03, VER-04, VER-05, VER-06, VER-07.
#include <algorithm>
#include <array>
#include <cstring>
#include <regex>
#include <string>

#include "rules/runtime_support.h"

namespace understudy_test::runtime {
namespace {

constexpr char kInstalled[] = "runtime";
constexpr char kNotInstalled[] = "no-such-package";

struct VersionText {
  aclError code;
  std::string text;
};

// Room for more than the promised 128 bytes, so that a longer answer would be noticed.
VersionText version_text(std::string package) {
  std::array<char, 2 * ACL_PKG_VERSION_MAX_SIZE> buffer;
  buffer.fill('#');
  const aclError code = aclsysGetVersionStr(package.data(), buffer.data());
  const char* promised_end = buffer.data() + ACL_PKG_VERSION_MAX_SIZE;
  EXPECT_TRUE(std::all_of(promised_end, static_cast<const char*>(buffer.data() + buffer.size()),
                          [](char character) { return character == '#'; }))
      << "written beyond 128 bytes";
  if (code != ACL_SUCCESS) {
    EXPECT_EQ(buffer[0], '#') << "output written on failure";
    return {code, ""};
  }
  const char* end = std::find(static_cast<const char*>(buffer.data()), promised_end, '\0');
  EXPECT_NE(end, promised_end) << "no NUL within 128 bytes";
  return {code, std::string(static_cast<const char*>(buffer.data()), end)};
}

TEST(Version, VER_01_InterfaceVersionIsThatOfTheHeaders) {
  int32_t major = -1;
  int32_t minor = -1;
  int32_t patch = -1;
  EXPECT_SUCCESS(aclrtGetVersion(&major, &minor, &patch));
  EXPECT_EQ(major, 1);
  EXPECT_EQ(minor, 17);
  EXPECT_EQ(patch, 0);
}

TEST(Version, VER_01_NullIsRefused) {
  int32_t first = 77;
  int32_t second = 77;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetVersion(nullptr, &first, &second));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetVersion(&first, nullptr, &second));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetVersion(&first, &second, nullptr));
  EXPECT_EQ(first, 77);
  EXPECT_EQ(second, 77);
}

TEST(Version, VER_02_NullIsRefused) {
  std::string package = kInstalled;
  std::array<char, ACL_PKG_VERSION_MAX_SIZE> text = {'#'};
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclsysGetVersionStr(nullptr, text.data()));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclsysGetVersionStr(package.data(), nullptr));
  EXPECT_EQ(text[0], '#');
}

TEST(Version, VER_02_InstalledPackageHasAVersionText) {
  const VersionText version = version_text(kInstalled);
  EXPECT_EQ(version.code, ACL_SUCCESS) << recent_error();
  EXPECT_FALSE(version.text.empty());
}

TEST(Version, VER_02_PackageNotInstalledIsReported) {
  std::string package = kNotInstalled;
  std::array<char, ACL_PKG_VERSION_MAX_SIZE> text = {'#'};
  EXPECT_FAILS(ACL_ERROR_INVALID_FILE, aclsysGetVersionStr(package.data(), text.data()));
  EXPECT_EQ(text[0], '#');
  EXPECT_EQ(version_text("").code, ACL_ERROR_INVALID_FILE);
  EXPECT_EQ(version_text("../../etc/passwd").code, ACL_ERROR_INVALID_FILE);
  EXPECT_EQ(version_text(std::string(100'000, 'x')).code, ACL_ERROR_INVALID_FILE);
}

TEST(Version, VER_02_DashAndUnderscoreAreTheSame) {
  for (const char* name : {"no-such-package", "opp-kernel", "ge-executor", "acl-rt", "driver"}) {
    SCOPED_TRACE(name);
    std::string underscored = name;
    std::replace(underscored.begin(), underscored.end(), '-', '_');
    const VersionText dashed_version = version_text(name);
    const VersionText underscored_version = version_text(underscored);
    EXPECT_EQ(dashed_version.code, underscored_version.code);
    EXPECT_EQ(dashed_version.text, underscored_version.text);
  }
}

TEST(Version, VER_03_NullAndAbsentPackagesAreRefused) {
  std::string installed = kInstalled;
  std::string absent = kNotInstalled;
  int32_t number = 77;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclsysGetVersionNum(nullptr, &number));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclsysGetVersionNum(installed.data(), nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_FILE, aclsysGetVersionNum(absent.data(), &number));
  EXPECT_EQ(number, 77);
}

// major.minor.patch, perhaps followed by alpha, beta or rc and a number, in any usual spelling.
int32_t number_of(const std::string& text) {
  static const std::regex form(R"((\d+)\.(\d+)\.(\d+)(?:[.-]?(alpha|beta|rc)[.-]?(\d+))?)",
                               std::regex::icase);
  std::smatch part;
  if (!std::regex_match(text, part, form)) {
    ADD_FAILURE() << "not a version: " << text;
    return -1;
  }
  int32_t number =
      std::stoi(part[1]) * 10'000'000 + std::stoi(part[2]) * 100'000 + std::stoi(part[3]) * 1'000;
  if (part[4].matched) {
    const char stage = static_cast<char>(part[4].str()[0] | 0x20);
    number -= stage == 'a' ? 300 : stage == 'b' ? 200 : 100;
    number += std::stoi(part[5]);
  }
  return number;
}

TEST(Version, VER_03_NumberFollowsFromTheText) {
  std::string package = kInstalled;
  int32_t number = -1;
  EXPECT_SUCCESS(aclsysGetVersionNum(package.data(), &number));
  EXPECT_EQ(number, number_of(version_text(kInstalled).text));
}

TEST(Version, VER_04_NullAndUnknownNamesAreRefused) {
  aclCANNPackageVersion version;
  memset(&version, '#', sizeof version);
  const aclCANNPackageVersion untouched = version;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclsysGetCANNVersion(ACL_PKG_NAME_RUNTIME, nullptr));
  for (int64_t name : {-1, 8, 99, 0x7FFFFFFF}) {
    SCOPED_TRACE(name);
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
                 aclsysGetCANNVersion(enum_value<aclCANNPackageName>(name), &version));
  }
  EXPECT_EQ(memcmp(&version, &untouched, sizeof version), 0);
}

TEST(Version, VER_04_EachKnownPackageIsDescribedOrAbsent) {
  for (int name = ACL_PKG_NAME_CANN; name <= ACL_PKG_NAME_DRIVER; ++name) {
    SCOPED_TRACE(name);
    aclCANNPackageVersion version;
    memset(&version, '#', sizeof version);
    const aclError code = aclsysGetCANNVersion(enum_value<aclCANNPackageName>(name), &version);
    if (code == ACL_SUCCESS) {
      EXPECT_LT(strnlen(version.version, sizeof version.version), sizeof version.version);
      EXPECT_LT(strnlen(version.majorVersion, sizeof version.majorVersion),
                sizeof version.majorVersion);
      EXPECT_LT(strnlen(version.minorVersion, sizeof version.minorVersion),
                sizeof version.minorVersion);
      EXPECT_NE(version.version[0], '\0');
    } else {
      EXPECT_EQ(code, ACL_ERROR_INVALID_FILE);
      EXPECT_NE(recent_error().find("aclsysGetCANNVersion"), std::string::npos);
      EXPECT_EQ(version.version[0], '#');
    }
  }
}

TEST(Version, VER_04_TheRuntimeHasOneVersion) {
  aclCANNPackageVersion version;
  memset(&version, 0, sizeof version);
  EXPECT_SUCCESS(aclsysGetCANNVersion(ACL_PKG_NAME_RUNTIME, &version));
  EXPECT_EQ(version.version, version_text(kInstalled).text);
}

TEST(Version, VER_05_SocNameIsARealNameAndStable) {
  const char* name = aclrtGetSocName();
  ASSERT_NE(name, nullptr);
  EXPECT_STREQ(name, "Ascend910B3");
  on_new_thread([name] { EXPECT_EQ(aclrtGetSocName(), name) << "not one static text"; });
  EXPECT_SUCCESS(aclrtSetDevice(1));
  EXPECT_EQ(aclrtGetSocName(), name);
  EXPECT_SUCCESS(aclrtResetDevice(1));
  EXPECT_EQ(aclrtGetSocName(), name);
}

TEST(Version, VER_06_EachListedAttributeIsSupportedOrNot) {
  const aclCannAttr* list = nullptr;
  size_t count = 0;
  EXPECT_SUCCESS(aclGetCannAttributeList(&list, &count));
  ASSERT_NE(list, nullptr);
  ASSERT_GT(count, 0u);
  for (size_t i = 0; i < count; ++i) {
    SCOPED_TRACE(list[i]);
    int32_t value = -1;
    EXPECT_SUCCESS(aclGetCannAttribute(list[i], &value));
    EXPECT_TRUE(value == 0 || value == 1) << value;
  }
}

TEST(Version, VER_06_NullAndUnknownAttributesAreRefused) {
  const aclCannAttr* list = nullptr;
  size_t count = 77;
  int32_t value = 77;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclGetCannAttributeList(nullptr, &count));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclGetCannAttributeList(&list, nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclGetCannAttribute(ACL_CANN_ATTR_BF16, nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclGetCannAttribute(ACL_CANN_ATTR_UNDEFINED, &value));
  for (int64_t attribute : {-2, 1000, 0x7FFFFFFF}) {
    SCOPED_TRACE(attribute);
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
                 aclGetCannAttribute(enum_value<aclCannAttr>(attribute), &value));
  }
  EXPECT_EQ(list, nullptr);
  EXPECT_EQ(count, 77u);
  EXPECT_EQ(value, 77);
}

TEST(Version, VER_07_EachCapabilityIsAFigure) {
  for (aclDeviceInfo info :
       {ACL_DEVICE_INFO_AI_CORE_NUM, ACL_DEVICE_INFO_VECTOR_CORE_NUM, ACL_DEVICE_INFO_L2_SIZE}) {
    SCOPED_TRACE(info);
    int64_t value = -1;
    EXPECT_SUCCESS(aclGetDeviceCapability(0, info, &value));
    EXPECT_GT(value, 0);
  }
}

TEST(Version, VER_07_BadArgumentsAreRefused) {
  int64_t value = 77;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclGetDeviceCapability(0, ACL_DEVICE_INFO_L2_SIZE, nullptr));
  for (uint32_t device : {device_count(), 0xFFFFFFFFu}) {
    SCOPED_TRACE(device);
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
                 aclGetDeviceCapability(device, ACL_DEVICE_INFO_L2_SIZE, &value));
  }
  for (int64_t info : {-1, 3, 99}) {
    SCOPED_TRACE(info);
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
                 aclGetDeviceCapability(0, enum_value<aclDeviceInfo>(info), &value));
  }
  EXPECT_EQ(value, 77);
}

}  // namespace
}  // namespace understudy_test::runtime
