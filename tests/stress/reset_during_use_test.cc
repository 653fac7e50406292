// SPDX-License-Identifier: Apache-2.0
//
// A device is reset while threads allocate, use and free its memory. Calls answer with success or a
// code that says what is gone; memory of other devices and of the host stays as it is; at the end
// nothing is taken (DEV-11).
#include <atomic>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <random>
#include <thread>
#include <vector>

#include "rules/allocation_objects.h"
#include "rules/host_objects.h"
#include "support/rule_test.h"
#include "support/sanitizers.h"

namespace understudy_test {
namespace {

const int kResets = kSanitized ? 100 : 600;
constexpr int kWorkers = 4;
constexpr aclError kGone = ACL_ERROR_RT_PARAM_INVALID;
constexpr aclError kNoContext = ACL_ERROR_RT_CONTEXT_NULL;
constexpr aclError kNotSet = 507007;

// Counts the codes that a call must not answer.
class Codes {
 public:
  bool note(const char* call, aclError code, std::initializer_list<aclError> others) {
    if (code == ACL_SUCCESS) return true;
    for (const aclError other : others) {
      if (code == other) return false;
    }
    if (unexpected_.fetch_add(1) == 0) ADD_FAILURE() << call << " answered " << code;
    return false;
  }

 private:
  std::atomic<int> unexpected_{0};
};

// One round of a worker: a few blocks that may vanish at any moment.
void use_device(Codes& codes, std::mt19937& random) {
  static constexpr size_t kSizes[] = {64, 5000, 100'000, kMiB, 3 * kMiB};
  codes.note("aclrtSetDevice", aclrtSetDevice(0), {});
  std::vector<void*> blocks;
  for (int i = 0; i < 6; ++i) {
    const size_t size = kSizes[random() % std::size(kSizes)];
    void* block = nullptr;
    if (!codes.note("aclrtMalloc", aclrtMalloc(&block, size, ACL_MEM_MALLOC_HUGE_FIRST),
                    {kNoContext})) {
      continue;
    }
    blocks.push_back(block);
    uint8_t bytes[64] = {};
    codes.note("aclrtMemset", aclrtMemset(block, size, 1, sizeof bytes), {kGone, kNoContext});
    codes.note("aclrtMemcpy",
               aclrtMemcpy(bytes, sizeof bytes, block, sizeof bytes, ACL_MEMCPY_DEVICE_TO_HOST),
               {kGone, kNoContext});
  }
  // Another thread may have the address by now and free it in its turn.
  for (void* const block : blocks) codes.note("aclrtFree", aclrtFree(block), {kGone});
}

MemoryFigures figures_after_reset() {
  (void)aclrtResetDeviceForce(0);
  EXPECT_SUCCESS(aclrtSetDevice(0));
  return memory_figures();
}

template <typename Round>
void reset_while(int workers, Round round) {
  const MemoryFigures before = figures_after_reset();
  std::atomic<bool> ended{false};
  std::atomic<int> rounds{0};
  Codes codes;
  std::vector<std::thread> threads;
  for (int worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&, worker] {
      std::mt19937 random(static_cast<unsigned>(worker) + 1);
      for (; !ended; ++rounds) round(codes, random);
    });
  }
  for (int reset = 0; reset < kResets; ++reset) {
    const int seen = rounds;
    codes.note("aclrtResetDeviceForce", aclrtResetDeviceForce(0), {kNotSet});
    codes.note("aclrtSetDevice", aclrtSetDevice(0), {});
    // Every few resets some work gets done in between.
    while (reset % 4 == 0 && rounds == seen) std::this_thread::yield();
  }
  ended = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(figures_after_reset(), before);
}

class ResetDuringUse : public testing::Test {
 protected:
  void TearDown() override {
    (void)aclrtResetDeviceForce(0);
    (void)aclrtResetDeviceForce(1);
    (void)recent_error();
  }
};

TEST_F(ResetDuringUse, ThreadsAllocateAndFree) { reset_while(kWorkers, use_device); }

TEST_F(ResetDuringUse, MemoryThatNobodyFreesIsAllThereAgain) {
  reset_while(kWorkers, [](Codes& codes, std::mt19937& random) {
    codes.note("aclrtSetDevice", aclrtSetDevice(0), {});
    for (int i = 0; i < 6; ++i) {
      void* block = nullptr;
      codes.note("aclrtMalloc",
                 aclrtMalloc(&block, 1 + random() % (2 * kMiB), ACL_MEM_MALLOC_HUGE_FIRST),
                 {kNoContext, ACL_ERROR_RT_MEMORY_ALLOCATION});
    }
  });
}

TEST_F(ResetDuringUse, AnotherDeviceAndTheHostKeepTheirBytes) {
  ASSERT_SUCCESS(aclrtSetDevice(1));
  const MemoryFigures figures_of_1 = memory_figures();
  {
    const DeviceBlock small(5000);
    const DeviceBlock large(3 * kMiB);
    const HostBlock host(5000);
    for (const DeviceBlock* const block : {&small, &large}) {
      copy_in(block->data(), pattern(block->size()));
    }
    store(host.data(), pattern(host.size()));

    reset_while(2, use_device);

    ASSERT_SUCCESS(aclrtSetDevice(1));
    for (const DeviceBlock* const block : {&small, &large}) {
      EXPECT_TRUE(copy_out(block->data(), block->size()) == pattern(block->size()));
    }
    EXPECT_TRUE(holds(host.data(), pattern(host.size())));
  }
  EXPECT_EQ(memory_figures(), figures_of_1);
}

// Virtual memory belongs to the process: only allocations end.
TEST_F(ResetDuringUse, MappedBlocksKeepTheirBytesAndStayCharged) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const MemoryFigures before = memory_figures();
  {
    const LiveMapping mapping;
    copy_in(mapping.data(), pattern(kGranule));
    reset_while(2, use_device);
    EXPECT_TRUE(copy_out(mapping.data(), kGranule) == pattern(kGranule));
  }
  EXPECT_EQ(memory_figures(), before);
}

}  // namespace
}  // namespace understudy_test
