// SPDX-License-Identifier: Apache-2.0
//
// How long does a process take to give its device memory back, and to get it again? Against a copy
// of as many bytes, which is what a backup that moves them would cost at least, each way. No bytes
// move here: device memory is host memory already, and what a backup changes is the charge of the
// process in the ledger. The figures are times for memory that was written, and not a bandwidth.
#include <unistd.h>

#include <cstring>
#include <vector>

#include "support/device.h"
#include "support/fail.h"
#include "support/measure.h"
#include "support/report.h"

using namespace bench;

int main(int argc, char** argv) {
  const Report report("snapshot", argc, argv);
  const size_t size = report.full_or_smoke(size_t{1} << 30, size_t{16} << 20);
  const unsigned repetitions = report.full_or_smoke(11U, 1U);
  start_device();
  void* block = nullptr;
  check(aclrtMalloc(&block, size, ACL_MEM_MALLOC_HUGE_FIRST));
  check(aclrtMemset(block, size, 1, size));
  std::vector<char> from(size, 1);
  std::vector<char> to(size, 2);
  const int self = getpid();

  const auto lock = [&] {
    const Stopwatch time;
    check(aclrtSnapShotProcessLock(self, nullptr));
    return time.nanoseconds();
  };
  const auto backup = [&] {
    const Stopwatch time;
    check(aclrtSnapShotProcessBackup(self, nullptr));
    return time.nanoseconds();
  };
  const auto restore = [&] {
    const Stopwatch time;
    check(aclrtSnapShotProcessRestore(self, nullptr));
    return time.nanoseconds();
  };
  const auto unlock = [&] {
    const Stopwatch time;
    check(aclrtSnapShotProcessUnlock(self, nullptr));
    return time.nanoseconds();
  };
  const auto copy = [&] {
    const Stopwatch time;
    memcpy(to.data(), from.data(), size);
    return time.nanoseconds();
  };
  // In this order: each one needs the state that the one before leaves.
  const std::vector<double> times = medians(repetitions, {lock, backup, restore, unlock, copy});
  if (to[size - 1] != from[size - 1]) fail("the copy went wrong");
  report.add({"lock", kMilliseconds, times[0] / 1e6, {}, {}});
  report.add(
      {"backup of 1 GiB", kMilliseconds, times[1] / 1e6, times[4] / 1e6, {.at_least_better = 1}});
  report.add(
      {"restore of 1 GiB", kMilliseconds, times[2] / 1e6, times[4] / 1e6, {.at_least_better = 1}});
  report.add({"unlock", kMilliseconds, times[3] / 1e6, {}, {}});
  report.note("no bytes move; the baseline is a memcpy of as many");
}
