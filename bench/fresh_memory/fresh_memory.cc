// SPDX-License-Identifier: Apache-2.0
//
// What does it cost to get memory that was never used and to set every byte of it? Against a new
// memory file of 4 KiB pages. And a page of it: 4 KiB in each of many blocks, against the same in a
// memory file. Nothing is freed before the end, else the next block would be committed.
#include <sys/mman.h>

#include <cstring>
#include <memory>

#include "acl/acl_understudy.h"
#include "support/device.h"
#include "support/fail.h"
#include "support/measure.h"
#include "support/raw_memory.h"
#include "support/report.h"

using namespace bench;

namespace {

constexpr size_t kPage = 4096;
constexpr double kMostPerBlock = (1 << 30) / 10'000.0;  // 1 GiB in all

size_t host_bytes_of_device() {
  aclUnderstudyBacking backing{};
  check(aclUnderstudyGetBacking(0, &backing));
  return backing.smallPages + backing.collapsed + backing.hugetlb2m + backing.hugetlb1g;
}

// Nanoseconds per block in which nothing but a page is written.
double write_a_page_each(std::byte* memory, size_t blocks, bool is_raw) {
  const Stopwatch time;
  for (size_t i = 0; i < blocks; ++i) {
    std::byte* const page = memory + i * kGranule + i % 500 * kPage;
    if (is_raw) {
      memset(page, 1, kPage);
    } else {
      check(aclrtMemset(page, kPage, 1, kPage));
    }
  }
  return time.nanoseconds() / static_cast<double>(blocks);
}

void measure_pages(const Report& report) {
  const size_t blocks = report.full_or_smoke<size_t>(10'000, 10);
  const size_t size = blocks * kGranule;
  std::byte* const place = reserve_addresses(size);
  for (size_t i = 0; i < blocks; ++i)
    map_block(place + i * kGranule, kGranule, create_block(kGranule));
  RawFile file(size);
  std::byte* const raw = raw_reserve(size);
  file.map_over(raw);
  const size_t before = host_bytes_of_device();
  const double time = write_a_page_each(place, blocks, false);
  const double used = static_cast<double>(host_bytes_of_device() - before);
  const double raw_time = write_a_page_each(raw, blocks, true);
  report.add({"a page in each of 10 k blocks",
              kMicroseconds,
              time / 1e3,
              raw_time / 1e3,
              {.at_most = 10}});
  report.add({"host memory of such a block",
              kBytes,
              used / static_cast<double>(blocks),
              static_cast<double>(kPage),
              {.at_most = kMostPerBlock}});
}

}  // namespace

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
  measure_pages(report);
}
