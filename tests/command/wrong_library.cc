// SPDX-License-Identifier: Apache-2.0
//
// A libascendcl.so with known mistakes, each at one rule, named there. Every other function is that
// of the library which WRONG_LIBRARY_BASE names: it is loaded with global symbols before the first
// function of a program is bound.
#include <dlfcn.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "acl/acl.h"

namespace {

void* base_library() {
  static void* const library = [] {
    const char* path = getenv("WRONG_LIBRARY_BASE");
    void* opened = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (opened == nullptr) {
      fprintf(stderr, "WRONG_LIBRARY_BASE names no library\n");
      abort();
    }
    return opened;
  }();
  return library;
}

[[gnu::constructor]] void load() { base_library(); }

template <typename Function>
Function* base(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(base_library(), name));
}
#define BASE(function) base(&(function), #function)

constexpr aclError kOurs = ACL_ERROR_RT_PARAM_INVALID;

// WRONG_LIBRARY_CODES: instead of some mistakes, other codes that may be as right.
bool answers_other_codes() { return getenv("WRONG_LIBRARY_CODES") != nullptr; }

bool is_inside_mapping(void* address) {
  void* start = nullptr;
  aclrtDrvMemHandle handle = nullptr;
  const bool is_inside = BASE(aclrtMemGetAddressRange)(address, &start, nullptr) == ACL_SUCCESS &&
                         start != address &&
                         BASE(aclrtMemRetainAllocationHandle)(start, &handle) == ACL_SUCCESS &&
                         BASE(aclrtFreePhysical)(handle) == ACL_SUCCESS;
  (void)BASE(aclGetRecentErrMsg)();  // what these calls left
  return is_inside;
}

}  // namespace

extern "C" {

// UNMAP-03: success is told for an address inside a mapping.
ACL_FUNC_VISIBILITY aclError aclrtUnmapMem(void* virPtr) {
  const bool is_inside = is_inside_mapping(virPtr);
  const aclError code = BASE(aclrtUnmapMem)(virPtr);
  if (answers_other_codes()) return code == kOurs ? ACL_ERROR_RT_DRV_INTERNAL_ERROR : code;
  return is_inside ? ACL_SUCCESS : code;
}

// SNAP-01: right but for its code, which is ours to choose.
ACL_FUNC_VISIBILITY aclError aclrtSnapShotProcessLock(int pid, void* reserve) {
  const aclError code = BASE(aclrtSnapShotProcessLock)(pid, reserve);
  return answers_other_codes() && code == kOurs ? ACL_ERROR_RT_INTERNAL_ERROR : code;
}

// INFO-05 and other rules on figures: the sum of huge and normal pages is one page short.
ACL_FUNC_VISIBILITY aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t* free, size_t* total) {
  const aclError code = BASE(aclrtGetMemInfo)(attr, free, total);
  if (code == ACL_SUCCESS && attr == ACL_HBM_MEM) *total -= 4096;
  return code;
}

// GRAN-01: another code for a null argument.
ACL_FUNC_VISIBILITY aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp* prop,
                                                              aclrtMemGranularityOptions option,
                                                              size_t* granularity) {
  if (prop == nullptr || granularity == nullptr) return ACL_ERROR_RT_PARAM_INVALID;
  return BASE(aclrtMemGetAllocationGranularity)(prop, option, granularity);
}

// PCI-01: a null argument ends the process.
ACL_FUNC_VISIBILITY aclError aclrtDeviceGetPCIBusId(int32_t deviceId, char* pciBusId, int32_t len) {
  if (pciBusId == nullptr) raise(SIGSEGV);
  return BASE(aclrtDeviceGetPCIBusId)(deviceId, pciBusId, len);
}

// PROP-01: a null argument never comes back.
ACL_FUNC_VISIBILITY aclError aclrtMemGetAllocationPropertiesFromHandle(aclrtDrvMemHandle handle,
                                                                       aclrtPhysicalMemProp* prop) {
  while (handle == nullptr) pause();
  return BASE(aclrtMemGetAllocationPropertiesFromHandle)(handle, prop);
}

}  // extern "C"
