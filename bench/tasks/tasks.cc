// SPDX-License-Identifier: Apache-2.0
//
// How fast does work get to a stream and get done, and what does a stream cost that has none?
// Against a hand-off to another thread and back by a futex, which is what a work queue without
// spinning does for every task.
#include <sys/resource.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "support/device.h"
#include "support/futex_turns.h"
#include "support/measure.h"
#include "support/report.h"

using namespace bench;

namespace {

constexpr size_t kBytes64 = 64;
constexpr size_t kMemory = size_t{1} << 20;

// ---- A thread that answers: each turn is a word changed and woken for, there and back ----

class FutexPartner {
 public:
  FutexPartner() : thread_([this] { turns_.serve(); }) {}
  ~FutexPartner() {
    turns_.end();
    thread_.join();
  }

  void there_and_back() { turns_.there_and_back(); }
  void there() { turns_.there(); }
  void back() { turns_.back(); }

 private:
  FutexTurns turns_{FutexTurns::Between::kThreads};
  std::thread thread_;
};

double hand_off(FutexPartner& partner, unsigned turns) {
  const Stopwatch time;
  for (unsigned i = 0; i < turns; ++i) partner.there_and_back();
  return time.nanoseconds() / turns;
}

// ---- Tasks ----

struct Memory {
  void* device[2];
  void* host;
};

Memory take_memory() {
  Memory memory{};
  for (void*& block : memory.device) {
    check(aclrtMalloc(&block, kMemory, ACL_MEM_MALLOC_HUGE_FIRST));
    check(aclrtMemset(block, kMemory, 1, kMemory));
  }
  check(aclrtMallocHost(&memory.host, kMemory));
  return memory;
}

using Submit = void (*)(const Memory& memory, aclrtStream stream);

void set_bytes(const Memory& memory, aclrtStream stream) {
  check(aclrtMemsetAsync(memory.device[0], kBytes64, 1, kBytes64, stream));
}
void copy_within(const Memory& memory, aclrtStream stream) {
  check(aclrtMemcpyAsync(memory.device[0], kBytes64, memory.device[1], kBytes64,
                         ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
}
void copy_from_host(const Memory& memory, aclrtStream stream) {
  check(aclrtMemcpyAsync(memory.device[0], kBytes64, memory.host, kBytes64,
                         ACL_MEMCPY_HOST_TO_DEVICE, stream));
}

// Nanoseconds per task, from the first that is queued until all are done.
double many(const Memory& memory, Submit submit, const std::vector<aclrtStream>& streams,
            unsigned tasks) {
  const Stopwatch time;
  for (unsigned i = 0; i < tasks; ++i) submit(memory, streams[i % streams.size()]);
  for (const aclrtStream stream : streams) check(aclrtSynchronizeStream(stream));
  return time.nanoseconds() / tasks;
}

double one_at_a_time(const Memory& memory, aclrtStream stream, unsigned tasks) {
  const Stopwatch time;
  for (unsigned i = 0; i < tasks; ++i) {
    set_bytes(memory, stream);
    check(aclrtSynchronizeStream(stream));
  }
  return time.nanoseconds() / tasks;
}

// ---- After a rest ----

// Medians, in nanoseconds: what was measured once per rest.
struct AfterRest {
  double submit;
  double submit_and_wait;
  double futex_wake;  // of a thread that sleeps, without waiting for it
};

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

AfterRest measure_after_rest(const Memory& memory, aclrtStream stream, FutexPartner& partner,
                             std::chrono::microseconds rest, unsigned count) {
  std::vector<double> submits;
  std::vector<double> waits;
  std::vector<double> wakes;
  for (unsigned i = 0; i < count; ++i) {
    std::this_thread::sleep_for(rest);
    const Stopwatch time;
    set_bytes(memory, stream);
    submits.push_back(time.nanoseconds());
    check(aclrtSynchronizeStream(stream));
    waits.push_back(time.nanoseconds());
  }
  for (unsigned i = 0; i < count; ++i) {
    std::this_thread::sleep_for(rest);
    const Stopwatch time;
    partner.there();
    wakes.push_back(time.nanoseconds());
    partner.back();
  }
  return {median_of(submits), median_of(waits), median_of(wakes)};
}

// Microseconds of processor time per second in which there is no work.
double idle_cost(std::chrono::milliseconds rest) {
  const auto used = [] {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const auto microseconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
    };
    return microseconds(usage.ru_utime) + microseconds(usage.ru_stime);
  };
  std::this_thread::sleep_for(std::chrono::milliseconds(10));  // workers fall asleep
  const double before = used();
  std::this_thread::sleep_for(rest);
  return (used() - before) / (static_cast<double>(rest.count()) / 1e3);
}

double per_microsecond(double nanoseconds) { return 1e3 / nanoseconds; }

struct Case {
  const char* name;
  Submit submit;
  size_t streams;
};
constexpr Case kCases[] = {{"set 64 B, 1 stream", set_bytes, 1},
                           {"copy 64 B within, 1 stream", copy_within, 1},
                           {"copy 64 B to the device, 1 stream", copy_from_host, 1},
                           {"set 64 B, 64 streams in turn", set_bytes, 64}};

}  // namespace

int main(int argc, char** argv) {
  const Report report("tasks", argc, argv);
  start_device();
  const Memory memory = take_memory();
  std::vector<aclrtStream> streams(64);
  for (aclrtStream& stream : streams) check(aclrtCreateStream(&stream));
  FutexPartner partner;
  const unsigned tasks = report.full_or_smoke(20'000U, 100U);
  const unsigned turns = report.full_or_smoke(200U, 10U);
  const unsigned repetitions = report.full_or_smoke(31U, 1U);

  for (const Case& each : kCases) {
    const std::vector<aclrtStream> used(streams.begin(),
                                        streams.begin() + static_cast<ptrdiff_t>(each.streams));
    const std::vector<double> times =
        medians(repetitions, {[&] { return many(memory, each.submit, used, tasks); },
                              [&] { return hand_off(partner, turns); }});
    report.add({each.name, kMillionsPerSecond, per_microsecond(times[0]), per_microsecond(times[1]),
                each.streams == 1 ? Goal{.at_least = 5.0} : Goal{}});
  }
  const std::vector<double> times =
      medians(repetitions, {[&] { return one_at_a_time(memory, streams[0], tasks); },
                            [&] { return hand_off(partner, turns); }});
  report.add({"queue one and wait for it", kNanoseconds, times[0], times[1], {.at_most = 1000}});
  const unsigned rests = report.full_or_smoke(300U, 2U);
  for (const unsigned rest : {100U, 500U, 2000U, 10'000U}) {
    const AfterRest after =
        measure_after_rest(memory, streams[0], partner, std::chrono::microseconds(rest), rests);
    const bool dozes = rest <= 2000;  // beyond, a sleeping worker is woken
    const std::string name =
        "queue one after " + std::to_string(rest / 1000.0).substr(0, 4) + " ms";
    report.add({name, kNanoseconds, after.submit, after.futex_wake,
                dozes ? Goal{.at_most = 300} : Goal{.at_least_better = 1 / 1.2}});
    report.add({"  and wait for it", kNanoseconds, after.submit_and_wait, after.futex_wake,
                dozes ? Goal{.at_most = 1000} : Goal{}});
  }
  report.note("medians; baseline: one futex wake of a thread that sleeps");
  report.add({"64 idle streams, processor time per s",
              kMicroseconds,
              idle_cost(report.full_or_smoke(std::chrono::milliseconds(500),
                                             std::chrono::milliseconds(5))),
              {},
              {.at_most = 100}});
  report.note("baseline: a futex hand-off to another thread and back");
  for (const aclrtStream stream : streams) check(aclrtDestroyStream(stream));
  return 0;
}
