// SPDX-License-Identifier: Apache-2.0
//
// What does it cost to get managed memory and to touch every page of it for the first time, by the
// CPU and by a device? Against memory from mmap that the CPU touches. Freed in the same breath:
// both sides get new pages from the kernel each time.
#include <sys/mman.h>

#include <cstring>

#include "support/device.h"
#include "support/fail.h"
#include "support/measure.h"
#include "support/raw_memory.h"
#include "support/report.h"

using namespace bench;

namespace {

template <typename Touch>
double managed(size_t size, Touch touch) {
  const Stopwatch time;
  void* data = nullptr;
  check(aclrtMemAllocManaged(&data, size, ACL_RT_MEM_ATTACH_GLOBAL));
  touch(data);
  check(aclrtFree(data));
  return time.nanoseconds();
}

double mapped(size_t size) {
  const Stopwatch time;
  void* const data = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  require(data != MAP_FAILED, "mmap");
  memset(data, 1, size);
  munmap(data, size);
  return time.nanoseconds();
}

}  // namespace

int main(int argc, char** argv) {
  const Report report("managed_memory", argc, argv);
  const unsigned repetitions = report.full_or_smoke(21U, 1U);
  start_device();
  const struct {
    const char* name;
    size_t size;
  } cases[] = {{"2 MiB", kGranule}, {"20 MiB", 10 * kGranule}};
  for (const auto& [name, bytes] : cases) {
    const size_t size = bytes;  // clang does not capture a structured binding
    fetch_memory_from_host(2 * size);
    const std::vector<double> times = medians(
        repetitions, {[&] { return managed(size, [&](void* data) { memset(data, 1, size); }); },
                      [&] {
                        return managed(
                            size, [&](void* data) { check(aclrtMemset(data, size, 1, size)); });
                      },
                      [&] { return mapped(size); }});
    const double baseline = times[2] / 1e3;
    const Goal goal{.at_least_better = 0.8};
    report.add({std::string(name) + ", first touch by the CPU", kMicroseconds, times[0] / 1e3,
                baseline, goal});
    report.add({std::string(name) + ", first touch by a device", kMicroseconds, times[1] / 1e3,
                baseline, goal});
  }
  report.note("baseline: mmap, memset, munmap; pages as the kernel gives them unasked");
}
