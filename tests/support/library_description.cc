// SPDX-License-Identifier: Apache-2.0
//
// What a libascendcl.so says about itself. Every function is looked up: an old library has few.
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "acl/acl.h"
#include "acl/acl_understudy.h"
#include "support/conformance.h"

namespace understudy_test {

namespace {

using nlohmann::json;

template <typename Function>
Function* find(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}
#define US_FIND(function) find(static_cast<decltype(&(function))>(nullptr), #function)

json runtime_version() {
  const auto get_version = US_FIND(aclrtGetVersion);
  int32_t major = 0;
  int32_t minor = 0;
  int32_t patch = 0;
  if (get_version == nullptr || get_version(&major, &minor, &patch) != ACL_SUCCESS) return nullptr;
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

json package_version() {
  const auto get_version = US_FIND(aclsysGetCANNVersion);
  aclCANNPackageVersion version{};
  if (get_version == nullptr || get_version(ACL_PKG_NAME_CANN, &version) != ACL_SUCCESS) {
    return nullptr;
  }
  version.version[sizeof version.version - 1] = '\0';
  return std::string(version.version);
}

json soc_name() {
  const auto get_name = US_FIND(aclrtGetSocName);
  const char* name = get_name == nullptr ? nullptr : get_name();
  return name == nullptr ? json(nullptr) : json(name);
}

json device_count() {
  const auto get_count = US_FIND(aclrtGetDeviceCount);
  uint32_t count = 0;
  if (get_count == nullptr || get_count(&count) != ACL_SUCCESS) return nullptr;
  return count;
}

bool runs_on_device() {
  const auto get_mode = US_FIND(aclrtGetRunMode);
  aclrtRunMode mode = ACL_HOST;
  return get_mode != nullptr && get_mode(&mode) == ACL_SUCCESS && mode == ACL_DEVICE;
}

}  // namespace

bool described_library(int& exit_code) {
  const char* path = getenv("UNDERSTUDY_TEST_DESCRIBE");
  if (path == nullptr) return false;
  json description = {{"understudy", US_FIND(aclUnderstudyRuntimeDirectory) != nullptr}};
  const auto init = US_FIND(aclInit);
  if (init != nullptr) description["init"] = init(nullptr);
  description["runtime_version"] = runtime_version();
  description["package_version"] = package_version();
  description["soc"] = soc_name();
  description["runs_on_device"] = runs_on_device();
  description["devices"] = device_count();
  std::ofstream(path) << description.dump(-1, ' ', false, json::error_handler_t::replace);
  exit_code = 0;
  return true;
}

}  // namespace understudy_test
