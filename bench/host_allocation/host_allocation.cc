// SPDX-License-Identifier: Apache-2.0
//
// What does it cost to allocate page-locked host memory, to touch each page of it and to free it?
// Against mmap, mlock and munmap with 4 KiB pages. Fresh memory is that of a new process which
// frees nothing before it has allocated everything; recycled memory was freed just before.
#include <sys/mman.h>

#include "support/device.h"
#include "support/fail.h"
#include "support/measure.h"
#include "support/raw_memory.h"
#include "support/report.h"

namespace {

using namespace bench;

constexpr size_t kPage = size_t{4} << 10;
constexpr int kPopulate = 23;  // MADV_POPULATE_WRITE, which older headers lack

struct Size {
  const char* name;
  size_t bytes;
  unsigned fresh_blocks;  // at once, and one more that is not measured
  unsigned processes;
  unsigned repetitions;  // recycled
  unsigned cycles;       // in each of them
};
constexpr Size kSizes[] = {{"2 MiB", size_t{2} << 20, 15, 21, 101, 8},
                           {"64 MiB", size_t{64} << 20, 7, 11, 31, 1},
                           {"1 GiB", size_t{1} << 30, 1, 5, 5, 1}};

void* allocate(size_t size) {
  void* memory = nullptr;
  check(aclrtMallocHost(&memory, size));
  return memory;
}

void release(void* memory) { check(aclrtFreeHost(memory)); }

void touch(void* memory, size_t size) {
  for (size_t at = 0; at < size; at += kPage) static_cast<volatile char*>(memory)[at] = 1;
}

void* map_private(size_t size) {
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  require(memory != MAP_FAILED, "mmap");
  return memory;
}

enum class Lock { kAllowed, kInvalidParam };

// Asks the kernel without using memory.
Lock ask_for_lock(size_t size) {
  void* const memory = map_private(size);
  const bool locked = mlock2(memory, size, MLOCK_ONFAULT) == 0;
  require(munmap(memory, size) == 0, "munmap");
  return locked ? Lock::kAllowed : Lock::kInvalidParam;
}

void* raw_allocate(size_t size, Lock lock) {
  void* const memory = map_private(size);
  // Refused by kernels that have no other pages anyway.
  (void)madvise(memory, size, MADV_NOHUGEPAGE);
  if (lock == Lock::kAllowed) {
    require(mlock(memory, size) == 0, "mlock");
  } else {
    // What MAP_POPULATE does, which would come before the choice of pages. Where the kernel does
    // not know it, the pages come when they are touched.
    (void)madvise(memory, size, kPopulate);
  }
  return memory;
}

void raw_release(void* memory, size_t size) { require(munmap(memory, size) == 0, "munmap"); }

struct Side {
  std::function<void*()> allocate;
  std::function<void(void*)> release;
};

Side understudy(size_t size) {
  return {[=] { return allocate(size); }, [](void* memory) { release(memory); }};
}

Side baseline(size_t size, Lock lock) {
  return {[=] { return raw_allocate(size, lock); },
          [=](void* memory) { raw_release(memory, size); }};
}

// Nanoseconds of both sides, for memory that none of them had before.
std::vector<double> fresh(const Size& size, unsigned count, Lock lock) {
  const Side sides[] = {understudy(size.bytes), baseline(size.bytes, lock)};
  std::vector<void*> blocks[2];
  std::vector<std::function<double()>> gets;
  std::vector<std::function<double()>> gives_back;
  for (size_t i = 0; i < 2; ++i) {
    gets.emplace_back([&size, &side = sides[i], &own = blocks[i]] {
      const Stopwatch time;
      void* const memory = side.allocate();
      touch(memory, size.bytes);
      const double nanoseconds = time.nanoseconds();
      own.push_back(memory);
      return nanoseconds;
    });
    gives_back.emplace_back([&side = sides[i], &own = blocks[i]] {
      const Stopwatch time;
      side.release(own.back());
      const double nanoseconds = time.nanoseconds();
      own.pop_back();
      return nanoseconds;
    });
  }
  start_device();
  fetch_memory_from_host(2 * size.bytes * (count + 1));
  const std::vector<double> got = medians(count, gets);
  const std::vector<double> given_back = medians(count, gives_back);
  return {got[0] + given_back[0], got[1] + given_back[1]};
}

// Nanoseconds per cycle.
auto recycled(const Side& side, size_t size, unsigned cycles) {
  return [=] {
    const Stopwatch time;
    for (unsigned i = 0; i < cycles; ++i) {
      void* const memory = side.allocate();
      touch(memory, size);
      side.release(memory);
    }
    return time.nanoseconds() / cycles;
  };
}

}  // namespace

int main(int argc, char** argv) {
  const Report report("host_allocation", argc, argv);
  const size_t sizes = report.full_or_smoke(std::size(kSizes), size_t{2});
  // Both sides hold two blocks of the largest size at once.
  const Lock lock = ask_for_lock(4 * kSizes[sizes - 1].bytes);
  if (lock == Lock::kInvalidParam) {
    report.note("the lock limit is too low: the baseline populates its memory without locking it");
  }

  for (size_t i = 0; i < sizes; ++i) {
    const Size& size = kSizes[i];
    const unsigned count = report.full_or_smoke(size.fresh_blocks, 1U);
    const std::vector<double> times = medians_in_children(report.full_or_smoke(size.processes, 1U),
                                                          [&] { return fresh(size, count, lock); });
    report.add({std::string(size.name) + ", fresh",
                kMicroseconds,
                times[0] / 1e3,
                times[1] / 1e3,
                {.at_least_better = 2.5}});
  }

  start_device();  // not sooner: the processes above shall have their own
  for (size_t i = 0; i < sizes; ++i) {
    const auto& [name, bytes, fresh_blocks, processes, repetitions, cycles] = kSizes[i];
    const std::vector<double> times = medians(report.full_or_smoke(repetitions, 1U),
                                              {recycled(understudy(bytes), bytes, cycles),
                                               recycled(baseline(bytes, lock), bytes, cycles)});
    report.add({std::string(name) + ", recycled",
                kMicroseconds,
                times[0] / 1e3,
                times[1] / 1e3,
                {.at_least_better = 8}});
  }

  const unsigned count = report.full_or_smoke(5000U, 100U);
  const auto pairs = [count] {
    const Stopwatch time;
    for (unsigned i = 0; i < count; ++i) release(allocate(kPage));
    return time.nanoseconds() / count;
  };
  const std::vector<double> times = medians(report.full_or_smoke(301U, 1U), {pairs});
  report.add({"4 KiB pair", kNanoseconds, times[0], {}, {}});
}
