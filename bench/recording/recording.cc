// SPDX-License-Identifier: Apache-2.0
//
// What does it cost a program to be recorded? The same rounds in three processes that take turns:
// one is not recorded, one is, one is with the call stack of each call. The recordings are rings,
// so that the chunks of a long run are in the figures.
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/device.h"
#include "support/fail.h"
#include "support/measure.h"
#include "support/other_process.h"
#include "support/private_server.h"
#include "support/report.h"

namespace {

using namespace bench;

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = kKiB * kKiB;

struct Round {
  const char* name;
  Unit unit;
  unsigned count;  // of rounds in a measurement
  Goal goal;
};
constexpr Goal kOfAllocations{.at_least_better = 1 / 1.10};
constexpr Goal kOfCopies{.at_least_better = 1 / 1.01};
constexpr Round kRounds[] = {
    {"allocate, set and free 4 KiB", kNanoseconds, 2000, kOfAllocations},
    {"allocate, set and free 1 MiB", kNanoseconds, 20, kOfAllocations},
    {"allocate and free 4 KiB", kNanoseconds, 5000, {}},
    {"create, map, unmap and free 2 MiB", kNanoseconds, 1000, {}},
    {"copy 64 bytes to the device", kNanoseconds, 5000, {}},
    {"copy 1 MiB to the device", kNanoseconds, 20, kOfCopies},
    {"queue 64 sets of 64 bytes and wait", kNanoseconds, 50, {}},
};

// What the rounds work on, in a process.
class Rounds {
 public:
  Rounds() : host_(kMiB) {
    start_device();
    device_ = allocated(kMiB);
    check(aclrtCreateStream(&stream_));
    range_ = reserve_addresses(kGranule);
  }

  void run(unsigned round) {
    switch (round) {
      case 0:
        return allocate_and_set(4 * kKiB);
      case 1:
        return allocate_and_set(kMiB);
      case 2:
        return check(aclrtFree(allocated(4 * kKiB)));
      case 3:
        return map();
      case 4:
        return copy(64);
      case 5:
        return copy(kMiB);
      default:
        return queue();
    }
  }

 private:
  static void* allocated(size_t size) {
    void* memory = nullptr;
    check(aclrtMalloc(&memory, size, ACL_MEM_MALLOC_HUGE_FIRST));
    return memory;
  }
  static void allocate_and_set(size_t size) {
    void* const memory = allocated(size);
    check(aclrtMemset(memory, size, 1, size));
    check(aclrtFree(memory));
  }
  void map() {
    const aclrtDrvMemHandle block = create_block(kGranule);
    map_block(range_, kGranule, block);
    check(aclrtUnmapMem(range_));
    check(aclrtFreePhysical(block));
  }
  void copy(size_t size) {
    check(aclrtMemcpy(device_, kMiB, host_.data(), size, ACL_MEMCPY_HOST_TO_DEVICE));
  }
  void queue() {
    for (int i = 0; i < 64; ++i) check(aclrtMemsetAsync(device_, kMiB, 1, 64, stream_));
    check(aclrtSynchronizeStream(stream_));
  }

  std::vector<char> host_;
  void* device_ = nullptr;
  aclrtStream stream_ = nullptr;
  void* range_ = nullptr;
};

struct Order {
  unsigned round;
  unsigned count;
};

// A process that runs rounds when it is told to, with these variables.
class Runner {
 public:
  explicit Runner(std::vector<std::pair<std::string, std::string>> variables)
      : process_([variables = std::move(variables)](const Line& line) {
          for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
          Rounds rounds;
          Order order{};
          while (line.receive_or_end(&order, sizeof order)) {
            const Stopwatch time;
            for (unsigned i = 0; i < order.count; ++i) rounds.run(order.round);
            line.send(time.nanoseconds() / order.count);
          }
        }) {}

  double measure(unsigned round, unsigned count) {
    process_.line().send(Order{round, count});
    return process_.line().receive<double>();
  }

 private:
  OtherProcess process_;
};

// Removed with what is in it.
class Folder {
 public:
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "understudy-bench-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) fail("no folder for recordings can be made");
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string file(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace

int main(int argc, char** argv) {
  const Report report("recording", argc, argv);
  use_private_server();
  const Folder folder;
  const std::vector<std::pair<std::string, std::string>> recorded = {
      {"UNDERSTUDY_TRACE", folder.file("calls")},
      {"UNDERSTUDY_TRACE_LIMIT", "64M"},
      {"UNDERSTUDY_TRACE_RING", "on"}};
  auto with_stacks = recorded;
  with_stacks.front().second = folder.file("stacks");
  with_stacks.emplace_back("UNDERSTUDY_TRACE_STACKS", "on");
  Runner off({});
  Runner on(recorded);
  Runner stacks(with_stacks);
  for (unsigned index = 0; index < std::size(kRounds); ++index) {
    const Round& round = kRounds[index];
    const unsigned count = report.full_or_smoke(round.count, 2U);
    const auto of = [&](Runner& runner) {
      return [&, index] { return runner.measure(index, count); };
    };
    const std::vector<double> times =
        medians(report.full_or_smoke(301U, 1U), {of(off), of(on), of(stacks)});
    report.add({round.name, round.unit, times[1], times[0], round.goal});
    report.add({"  with stacks", round.unit, times[2], times[0], {}});
  }
  report.note("baseline: the same in a process that is not recorded");
}
