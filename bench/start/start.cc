// SPDX-License-Identifier: Apache-2.0
//
// How long does a process wait until it can use a device, and what does that take of the system?
// Loads the library at run time, so this program must not be linked to it. Each repetition is a
// process of its own.
#include <dlfcn.h>
#include <sys/resource.h>

#include "acl/acl.h"
#include "start/system_calls.h"
#include "support/fail.h"
#include "support/measure.h"
#include "support/report.h"

namespace {

using namespace bench;

template <typename Function>
Function* symbol(void* library, const char* name) {
  void* const address = dlsym(library, name);
  if (address == nullptr) fail("%s", dlerror());
  return reinterpret_cast<Function*>(address);
}

// Pages that the kernel has put behind the memory of this process so far.
double page_faults() {
  rusage usage{};
  require(getrusage(RUSAGE_SELF, &usage) == 0, "getrusage");
  return static_cast<double>(usage.ru_minflt);
}

// Milliseconds of each step and of all together.
std::vector<double> start_once() {
  constexpr const char* kLibrary = "libascendcl.so";
  if (dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD) != nullptr) fail("%s is loaded already", kLibrary);
  const Stopwatch time;
  void* const library = dlopen(kLibrary, RTLD_NOW);
  if (library == nullptr) fail("%s", dlerror());
  const auto init = symbol<decltype(aclInit)>(library, "aclInit");
  const auto set_device = symbol<decltype(aclrtSetDevice)>(library, "aclrtSetDevice");
  const double loaded = time.nanoseconds();
  const aclError init_code = init(nullptr);
  const double initialized = time.nanoseconds();
  const aclError device_code = set_device(0);
  const double ready = time.nanoseconds();
  if (init_code != ACL_SUCCESS || device_code != ACL_SUCCESS) {
    const char* text = symbol<decltype(aclGetRecentErrMsg)>(library, "aclGetRecentErrMsg")();
    fail("aclInit: %d, aclrtSetDevice: %d: %s", init_code, device_code, text ? text : "");
  }
  return {loaded / 1e6, (initialized - loaded) / 1e6, (ready - initialized) / 1e6, ready / 1e6};
}

std::vector<double> start_once_with_faults() {
  const double before = page_faults();
  std::vector<double> figures = start_once();
  figures.push_back(page_faults() - before);
  return figures;
}

}  // namespace

int main(int argc, char** argv) {
  const Report report("start", argc, argv);
  const std::vector<double> times =
      medians_in_children(report.full_or_smoke(41U, 1U), start_once_with_faults);
  report.add({"load", kMilliseconds, times[0], {}, {}});
  report.add({"aclInit", kMilliseconds, times[1], {}, {}});
  report.add({"aclrtSetDevice", kMilliseconds, times[2], {}, {}});
  report.add({"all three", kMilliseconds, times[3], {}, {.at_most = 1}});
  report.add({"page faults of all three", {"faults"}, times[4], {}, {}});
  if (const auto calls = system_calls_of([] { start_once(); })) {
    report.add({"system calls of all three", {"calls"}, static_cast<double>(*calls), {}, {}});
  } else {
    report.note("system calls are not counted: this process may not trace its child");
  }
}
