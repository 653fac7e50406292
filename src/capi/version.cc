// SPDX-License-Identifier: Apache-2.0
//
// Versions, names and capabilities of the software stack. Rules: VER.
#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "acl/acl.h"
#include "base/release_version.h"
#include "capi/call.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

// What the software device passes for: the release that has the functions of these headers. The
// version of the driver is that of the configuration.
struct Package {
  aclCANNPackageName number;
  std::string_view name;
  bool installed;
  ReleaseVersion version{};
};

constexpr ReleaseVersion kRelease = {9, 0, 0, 0};
constexpr std::array kPackages = {
    Package{ACL_PKG_NAME_CANN, "cann", true, kRelease},
    Package{ACL_PKG_NAME_RUNTIME, "runtime", true, kRelease},
    Package{ACL_PKG_NAME_COMPILER, "compiler", false},
    Package{ACL_PKG_NAME_HCCL, "hccl", false},
    Package{ACL_PKG_NAME_TOOLKIT, "toolkit", true, kRelease},
    Package{ACL_PKG_NAME_OPP, "opp", false},
    Package{ACL_PKG_NAME_OPP_KERNEL, "opp_kernel", false},
    Package{ACL_PKG_NAME_DRIVER, "driver", true},
};

// REQUIRES: it is installed.
Result<ReleaseVersion> version_of(const Package& package) {
  if (package.number != ACL_PKG_NAME_DRIVER) return package.version;
  US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
  return runtime->settings().driver->version;
}

bool same_name(std::string_view a, std::string_view b) {
  const auto plain = [](char letter) { return letter == '-' ? '_' : letter; };
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (plain(a[i]) != plain(b[i])) return false;
  }
  return true;
}

Result<ReleaseVersion> installed_version(const char* name) {
  for (const Package& package : kPackages) {
    if (package.installed && same_name(package.name, name)) return version_of(package);
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
  return guarded(US_CALL(out(majorVersion), out(minorVersion), out(patchVersion)),
                 [&]() -> Result<void> {
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
  return guarded(US_CALL(pkgName, versionStr), [&]() -> Result<void> {
    US_TRY(require_pointer(pkgName, "pkgName"));
    US_TRY(require_pointer(versionStr, "versionStr"));
    US_TRY_ASSIGN(const ReleaseVersion version, installed_version(pkgName));
    const std::string text = version.text();
    memcpy(versionStr, text.c_str(), text.size() + 1);
    return {};
  });
}

aclError aclsysGetVersionNum(char* pkgName, int32_t* versionNum) {
  return guarded(US_CALL(pkgName, out(versionNum)), [&]() -> Result<void> {
    US_TRY(require_pointer(pkgName, "pkgName"));
    US_TRY(require_pointer(versionNum, "versionNum"));
    US_TRY_ASSIGN(const ReleaseVersion version, installed_version(pkgName));
    *versionNum = version.as_number();
    return {};
  });
}

aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion* version) {
  return guarded(US_CALL(name, version), [&]() -> Result<void> {
    US_TRY(require_pointer(version, "version"));
    for (const Package& package : kPackages) {
      if (package.number != name) continue;
      if (!package.installed) {
        return Error::format(ErrorCode::kInvalidFile, "package %s is not installed",
                             package.name.data());
      }
      US_TRY_ASSIGN(const ReleaseVersion found, version_of(package));
      write_text(version->version, found.text());
      write_text(version->majorVersion, std::to_string(found.major));
      write_text(version->minorVersion, std::to_string(found.minor));
      write_text(version->releaseVersion, found.release_text());
      write_text(version->patchVersion, std::to_string(found.patch));
      write_text(version->reserved, "");
      return {};
    }
    return invalid_argument("name is %d, which is no package", static_cast<int>(name));
  });
}

const char* aclrtGetSocName(void) {
  const char* name = nullptr;
  guarded(US_CALL(), [&]() -> Result<void> {
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    name = runtime->settings().soc_name.c_str();
    return {};
  });
  return name;
}

aclError aclGetCannAttributeList(const aclCannAttr** cannAttrList, size_t* num) {
  return guarded(US_CALL(cannAttrList, out(num)), [&]() -> Result<void> {
    US_TRY(require_pointer(cannAttrList, "cannAttrList"));
    US_TRY(require_pointer(num, "num"));
    *cannAttrList = kAttributes.data();
    *num = kAttributes.size();
    return {};
  });
}

aclError aclGetCannAttribute(aclCannAttr cannAttr, int32_t* value) {
  return guarded(US_CALL(cannAttr, out(value)), [&]() -> Result<void> {
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
  return guarded(US_CALL(deviceId, deviceInfo, out(value)), [&]() -> Result<void> {
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
