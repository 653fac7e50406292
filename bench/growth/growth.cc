// SPDX-License-Identifier: Apache-2.0
//
// Do calls cost more where there is more of everything? The same rounds with one thread and with a
// thousand that have copied, alive or ended; with more and more blocks and reservations. The
// baseline is the one thread, or the smallest number, of the same process.
#include <algorithm>
#include <cstdlib>
#include <latch>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/device.h"
#include "support/fail.h"
#include "support/measure.h"
#include "support/private_server.h"
#include "support/report.h"

namespace {

using namespace bench;

constexpr size_t kSmall = size_t{4} << 10;

// Threads that have copied, and wait.
class Crowd {
 public:
  Crowd(unsigned size, void* device) : copied_(size), end_(1) {
    for (unsigned i = 0; i < size; ++i) {
      threads_.emplace_back([this, device] {
        char byte = 0;
        check(aclrtSetDevice(0));
        check(aclrtMemcpy(device, 1, &byte, 1, ACL_MEMCPY_HOST_TO_DEVICE));
        copied_.count_down();
        end_.wait();
      });
    }
    copied_.wait();
  }
  ~Crowd() {
    end_.count_down();
    for (std::thread& thread : threads_) thread.join();
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

 private:
  std::latch copied_;
  std::latch end_;
  std::vector<std::thread> threads_;
};

double allocate_and_free(unsigned count) {
  const Stopwatch time;
  for (unsigned i = 0; i < count; ++i) {
    void* memory = nullptr;
    check(aclrtMalloc(&memory, kSmall, ACL_MEM_MALLOC_HUGE_FIRST));
    check(aclrtFree(memory));
  }
  return time.nanoseconds() / count;
}

double create_to_free(unsigned count, void* range) {
  const Stopwatch time;
  for (unsigned i = 0; i < count; ++i) {
    const aclrtDrvMemHandle block = create_block(kGranule);
    map_block(range, kGranule, block);
    check(aclrtUnmapMem(range));
    check(aclrtFreePhysical(block));
  }
  return time.nanoseconds() / count;
}

// ---- Many blocks ----

// Nanoseconds per free of blocks of 2 to 3 MiB, in any order.
double free_in_any_order(unsigned blocks) {
  std::vector<void*> live(blocks);
  Xorshift random(blocks);
  for (void*& block : live) {
    check(aclrtMalloc(&block, (size_t{2} << 20) + random.next() % (size_t{1} << 20),
                      ACL_MEM_MALLOC_HUGE_FIRST));
  }
  for (size_t i = blocks - 1; i > 0; --i) std::swap(live[i], live[random.next() % (i + 1)]);
  const Stopwatch time;
  for (void* const block : live) check(aclrtFree(block));
  return time.nanoseconds() / blocks;
}

// Nanoseconds per map and unmap of one block in a reservation of many, another one each time.
double map_anywhere(unsigned count, const std::vector<std::byte*>& ranges, aclrtDrvMemHandle block,
                    Xorshift& random) {
  std::vector<std::byte*> places(count);
  for (std::byte*& place : places) place = ranges[random.next() % ranges.size()];
  const Stopwatch time;
  for (std::byte* const place : places) {
    map_block(place, kGranule, block);
    check(aclrtUnmapMem(place));
  }
  return time.nanoseconds() / count;
}

}  // namespace

int main(int argc, char** argv) {
  const Report report("growth", argc, argv);
  setenv("UNDERSTUDY_MEMORY", "1T", 1);  // nothing of it is touched
  use_private_server();
  const std::vector<unsigned> crowds = report.full_or_smoke<std::vector<unsigned>>(
      {2, 8, 64, 1000}, {2, 10});  // beside the thread that measures
  const unsigned count = report.full_or_smoke(5000U, 10U);
  const unsigned repetitions = report.full_or_smoke(31U, 1U);
  const std::vector<double> times = medians_in_children(report.full_or_smoke(5U, 1U), [=] {
    start_device();
    void* device = nullptr;
    check(aclrtMalloc(&device, kSmall, ACL_MEM_MALLOC_HUGE_FIRST));
    void* const range = reserve_addresses(kGranule);
    std::vector<double> measured;
    const auto measure = [&] {
      measured.push_back(least(repetitions, [&] { return allocate_and_free(count); }));
      measured.push_back(least(repetitions, [&] { return create_to_free(count / 4, range); }));
    };
    measure();
    for (const unsigned crowd : crowds) {
      const Crowd alive(crowd, device);
      measure();
    }
    measure();
    return measured;
  });
  constexpr Goal kFlat{.at_least_better = 1 / 1.3};
  const std::vector<unsigned> blocks = {1000, 10'000, 100'000};
  const std::vector<unsigned> reservations = {1000, 60'000, 1'000'000};
  const unsigned part = report.full_or_smoke(1U, 100'000U);
  const auto sized = [=](unsigned number) { return std::max(number / part, 10U); };
  const std::vector<double> sizes = medians_in_children(report.full_or_smoke(5U, 1U), [=] {
    start_device();
    std::vector<double> measured;
    for (const unsigned number : blocks) {
      measured.push_back(
          least(report.full_or_smoke(9U, 1U), [=] { return free_in_any_order(sized(number)); }));
    }
    const aclrtDrvMemHandle block = create_block(kGranule);
    std::vector<std::byte*> ranges;
    Xorshift random(1);  // of all rounds, so that none finds the places of the last one in a cache
    for (const unsigned number : reservations) {
      while (ranges.size() < sized(number)) ranges.push_back(reserve_addresses(kGranule));
      measured.push_back(
          least(repetitions, [&] { return map_anywhere(count, ranges, block, random); }));
    }
    return measured;
  });
  for (size_t call = 0; call < 2; ++call) {
    const std::string name = call == 0 ? "malloc + free" : "create to free";
    const auto add = [&](size_t turn, Amount amount) {
      report.add({name, kNanoseconds, times[2 * turn + call], times[call], kFlat, amount});
    };
    for (size_t i = 0; i < crowds.size(); ++i) add(1 + i, {crowds[i], "threads alive"});
    add(1 + crowds.size(), {crowds.back(), "threads ended"});
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Amount amount{sized(blocks[i]), "live blocks"};
    report.add({"free in any order", kNanoseconds, sizes[i], sizes[0], {.at_most = 300}, amount});
  }
  for (size_t i = 0; i < reservations.size(); ++i) {
    const Amount amount{sized(reservations[i]), "reservations"};
    const double time = sizes[blocks.size() + i];
    report.add({"map + unmap", kNanoseconds, time, sizes[blocks.size()], {.at_most = 200}, amount});
  }
  report.note("baseline: the one thread of the process, before the others");
  report.note("baseline of blocks and of reservations: the smallest number");
}
