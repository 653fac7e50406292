// SPDX-License-Identifier: Apache-2.0
//
// Do calls cost more where many processes use the same devices? The same rounds with one process
// attached and with hundreds, each of which has had memory of the device; the baseline is the one
// process of the same run, before the others.
#include <memory>
#include <vector>

#include "support/device.h"
#include "support/fail.h"
#include "support/measure.h"
#include "support/other_process.h"
#include "support/report.h"

namespace {

using namespace bench;

void allocate_and_free() {
  void* memory = nullptr;
  check(aclrtMalloc(&memory, kGranule, ACL_MEM_MALLOC_HUGE_FIRST));
  check(aclrtFree(memory));
}

void ask_for_figures() {
  size_t free = 0;
  size_t total = 0;
  check(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
  if (free > total) fail("more memory is free than there is");
}

// A process that takes part from its first word to the end of its line.
void attend(const Line& line) {
  bool begins = false;
  if (!line.receive_or_end(&begins, sizeof begins)) return;
  start_device();
  allocate_and_free();
  line.send(true);
  (void)line.receive_or_end(&begins, sizeof begins);
}

struct Times {
  double allocation = 0;
  double figures = 0;
};

template <typename Body>
double time_of(unsigned rounds, Body body) {
  const Stopwatch time;
  for (unsigned i = 0; i < rounds; ++i) body();
  return time.nanoseconds() / rounds;
}

}  // namespace

int main(int argc, char** argv) {
  const Report report("processes", argc, argv);
  const std::vector<unsigned> counts =
      report.full_or_smoke(std::vector<unsigned>{1, 16, 64, 256}, {1, 2, 3, 4});
  const unsigned rounds = report.full_or_smoke(2000U, 10U);
  const unsigned repetitions = report.full_or_smoke(101U, 1U);
  std::vector<std::unique_ptr<OtherProcess>> others;
  while (others.size() + 1 < counts.back()) {
    others.push_back(std::make_unique<OtherProcess>(attend));
  }
  start_device();
  std::vector<Times> times;
  unsigned attached = 1;
  for (const unsigned count : counts) {
    for (; attached < count; ++attached) {
      const Line& line = others[attached - 1]->line();
      line.send(true);
      (void)line.receive<bool>();
    }
    times.push_back({least(repetitions, [&] { return time_of(rounds, allocate_and_free); }),
                     least(repetitions, [&] { return time_of(rounds / 10, ask_for_figures); })});
  }
  constexpr double kToMicroseconds = 1e-3;
  for (size_t i = 1; i < counts.size(); ++i) {
    const Amount amount{counts[i], "processes"};
    report.add({"malloc + free",
                kNanoseconds,
                times[i].allocation,
                times[0].allocation,
                {.at_least_better = 1 / 1.2},
                amount});
    report.add({"aclrtGetMemInfo",
                kMicroseconds,
                times[i].figures * kToMicroseconds,
                times[0].figures * kToMicroseconds,
                {.at_most = 2},
                amount});
  }
  report.note("baseline: the one process that is measured, before the others");
}
