// SPDX-License-Identifier: Apache-2.0
//
// What does it cost to find the memory behind a device address? 64-byte copies to random mappings,
// against the same copies after one look-up in a flat table with an entry for each mapping. The
// mappings share 256 blocks, so that neither side uses more than 512 MiB; the baseline has as many
// pages of the same size. Copies go to one line of each block, which stays in the cache, or to any
// line, so that nearly each of them waits for memory.
#include <array>
#include <cstring>

#include "support/device.h"
#include "support/measure.h"
#include "support/raw_memory.h"
#include "support/report.h"

namespace {

using namespace bench;

constexpr size_t kLine = 64;
using Line = std::array<std::byte, kLine>;
enum class Lines { kCached, kAny };

class Subject {
 public:
  Subject(size_t blocks, size_t max_mappings) : base_(reserve_addresses(max_mappings * kGranule)) {
    for (size_t i = 0; i < blocks; ++i) blocks_.push_back(create_block(kGranule));
  }

  void grow(size_t mappings) {
    for (; mappings_ < mappings; ++mappings_) {
      std::byte* const address = base_ + mappings_ * kGranule;
      map_block(address, kGranule, blocks_[mappings_ % blocks_.size()]);
      if (mappings_ < blocks_.size()) check(aclrtMemset(address, kGranule, 1, kGranule));
    }
  }

  void copy(size_t mapping, size_t offset, const Line& line) const {
    check(aclrtMemcpy(base_ + mapping * kGranule + offset, kLine, line.data(), kLine,
                      ACL_MEMCPY_HOST_TO_DEVICE));
  }

 private:
  std::byte* base_;
  std::vector<aclrtDrvMemHandle> blocks_;
  size_t mappings_ = 0;
};

class Baseline {
 public:
  explicit Baseline(size_t blocks)
      : blocks_(blocks), file_(blocks * kGranule), memory_(raw_reserve(blocks * kGranule)) {
    file_.map_over(memory_);
    raw_populate_huge(memory_, blocks * kGranule);
  }

  void grow(size_t mappings) {
    table_.reserve(mappings);
    while (table_.size() < mappings) {
      table_.push_back(memory_ + table_.size() % blocks_ * kGranule);
    }
  }

  void copy(size_t mapping, size_t offset, const Line& line) const {
    memcpy(table_[mapping] + offset, line.data(), kLine);
  }

 private:
  size_t blocks_;
  RawFile file_;
  std::byte* memory_;
  std::vector<std::byte*> table_;
};

struct Plan {
  size_t blocks;  // a power of two, as is the next
  size_t mappings;
  Lines lines;
  unsigned copies;
};

// Measures nanoseconds per copy of one thread; goes on with its random numbers at each call, since
// places that were visited before may still be in the cache.
template <typename Target>
auto copier(Team& team, const Target& target, const Plan& plan) {
  std::vector<Xorshift> randoms;
  for (unsigned thread = 0; thread < team.size(); ++thread) randoms.emplace_back(thread + 1);
  return [&team, &target, plan, randoms]() mutable {
    const double time = team.run([&](unsigned thread) {
      const Line line{};
      Xorshift random = randoms[thread];
      for (unsigned i = 0; i < plan.copies; ++i) {
        const uint64_t number = random.next();
        const size_t mapping = number & (plan.mappings - 1);
        // Not the same line in all blocks, which would share one set of the cache, nor for all
        // threads, which would take it from each other.
        const size_t cached = thread * plan.blocks + (mapping & (plan.blocks - 1));
        const size_t which = plan.lines == Lines::kAny ? number >> 32 : cached;
        target.copy(mapping, which * kLine % kGranule, line);
      }
      randoms[thread] = random;
    });
    return time / plan.copies;
  };
}

// ---- One place again and again: what the call itself costs ----

// Nanoseconds above a bare copy of as many bytes.
void measure_places(const Report& report) {
  constexpr size_t kOdd = 5 * kGranule + 4096;  // ends within a granule
  const unsigned copies = report.full_or_smoke(20'000U, 100U);
  const unsigned repetitions = report.full_or_smoke(101U, 1U);
  const auto allocated = [](size_t size) {
    void* memory = nullptr;
    check(aclrtMalloc(&memory, size, ACL_MEM_MALLOC_HUGE_FIRST));
    check(aclrtMemset(memory, size, 1, size));
    return static_cast<std::byte*>(memory);
  };
  std::byte* const one = allocated(2 * kGranule);
  std::byte* const other = allocated(2 * kGranule);
  std::byte* const odd = allocated(kOdd);
  alignas(kLine) static Line from{};
  alignas(kLine) static Line to{};
  const auto timed = [copies](auto copy) {
    return [copies, copy] {
      const Stopwatch time;
      for (unsigned i = 0; i < copies; ++i) copy();
      return time.nanoseconds() / copies;
    };
  };
  const std::vector<double> times = medians(
      repetitions,
      {timed(
           [=] { check(aclrtMemcpy(one, kLine, from.data(), kLine, ACL_MEMCPY_HOST_TO_DEVICE)); }),
       timed([=] { check(aclrtMemcpy(one, kLine, other, kLine, ACL_MEMCPY_DEVICE_TO_DEVICE)); }),
       timed([=] {
         check(
             aclrtMemcpy(odd + kOdd - kLine, kLine, from.data(), kLine, ACL_MEMCPY_HOST_TO_DEVICE));
       }),
       timed([] {
         memcpy(to.data(), from.data(), kLine);
         asm volatile("" : : : "memory");
       })});
  constexpr Goal kQuick{.at_most_above = 25};
  report.add({"one line, to the device", kNanoseconds, times[0], times[3], kQuick});
  report.add({"one line, within the device", kNanoseconds, times[1], times[3], kQuick});
  report.add({"one line, to an allocation's last", kNanoseconds, times[2], times[3], kQuick});
  for (std::byte* const memory : {one, other, odd}) check(aclrtFree(memory));
}

}  // namespace

int main(int argc, char** argv) {
  const Report report("translate", argc, argv);
  constexpr size_t kSizes[] = {1 << 10, 1 << 15, 1 << 20};
  const size_t sizes = report.full_or_smoke(std::size(kSizes), size_t{1});
  const size_t blocks = report.full_or_smoke<size_t>(256, 8);
  const unsigned repetitions = report.full_or_smoke(101U, 1U);
  start_device();
  measure_places(report);
  Subject subject(blocks, kSizes[sizes - 1]);
  Baseline baseline(blocks);
  Team one(1);
  Team two(2);
  for (Team* team : {&one, &two}) {
    team->run([](unsigned) { check(aclrtSetDevice(0)); });
  }

  for (size_t i = 0; i < sizes; ++i) {
    const size_t mappings = kSizes[i];
    subject.grow(mappings);
    baseline.grow(mappings);
    for (const Lines lines : {Lines::kCached, Lines::kAny}) {
      const Plan plan{blocks, mappings, lines, report.full_or_smoke(8000U, 100U)};
      const std::vector<double> times =
          medians(repetitions, {copier(one, subject, plan), copier(one, baseline, plan),
                                copier(two, subject, plan), copier(two, baseline, plan)});
      const std::string where = lines == Lines::kCached ? "cached lines" : "any line";
      const Goal goal{.at_most_above = mappings <= (1 << 15) ? 20.0 : 40.0};
      const Amount amount{mappings, "mappings"};
      report.add({where + ", 1 thread", kNanoseconds, times[0], times[1], goal, amount});
      report.add({where + ", 2 threads", kNanoseconds, times[2], times[3], goal, amount});
    }
  }
  report.note("%s", pages_in_use().c_str());
}
