// SPDX-License-Identifier: Apache-2.0
//
// What does it cost to create, map, unmap and free a committed 2 MiB block, and do two threads
// disturb each other at it? Against the same with a memory file and the kernel's mappings.
#include <array>

#include "support/device.h"
#include "support/measure.h"
#include "support/raw_memory.h"
#include "support/report.h"

namespace {

using namespace bench;

template <typename Use>
void cycle_with(std::byte* address, Use use) {
  const aclrtDrvMemHandle block = create_block(kGranule);
  map_block(address, kGranule, block);
  use();
  check(aclrtUnmapMem(address));
  check(aclrtFreePhysical(block));
}

void cycle(std::byte* address) {
  cycle_with(address, [] {});
}

void raw_cycle(std::byte* address) {
  const RawFile file(kGranule);
  file.map_over(address);
  *address = std::byte{1};
  raw_cover(address, kGranule);
}

// Work that shares nothing: what two threads reach at it is all that the machine has. Processors
// of virtual machines are often two halves of one core.
void compute(unsigned rounds) {
  std::array<Xorshift, 4> randoms{Xorshift(1), Xorshift(2), Xorshift(3), Xorshift(4)};
  uint64_t sum = 0;
  for (unsigned i = 0; i < rounds; ++i) {
    for (Xorshift& random : randoms) sum += random.next();
  }
  asm volatile("" : : "r"(sum));  // it counts as used
}

// Threads with a reservation each, here and in the kernel.
class Mappers {
 public:
  explicit Mappers(unsigned threads) : team_(threads) {
    for (unsigned i = 0; i < threads; ++i) {
      // Ranges of the usual size: table entries of neighbours are in different cache lines.
      places_.push_back(reserve_addresses(size_t{1} << 30));
      raw_places_.push_back(raw_reserve(kGranule));
    }
    team_.run([this](unsigned thread) {
      check(aclrtSetDevice(0));
      // The block that the thread gets in all cycles to come is committed from now on.
      std::byte* const place = places_[thread];
      cycle_with(place, [place] { check(aclrtMemset(place, kGranule, 1, kGranule)); });
    });
  }

  // Nanoseconds from one end of a cycle to the next, on whichever thread.
  double run(unsigned cycles) { return repeat(cycle, places_, cycles); }
  double run_raw(unsigned cycles) { return repeat(raw_cycle, raw_places_, cycles); }
  double run_compute(unsigned rounds) {
    return team_.run([&](unsigned) { compute(rounds); }) / team_.size();
  }

 private:
  template <typename Cycle>
  double repeat(Cycle& one, const std::vector<std::byte*>& places, unsigned cycles) {
    const double time = team_.run([&](unsigned thread) {
      for (unsigned i = 0; i < cycles; ++i) one(places[thread]);
    });
    return time / cycles / team_.size();
  }

  Team team_;
  std::vector<std::byte*> places_;
  std::vector<std::byte*> raw_places_;
};

}  // namespace

int main(int argc, char** argv) {
  const Report report("map_unmap_latency", argc, argv);
  const unsigned cycles = report.full_or_smoke(1000U, 100U);
  const unsigned raw_cycles = report.full_or_smoke(10U, 1U);
  start_device();
  Mappers one(1);
  Mappers two(2);
  const std::vector<double> times = medians(
      report.full_or_smoke(301U, 1U),
      {[&] { return one.run(cycles); }, [&] { return one.run_raw(raw_cycles); },
       [&] { return two.run(cycles); }, [&] { return two.run_raw(raw_cycles); },
       [&] { return one.run_compute(50 * cycles); }, [&] { return two.run_compute(50 * cycles); }});
  report.add(
      {"1 thread", kNanoseconds, times[0], times[1], {.at_most = 300, .at_least_better = 40}});
  report.add({"2 threads", kNanoseconds, times[2], times[3], {}});
  report.add({"rate of 2 threads; baseline: of 1",
              kMillionsPerSecond,
              1e3 / times[2],
              1e3 / times[0],
              {.at_least_better = 1.2}});
  report.note("2 threads that share nothing reach %.2fx the rate of 1 on this machine",
              times[4] / times[5]);
}
