// SPDX-License-Identifier: Apache-2.0
//
// What does an allocation from a stream-ordered pool cost, once the pool is warm? Against the pair
// of aclrtMalloc and aclrtFree of the same size, in the same run. Nothing is written to the memory.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "support/device.h"
#include "support/measure.h"
#include "support/report.h"

namespace {

using namespace bench;

constexpr Goal kWarm{.at_most = 250};

void* allocate(size_t size, aclrtMemPool pool, aclrtStream stream) {
  void* memory = nullptr;
  check(aclrtMemPoolMallocAsync(&memory, size, pool, stream));
  return memory;
}

void release(void* memory, aclrtStream stream) { check(aclrtMemPoolFreeAsync(memory, stream)); }

auto pool_pair(size_t size, aclrtMemPool pool, aclrtStream stream) {
  return [=] { release(allocate(size, pool, stream), stream); };
}

auto malloc_pair(size_t size) {
  return [=] {
    void* memory = nullptr;
    check(aclrtMalloc(&memory, size, ACL_MEM_MALLOC_HUGE_FIRST));
    check(aclrtFree(memory));
  };
}

// Nanoseconds per pair. The first one does not count: it warms the pool.
template <typename Pair>
auto pairs(unsigned count, Pair pair) {
  return [count, pair] {
    pair();
    const Stopwatch time;
    for (unsigned i = 0; i < count; ++i) pair();
    return time.nanoseconds() / count;
  };
}

void measure_pair(const Report& report, const std::string& name, size_t size, aclrtMemPool pool,
                  aclrtStream stream, const Goal& goal) {
  const unsigned count = report.full_or_smoke(5000U, 100U);
  const std::vector<double> times =
      medians(report.full_or_smoke(301U, 1U),
              {pairs(count, pool_pair(size, pool, stream)), pairs(count, malloc_pair(size))});
  report.add({name, kNanoseconds, times[0], times[1], goal});
}

// Free blocks of many sizes, with used ones between them: what a best fit has to choose from.
void fragment(aclrtMemPool pool, aclrtStream stream, size_t blocks) {
  std::mt19937_64 random(1);
  std::vector<void*> freed;
  for (size_t i = 0; i < blocks; ++i) {
    freed.push_back(allocate((2 + random() % 4) * kGranule, pool, stream));
    (void)allocate(kGranule, pool, stream);
  }
  std::shuffle(freed.begin(), freed.end(), random);
  for (void* const block : freed) release(block, stream);
}

}  // namespace

int main(int argc, char** argv) {
  const Report report("pool", argc, argv);
  start_device();
  const aclrtStream stream = create_stream();
  measure_pair(report, "2 MiB pair", kGranule, create_pool(), stream, kWarm);
  measure_pair(report, "20 MiB pair", 10 * kGranule, create_pool(), stream, kWarm);
  {
    const aclrtMemPool pool = create_pool();
    release(allocate(512 * kGranule, pool, stream), stream);
    measure_pair(report, "2 MiB pair, cut from 1 GiB", kGranule, pool, stream, kWarm);
  }
  {
    const aclrtMemPool pool = create_pool();
    const size_t blocks = report.full_or_smoke<size_t>(2000, 50);
    fragment(pool, stream, blocks);
    measure_pair(report, "2 MiB pair, among " + std::to_string(blocks) + " free blocks", kGranule,
                 pool, stream, {});
  }
  report.note("baseline: aclrtMalloc and aclrtFree of the same size");
}
