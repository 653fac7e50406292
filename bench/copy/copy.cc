// SPDX-License-Identifier: Apache-2.0
//
// How fast do bytes move to a device, from it, and within it? Against the best of three ways to
// copy the same number of bytes between the same kinds of memory by hand: the C library's memcpy,
// non-temporal stores, and the processor's string move. Each copy works on the next part of a
// large area, so that small ones find nothing in the caches either.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "copy/methods.h"
#include "support/device.h"
#include "support/measure.h"
#include "support/raw_memory.h"
#include "support/report.h"

using namespace bench;

namespace {

constexpr size_t kKiB = size_t{1} << 10;
constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kGiB = size_t{1} << 30;

// Walks through an area, part by part.
class Walk {
 public:
  Walk(std::byte* area, size_t size, size_t part) : area_(area), size_(size), part_(part) {}
  std::byte* next() {
    std::byte* const here = area_ + at_;
    at_ = at_ + 2 * part_ <= size_ ? at_ + part_ : 0;
    return here;
  }

 private:
  std::byte* area_;
  size_t size_;
  size_t part_;
  size_t at_ = 0;
};

std::byte* raw_area(size_t size, std::vector<std::unique_ptr<RawFile>>& files) {
  std::byte* const area = raw_reserve(size);
  files.push_back(std::make_unique<RawFile>(size));
  files.back()->map_over(area);
  raw_populate_huge(area, size);
  return area;
}

std::byte* device_area(size_t size) {
  void* area = nullptr;
  check(aclrtMallocAlign32(&area, size, ACL_MEM_MALLOC_HUGE_ONLY));
  check(aclrtMemset(area, size, 1, size));
  return static_cast<std::byte*>(area);
}

struct Areas {
  std::byte* host;
  std::byte* device[2];
  std::byte* raw[2];
  size_t size;
};

struct Direction {
  const char* name;
  aclrtMemcpyKind kind;
};
constexpr Direction kDirections[] = {{"to the device", ACL_MEMCPY_HOST_TO_DEVICE},
                                     {"to the host", ACL_MEMCPY_DEVICE_TO_HOST},
                                     {"within it", ACL_MEMCPY_DEVICE_TO_DEVICE}};

std::string text_of(size_t bytes) {
  if (bytes >= kGiB) return std::to_string(bytes / kGiB) + " GiB";
  if (bytes >= kMiB) return std::to_string(bytes / kMiB) + " MiB";
  return std::to_string(bytes / kKiB) + " KiB";
}

// Nanoseconds per copy, over so many copies that the clock does not matter.
template <typename Copy>
double timed(size_t part, Copy copy) {
  const size_t copies = std::max<size_t>(1, 4 * kMiB / part);
  const Stopwatch time;
  for (size_t i = 0; i < copies; ++i) copy();
  return time.nanoseconds() / static_cast<double>(copies);
}

void measure(const Report& report, const Areas& areas, size_t part, const Direction& direction) {
  const bool from_host = direction.kind == ACL_MEMCPY_HOST_TO_DEVICE;
  const bool to_host = direction.kind == ACL_MEMCPY_DEVICE_TO_HOST;
  Walk target(to_host ? areas.host : areas.device[0], areas.size, part);
  Walk source(from_host ? areas.host : areas.device[1], areas.size, part);
  Walk raw_target(to_host ? areas.host : areas.raw[0], areas.size, part);
  Walk raw_source(from_host ? areas.host : areas.raw[1], areas.size, part);

  std::vector<std::function<double()>> measurements = {[&] {
    return timed(part, [&] {
      check(aclrtMemcpy(target.next(), part, source.next(), part, direction.kind));
    });
  }};
  for (const CopyMethod& method : copy_methods()) {
    measurements.push_back([&, copy = method.copy] {
      return timed(part, [&] { copy(raw_target.next(), raw_source.next(), part); });
    });
  }
  const unsigned repetitions = report.full_or_smoke(part >= kGiB ? 7U : 31U, 1U);
  const std::vector<double> times = medians(repetitions, measurements);
  const auto best = std::min_element(times.begin() + 1, times.end());
  const auto gigabytes_per_second = [&](double nanoseconds) {
    return static_cast<double>(part) / nanoseconds;
  };
  report.add({text_of(part) + ", " + direction.name,
              {"GB/s", true},
              gigabytes_per_second(times[0]),
              gigabytes_per_second(*best),
              {.at_least_better = 0.95}});
}

}  // namespace

int main(int argc, char** argv) {
  const Report report("copy", argc, argv);
  const size_t largest = report.full_or_smoke(kGiB, 4 * kMiB);
  start_device();
  fetch_memory_from_host(5 * largest);
  std::vector<std::unique_ptr<RawFile>> files;
  const Areas areas{raw_area(largest, files),
                    {device_area(largest), device_area(largest)},
                    {raw_area(largest, files), raw_area(largest, files)},
                    largest};
  for (const size_t part : {64 * kKiB, kMiB, 4 * kMiB, 16 * kMiB, 64 * kMiB, 256 * kMiB, kGiB}) {
    if (part > largest) continue;
    for (const Direction& direction : kDirections) measure(report, areas, part, direction);
  }
  report.note("baseline: the best of %s at each size; all memory in 2 MiB pages",
              names_of_copy_methods().c_str());
}
