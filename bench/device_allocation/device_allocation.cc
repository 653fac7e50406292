// SPDX-License-Identifier: Apache-2.0
//
// What does it cost to allocate device memory, to set it and to free it again, and what when there
// are a million allocations? Against general allocators, of which the best counts, and for large
// memory against setting alone. Memory is recycled: after the first rounds all of it is committed.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "support/allocators.h"
#include "support/device.h"
#include "support/measure.h"
#include "support/raw_memory.h"
#include "support/report.h"

namespace {

using namespace bench;

constexpr size_t kSmall = size_t{4} << 10;
constexpr size_t kLarge = size_t{64} << 20;

void* allocate(size_t size) {
  void* memory = nullptr;
  check(aclrtMalloc(&memory, size, ACL_MEM_MALLOC_HUGE_FIRST));
  return memory;
}

void release(void* memory) { check(aclrtFree(memory)); }

void set(void* memory, size_t size) {
  memset(memory, 1, size);
  asm volatile("" : : "r"(memory) : "memory");  // it counts as read
}

// Nanoseconds per pair, as each of the threads sees it.
template <typename Pair>
auto pairs(Team& team, unsigned count, Pair pair) {
  return [&team, count, pair] {
    const double time = team.run([&](unsigned) {
      for (unsigned i = 0; i < count; ++i) pair();
    });
    return time / count;
  };
}

void measure_pairs(const Report& report, const Allocator& glibc) {
  Team one(1);
  Team two(2);
  for (Team* team : {&one, &two}) {
    team->run([](unsigned) { check(aclrtSetDevice(0)); });
  }
  const unsigned count = report.full_or_smoke(5000U, 100U);
  const auto pair = [] { release(allocate(kSmall)); };
  const auto glibc_pair = [&] { glibc.release(glibc.allocate(kSmall)); };
  const std::vector<double> times = medians(
      report.full_or_smoke(301U, 1U), {pairs(one, count, pair), pairs(one, count, glibc_pair),
                                       pairs(two, count, pair), pairs(two, count, glibc_pair)});
  report.add({"4 KiB pair, 1 thread", kNanoseconds, times[0], times[1], {.at_most = 100}});
  report.add({"4 KiB pair, 2 threads", kNanoseconds, times[2], times[3], {}});
  report.note("baseline of the pairs: %s; nothing is written to the memory", glibc.name);
}

// Nanoseconds per cycle. The first one does not count: what was measured before it has left its
// own memory in the caches.
template <typename Cycle>
auto cycles(unsigned count, Cycle cycle) {
  return [count, cycle] {
    cycle();
    const Stopwatch time;
    for (unsigned i = 0; i < count; ++i) cycle();
    return time.nanoseconds() / count;
  };
}

auto set_cycle(size_t size) {
  return [size] {
    void* const memory = allocate(size);
    check(aclrtMemset(memory, size, 1, size));
    release(memory);
  };
}

struct Size {
  const char* name;
  size_t bytes;
  unsigned cycles;
};
constexpr Size kSizes[] = {
    {"4 KiB", kSmall, 1000}, {"1 MiB", size_t{1} << 20, 16}, {"2 MiB", size_t{2} << 20, 8}};

void measure_set(const Report& report, const std::vector<Allocator>& allocators, const Size& size) {
  const unsigned count = report.full_or_smoke(size.cycles, 1U);
  std::vector<std::function<double()>> measurements{cycles(count, set_cycle(size.bytes))};
  for (const Allocator& allocator : allocators) {
    measurements.push_back(cycles(count, [allocator, bytes = size.bytes] {
      void* const memory = allocator.allocate(bytes);
      set(memory, bytes);
      allocator.release(memory);
    }));
  }
  const std::vector<double> times = medians(report.full_or_smoke(301U, 1U), measurements);
  const auto best = std::min_element(times.begin() + 1, times.end());
  report.add({std::string(size.name) + ", set",
              kNanoseconds,
              times[0],
              *best,
              {.at_least_better = 1 / 1.2}});
  std::string all;
  for (size_t i = 0; i < allocators.size(); ++i) {
    char text[64];
    snprintf(text, sizeof text, "%s%s %.0f ns", i == 0 ? "" : ", ", allocators[i].name,
             times[i + 1]);
    all += text;
  }
  report.note("the best was %s: %s", allocators[static_cast<size_t>(best - times.begin()) - 1].name,
              all.c_str());
}

void measure_large_set(const Report& report) {
  const RawFile file(kLarge);
  std::byte* const warm = raw_reserve(kLarge);
  file.map_over(warm);
  raw_populate_huge(warm, kLarge);
  const std::vector<double> times =
      medians(report.full_or_smoke(101U, 1U),
              {cycles(1, set_cycle(kLarge)), cycles(1, [=] { set(warm, kLarge); })});
  report.add({"64 MiB, set",
              kMilliseconds,
              times[0] / 1e6,
              times[1] / 1e6,
              {.at_least_better = 1 / 1.25}});
  report.note("baseline of 64 MiB: memset alone; %s", pages_in_use().c_str());
}

// Nanoseconds to allocate, to free in random order, and bytes; all per allocation.
std::vector<double> allocate_many(size_t count) {
  // Each of them takes two normal pages, and those are a small part of a device.
  setenv("UNDERSTUDY_MEMORY", "64G", 1);
  setenv("UNDERSTUDY_NORMAL_MEMORY", "16G", 1);
  start_device();
  std::vector<void*> allocations(count);
  const size_t bytes_before = private_bytes();

  const Stopwatch allocate_time;
  for (void*& allocation : allocations) allocation = allocate(kSmall);
  const double allocated = allocate_time.nanoseconds();
  const size_t bytes = private_bytes() - bytes_before;

  std::shuffle(allocations.begin(), allocations.end(), std::mt19937_64(1));
  const Stopwatch release_time;
  for (void* const allocation : allocations) release(allocation);
  const double released = release_time.nanoseconds();
  const auto per_allocation = [&](double value) { return value / static_cast<double>(count); };
  return {per_allocation(allocated), per_allocation(released),
          per_allocation(static_cast<double>(bytes))};
}

void measure_many(const Report& report) {
  const size_t count = report.full_or_smoke<size_t>(1'000'000, 10'000);
  const std::string prefix = report.full_or_smoke("1 M of 4 KiB, ", "10 k of 4 KiB, ");
  const std::vector<double> figures =
      medians_in_children(report.full_or_smoke(11U, 1U), [&] { return allocate_many(count); });
  report.add({prefix + "allocate", kNanoseconds, figures[0], {}, {}});
  report.add({prefix + "free in any order", kNanoseconds, figures[1], {}, {}});
  report.add({prefix + "heap", kBytes, figures[2], {}, {}});
}

}  // namespace

int main(int argc, char** argv) {
  const Allocators allocators = load_allocators(argv);
  const Report report("device_allocation", argc, argv);
  for (const std::string& sentence : allocators.absent) report.note("%s", sentence.c_str());
  measure_many(report);  // in processes of their own, made while this one has no device yet
  start_device();
  measure_pairs(report, allocators.found.front());
  for (const Size& size : kSizes) measure_set(report, allocators.found, size);
  measure_large_set(report);
}
