// SPDX-License-Identifier: Apache-2.0
//
// Versions, names and capabilities of the software stack. Rules: VER.
#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "acl/acl.h"
#include "capi/call.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

// What the software device passes for: the release that has the functions of these headers.
struct Package {
  aclCANNPackageName number;
  std::string_view name;
  bool installed;
  int major;
  int minor;
  int patch;
  int candidate;  // 0: a final release

  std::string release_text() const {
    return candidate == 0 ? std::to_string(patch) : "RC" + std::to_string(candidate);
  }
  std::string text() const {
    return std::to_string(major) + "." + std::to_string(minor) + "." + release_text();
  }
  int32_t as_number() const {
    const int32_t release = major * 10'000'000 + minor * 100'000 + patch * 1'000;
    return candidate == 0 ? release : release - 100 + candidate;
  }
};

constexpr std::array kPackages = {
    Package{ACL_PKG_NAME_CANN, "cann", true, 9, 0, 0, 0},
    Package{ACL_PKG_NAME_RUNTIME, "runtime", true, 9, 0, 0, 0},
    Package{ACL_PKG_NAME_COMPILER, "compiler", false, 0, 0, 0, 0},
    Package{ACL_PKG_NAME_HCCL, "hccl", false, 0, 0, 0, 0},
    Package{ACL_PKG_NAME_TOOLKIT, "toolkit", true, 9, 0, 0, 0},
    Package{ACL_PKG_NAME_OPP, "opp", false, 0, 0, 0, 0},
    Package{ACL_PKG_NAME_OPP_KERNEL, "opp_kernel", false, 0, 0, 0, 0},
    Package{ACL_PKG_NAME_DRIVER, "driver", true, 26, 0, 0, 1},
};

bool same_name(std::string_view a, std::string_view b) {
  const auto plain = [](char letter) { return letter == '-' ? '_' : letter; };
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (plain(a[i]) != plain(b[i])) return false;
  }
  return true;
}

Result<const Package*> installed_package(const char* name) {
  for (const Package& package : kPackages) {
    if (package.installed && same_name(package.name, name)) return &package;
  }
  return Error::format(ErrorCode::kInvalidFile, "pkgName %s is not an installed package", name);
}

template <size_t kSize>
void write_text(char (&target)[kSize], const std::string& text) {
  memset(target, 0, kSize);
  memcpy(target, text.data(), std::min(text.size(), kSize - 1));
}

constexpr std::array kAttributes = {ACL_CANN_ATTR_INF_NAN, ACL_CANN_ATTR_BF16,
                                    ACL_CANN_ATTR_JIT_COMPILE};

}  // namespace

aclError aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion, int32_t* patchVersion) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_pointer(majorVersion, "majorVersion"));
    US_TRY(require_pointer(minorVersion, "minorVersion"));
    US_TRY(require_pointer(patchVersion, "patchVersion"));
    *majorVersion = ACL_MAJOR_VERSION;
    *minorVersion = ACL_MINOR_VERSION;
    *patchVersion = ACL_PATCH_VERSION;
    return {};
  });
}

aclError aclsysGetVersionStr(char* pkgName, char* versionStr) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_pointer(pkgName, "pkgName"));
    US_TRY(require_pointer(versionStr, "versionStr"));
    US_TRY_ASSIGN(const Package* const package, installed_package(pkgName));
    const std::string text = package->text();
    memcpy(versionStr, text.c_str(), text.size() + 1);
    return {};
  });
}

aclError aclsysGetVersionNum(char* pkgName, int32_t* versionNum) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_pointer(pkgName, "pkgName"));
    US_TRY(require_pointer(versionNum, "versionNum"));
    US_TRY_ASSIGN(const Package* const package, installed_package(pkgName));
    *versionNum = package->as_number();
    return {};
  });
}

aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion* version) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_pointer(version, "version"));
    for (const Package& package : kPackages) {
      if (package.number != name) continue;
      if (!package.installed) {
        return Error::format(ErrorCode::kInvalidFile, "package %s is not installed",
                             package.name.data());
      }
      write_text(version->version, package.text());
      write_text(version->majorVersion, std::to_string(package.major));
      write_text(version->minorVersion, std::to_string(package.minor));
      write_text(version->releaseVersion, package.release_text());
      write_text(version->patchVersion, std::to_string(package.patch));
      write_text(version->reserved, "");
      return {};
    }
    return invalid_argument("name is %d, which is no package", static_cast<int>(name));
  });
}

const char* aclrtGetSocName(void) {
  const char* name = nullptr;
  guarded("aclrtGetSocName", [&]() -> Result<void> {
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    name = runtime->settings().soc_name.c_str();
    return {};
  });
  return name;
}

aclError aclGetCannAttributeList(const aclCannAttr** cannAttrList, size_t* num) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_pointer(cannAttrList, "cannAttrList"));
    US_TRY(require_pointer(num, "num"));
    *cannAttrList = kAttributes.data();
    *num = kAttributes.size();
    return {};
  });
}

aclError aclGetCannAttribute(aclCannAttr cannAttr, int32_t* value) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_pointer(value, "value"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    switch (cannAttr) {
      case ACL_CANN_ATTR_INF_NAN:
      case ACL_CANN_ATTR_BF16:
        *value = runtime->settings().product.has(Feature::kBrainFloat) ? 1 : 0;
        return {};
      case ACL_CANN_ATTR_JIT_COMPILE:
        *value = 0;  // nothing is compiled here
        return {};
      case ACL_CANN_ATTR_UNDEFINED:
        break;
    }
    return invalid_argument("cannAttr is %d, which is no attribute", static_cast<int>(cannAttr));
  });
}

aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo, int64_t* value) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_pointer(value, "value"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY(runtime->devices().check(deviceId, "deviceId", ErrorCode::kInvalidArgument));
    const ProductProfile& product = runtime->settings().product;
    switch (deviceInfo) {
      case ACL_DEVICE_INFO_AI_CORE_NUM:
        *value = product.ai_cores;
        return {};
      case ACL_DEVICE_INFO_VECTOR_CORE_NUM:
        *value = product.vector_cores;
        return {};
      case ACL_DEVICE_INFO_L2_SIZE:
        *value = static_cast<int64_t>(product.l2_cache);
        return {};
      case ACL_DEVICE_INFO_UNDEFINED:
        break;
    }
    return invalid_argument("deviceInfo is %d, which is no figure", static_cast<int>(deviceInfo));
  });
}
