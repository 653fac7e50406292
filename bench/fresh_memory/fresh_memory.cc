// SPDX-License-Identifier: Apache-2.0
//
// What does it cost to get memory that was never used and to set every byte of it? Against a new
// memory file of 4 KiB pages. Nothing is freed before the end, else the next block would be
// committed.
#include <sys/mman.h>

#include <cstring>
#include <memory>

#include "support/device.h"
#include "support/fail.h"
#include "support/measure.h"
#include "support/raw_memory.h"
#include "support/report.h"

using namespace bench;

int main(int argc, char** argv) {
  const Report report("fresh_memory", argc, argv);
  const size_t size = 10 * kGranule;
  const unsigned repetitions = report.full_or_smoke(21U, 1U);
  start_device();
  fetch_memory_from_host(2 * size * (repetitions + 1));
  std::byte* place = reserve_addresses(size * (repetitions + 1));
  std::byte* raw_place = raw_reserve(size * (repetitions + 1));
  std::vector<std::unique_ptr<RawFile>> files;

  const auto fresh = [&] {
    const Stopwatch time;
    map_block(place, size, create_block(size));
    check(aclrtMemset(place, size, 1, size));
    const double nanoseconds = time.nanoseconds();
    place += size;
    return nanoseconds;
  };
  const auto raw_fresh = [&] {
    const Stopwatch time;
    files.push_back(std::make_unique<RawFile>(size));
    files.back()->map_over(raw_place);
    require(madvise(raw_place, size, MADV_NOHUGEPAGE) == 0, "madvise");
    memset(raw_place, 1, size);
    const double nanoseconds = time.nanoseconds();
    raw_place += size;
    return nanoseconds;
  };
  const std::vector<double> times = medians(repetitions, {fresh, raw_fresh});
  report.add({"20 MiB", kMilliseconds, times[0] / 1e6, times[1] / 1e6, {.at_least_better = 3}});
  // As much as all repetitions together, so none of them got memory of another.
  report.note("%s", pages_in_use().c_str());
}
