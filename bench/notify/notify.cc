// SPDX-License-Identifier: Apache-2.0
//
// How long does a turn between two streams take that record and wait for each other's notifies,
// within a process and between two? Against a futex that two threads, or processes, change in turn.
#include <sys/mman.h>

#include <array>
#include <functional>
#include <new>
#include <thread>
#include <vector>

#include "support/device.h"
#include "support/fail.h"
#include "support/futex_turns.h"
#include "support/measure.h"
#include "support/other_process.h"
#include "support/private_server.h"
#include "support/report.h"

namespace {

using namespace bench;

using Key = std::array<char, 65>;

// One side: records its own notify and waits for that of the other.
struct Side {
  aclrtStream stream;
  aclrtNotify own;
  aclrtNotify others;

  void record_and_wait(unsigned turns) const {
    for (unsigned i = 0; i < turns; ++i) {
      check(aclrtRecordNotify(own, stream));
      check(aclrtWaitAndResetNotify(others, stream, 0));
    }
  }
  void wait_and_record(unsigned turns) const {
    for (unsigned i = 0; i < turns; ++i) {
      check(aclrtWaitAndResetNotify(others, stream, 0));
      check(aclrtRecordNotify(own, stream));
    }
  }
  void finish() const { check(aclrtSynchronizeStream(stream)); }
};

aclrtNotify create_notify() {
  aclrtNotify notify = nullptr;
  check(aclrtCreateNotify(&notify, 0));
  return notify;
}

// ---- Within a process ----

double turns_here(const Side& first, const Side& second, unsigned turns) {
  second.wait_and_record(turns);
  const Stopwatch time;
  first.record_and_wait(turns);
  first.finish();
  const double each = time.nanoseconds() / turns;
  second.finish();
  return each;
}

double futex_turns(FutexTurns& partner, unsigned turns) {
  const Stopwatch time;
  for (unsigned i = 0; i < turns; ++i) partner.there_and_back();
  return time.nanoseconds() / turns;
}

// ---- Between processes ----

Side side_for(const Line& line) {
  const aclrtNotify own = create_notify();
  Key key{};
  check(aclrtNotifyGetExportKey(own, key.data(), key.size(),
                                ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION));
  line.send(key);
  const auto theirs = line.receive<Key>();
  aclrtNotify others = nullptr;
  check(aclrtNotifyImportByKey(&others, theirs.data(), 0));
  return {create_stream(), own, others};
}

void answer(const Line& line) {
  start_device();
  const Side side = side_for(line);
  for (unsigned turns = 0; line.receive_or_end(&turns, sizeof turns);) {
    side.wait_and_record(turns);
    line.send(turns);  // they are queued
    side.finish();
  }
}

double turns_across(const Side& side, const Line& line, unsigned turns) {
  line.send(turns);
  line.receive<unsigned>();
  const Stopwatch time;
  side.record_and_wait(turns);
  side.finish();
  return time.nanoseconds() / turns;
}

FutexTurns& shared_turns() {
  void* const memory =
      mmap(nullptr, sizeof(FutexTurns), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  require(memory != MAP_FAILED, "mmap");
  return *new (memory) FutexTurns(FutexTurns::Between::kProcesses);
}

}  // namespace

int main(int argc, char** argv) {
  const Report report("notify", argc, argv);
  use_private_server();
  FutexTurns& across = shared_turns();
  const OtherProcess futex_partner([&](const Line&) { across.serve(); });
  const OtherProcess partner(answer);
  start_device();
  const unsigned turns = report.full_or_smoke(200U, 10U);
  const unsigned repetitions = report.full_or_smoke(31U, 1U);

  const aclrtNotify ping = create_notify();
  const aclrtNotify pong = create_notify();
  const Side first{create_stream(), ping, pong};
  const Side second{create_stream(), pong, ping};
  FutexTurns here(FutexTurns::Between::kThreads);
  std::thread thread([&] { here.serve(); });
  const std::vector<double> within = medians(
      repetitions,
      {[&] { return turns_here(first, second, turns); }, [&] { return futex_turns(here, turns); }});
  here.end();
  thread.join();
  report.add({"round trip, two streams of a process", kNanoseconds, within[0], within[1], {}});

  const Side side = side_for(partner.line());
  const std::vector<double> between =
      medians(repetitions, {[&] { return turns_across(side, partner.line(), turns); },
                            [&] { return futex_turns(across, turns); }});
  across.end();
  report.add({"round trip, streams of two processes", kNanoseconds, between[0], between[1], {}});
  report.note("baseline: a futex that two threads, or two processes, change in turn");
  return 0;
}
