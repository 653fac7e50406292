// SPDX-License-Identifier: Apache-2.0
//
// What do rows and batches cost, of which each part is small? Against a loop of memcpy over the
// same parts, of memory that both have used.
#include <cstring>
#include <string>
#include <vector>

#include "support/device.h"
#include "support/measure.h"
#include "support/report.h"

namespace {

using namespace bench;

constexpr size_t kKiB = 1024;
constexpr size_t kHeight = 256;
constexpr size_t kPitch = 5 * kKiB;

std::byte* used_memory(size_t size) {
  void* memory = nullptr;
  check(aclrtMalloc(&memory, size, ACL_MEM_MALLOC_HUGE_FIRST));
  check(aclrtMemset(memory, size, 1, size));
  return static_cast<std::byte*>(memory);
}

// Nanoseconds per part.
template <typename Parts>
auto timed(unsigned rounds, size_t parts, Parts copy) {
  return [=] {
    const Stopwatch time;
    for (unsigned i = 0; i < rounds; ++i) copy();
    return time.nanoseconds() / static_cast<double>(rounds * parts);
  };
}

void measure_rows(const Report& report, size_t width, std::byte* device,
                  const std::vector<std::byte>& host, std::vector<std::byte>& other) {
  const unsigned rounds = report.full_or_smoke(20U, 1U);
  const std::vector<double> times =
      medians(report.full_or_smoke(101U, 1U),
              {timed(rounds, kHeight,
                     [=, &host] {
                       check(aclrtMemcpy2d(device, kPitch, host.data(), kPitch, width, kHeight,
                                           ACL_MEMCPY_HOST_TO_DEVICE));
                     }),
               timed(rounds, kHeight, [=, &host, &other] {
                 for (size_t row = 0; row < kHeight; ++row) {
                   memcpy(other.data() + row * kPitch, host.data() + row * kPitch, width);
                 }
                 asm volatile("" : : "r"(other.data()) : "memory");
               })});
  const std::string name = "row of " + std::to_string(width) + " B, to the device";
  report.add({name, kNanoseconds, times[0], times[1], {.at_least_better = 0.5}});
}

void measure_batch(const Report& report, std::byte* device, std::vector<std::byte>& host,
                   std::vector<std::byte>& other) {
  constexpr size_t kPart = 4 * kKiB;
  std::vector<void*> targets;
  std::vector<void*> sources;
  std::vector<size_t> sizes(kHeight, kPart);
  for (size_t i = 0; i < kHeight; ++i) {
    targets.push_back(device + i * kPitch);
    sources.push_back(host.data() + i * kPitch);
  }
  aclrtMemcpyBatchAttr attribute{};
  attribute.dstLoc = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
  attribute.srcLoc = {0, ACL_MEM_LOCATION_TYPE_HOST};
  size_t first = 0;
  size_t failed = 0;
  const unsigned rounds = report.full_or_smoke(5U, 1U);
  const std::vector<double> times = medians(
      report.full_or_smoke(201U, 1U),
      {timed(rounds, kHeight,
             [&] {
               check(aclrtMemcpyBatch(targets.data(), sizes.data(), sources.data(), sizes.data(),
                                      kHeight, &attribute, &first, 1, &failed));
             }),
       timed(rounds, kHeight, [&] {
         for (size_t i = 0; i < kHeight; ++i) {
           memcpy(other.data() + i * kPitch, sources[i], sizes[i]);
         }
         asm volatile("" : : "r"(other.data()) : "memory");
       })});
  report.add(
      {"batch of 256, each 4 KiB", kNanoseconds, times[0], times[1], {.at_least_better = 0.9}});
}

}  // namespace

int main(int argc, char** argv) {
  const Report report("rows", argc, argv);
  start_device();
  std::vector<std::byte> host(kHeight * kPitch, std::byte{1});
  std::vector<std::byte> other(kHeight * kPitch);
  std::byte* const device = used_memory(kHeight * kPitch);
  for (const size_t width : {size_t{64}, size_t{512}, 4 * kKiB}) {
    measure_rows(report, width, device, host, other);
  }
  measure_batch(report, device, host, other);
  report.note("per row or part; baseline: a loop of memcpy");
}
