// SPDX-License-Identifier: Apache-2.0
//
// Threads that allocate, fill, check and free at the same time, many of them blocks of another
// thread; and copies that race with the end of the block they use.
#include <atomic>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "rules/allocation_objects.h"
#include "stress/copy_answers.h"
#include "stress/threads.h"
#include "support/rule_test.h"
#include "support/sanitizers.h"

namespace understudy_test {
namespace {

using ConcurrentAllocation = DeviceTest;

constexpr int kThreads = 8;
constexpr size_t kEnd = 64;  // bytes at either end of a block that its owner knows

struct Owned {
  void* data = nullptr;
  size_t size = 0;
  uint8_t seed = 0;
};

// The kind of memory: how it is allocated, written, read and freed.
struct DeviceKind {
  static Owned allocate(std::mt19937& random) {
    static constexpr size_t kSizes[] = {1, 100, 4000, 4096, 9000, 40000, 300'000, kMiB, 3 * kMiB};
    static constexpr aclrtMemMallocPolicy kPolicies[] = {
        ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEM_MALLOC_NORMAL_ONLY,
        ACL_MEM_MALLOC_NORMAL_ONLY, ACL_MEM_MALLOC_HUGE_ONLY};
    Owned block{nullptr, kSizes[random() % std::size(kSizes)], static_cast<uint8_t>(random())};
    EXPECT_SUCCESS(
        aclrtMalloc(&block.data, block.size, kPolicies[random() % std::size(kPolicies)]));
    return block;
  }
  static aclError free(void* data) { return aclrtFree(data); }
  static void write(void* to, const std::vector<uint8_t>& bytes) { copy_in(to, bytes); }
  static std::vector<uint8_t> read(const void* from, size_t count) { return copy_out(from, count); }
};

struct HostKind {
  static Owned allocate(std::mt19937& random) {
    static constexpr size_t kSizes[] = {1, 100, 4000, 4096, 9000, 40000, 300'000, kMiB, 3 * kMiB};
    Owned block{nullptr, kSizes[random() % std::size(kSizes)], static_cast<uint8_t>(random())};
    EXPECT_SUCCESS(aclrtMallocHost(&block.data, block.size));
    return block;
  }
  static aclError free(void* data) { return aclrtFreeHost(data); }
  static void write(void* to, const std::vector<uint8_t>& bytes) {
    memcpy(to, bytes.data(), bytes.size());
  }
  static std::vector<uint8_t> read(const void* from, size_t count) {
    const auto* const bytes = static_cast<const uint8_t*>(from);
    return {bytes, bytes + count};
  }
};

size_t end_of(const Owned& block) { return std::min(kEnd, block.size); }

template <typename Kind>
void fill(const Owned& block) {
  Kind::write(block.data, pattern(end_of(block), block.seed));
  if (block.size >= 2 * kEnd) {
    Kind::write(at(block.data, block.size - kEnd),
                pattern(kEnd, static_cast<uint8_t>(block.seed + 1)));
  }
}

template <typename Kind>
void check_and_free(const Owned& block) {
  EXPECT_TRUE(Kind::read(block.data, end_of(block)) == pattern(end_of(block), block.seed));
  if (block.size >= 2 * kEnd) {
    EXPECT_TRUE(Kind::read(at(block.data, block.size - kEnd), kEnd) ==
                pattern(kEnd, static_cast<uint8_t>(block.seed + 1)));
  }
  EXPECT_SUCCESS(Kind::free(block.data));
}

// Each thread keeps a few blocks. Half of those it parts with go through a mailbox, whose next
// visitor checks and frees them.
template <typename Kind>
void churn(int rounds) {
  constexpr size_t kKept = 12;
  const MemoryFigures before = memory_figures();
  std::atomic<Owned*> mailbox[4] = {};
  run_on_threads(kThreads, [&](int thread) {
    std::mt19937 random(static_cast<unsigned>(thread) + 1);
    std::vector<Owned> kept;
    for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
      kept.push_back(Kind::allocate(random));
      fill<Kind>(kept.back());
      if (kept.size() < kKept) continue;
      std::swap(kept[random() % kept.size()], kept.back());
      const Owned leaving = kept.back();
      kept.pop_back();
      if (round % 2 == 0) {
        check_and_free<Kind>(leaving);
      } else if (Owned* const other = mailbox[random() % 4].exchange(new Owned(leaving))) {
        check_and_free<Kind>(*other);
        delete other;
      }
    }
    for (const Owned& block : kept) check_and_free<Kind>(block);
  });
  for (std::atomic<Owned*>& left : mailbox) {
    if (left == nullptr) continue;
    check_and_free<Kind>(*left);
    delete left.load();
  }
  EXPECT_EQ(memory_figures(), before);
}

TEST_F(ConcurrentAllocation, EightThreadsKeepTheirBytesOnTheDevice) {
  churn<DeviceKind>(kSanitized ? 300 : 2000);
}

TEST_F(ConcurrentAllocation, EightThreadsKeepTheirBytesOnTheHost) {
  churn<HostKind>(kSanitized ? 300 : 2000);
}

TEST_F(ConcurrentAllocation, OneOfManyFreesOfOneBlockSucceeds) {
  const MemoryFigures before = memory_figures();
  for (const size_t size : {size_t{100}, 3 * kMiB}) {
    StartLine line(kThreads);
    std::atomic<void*> shared{nullptr};
    std::atomic<int> successes{0};
    std::atomic<int> others{0};
    const int rounds = kSanitized ? 50 : 300;
    run_on_threads(kThreads, [&](int thread) {
      for (int round = 0; round < rounds; ++round) {
        if (thread == 0) {
          void* data = nullptr;
          EXPECT_SUCCESS(aclrtMalloc(&data, size, ACL_MEM_MALLOC_HUGE_FIRST));
          shared = data;
        }
        line.wait();
        const aclError code = aclrtFree(shared);
        if (code == ACL_SUCCESS) ++successes;
        if (code != ACL_SUCCESS && code != ACL_ERROR_RT_PARAM_INVALID) ++others;
        line.wait();
      }
    });
    EXPECT_EQ(successes, rounds) << size;
    EXPECT_EQ(others, 0) << size;
  }
  EXPECT_EQ(memory_figures(), before);
}

// ---- Copies that race with frees ----

// Blocks that lie around those that come and go. Their bytes and their address are their own, so
// not even a late copy may change them.
class Neighbours {
 public:
  Neighbours(size_t size, aclrtMemMallocPolicy policy) {
    for (size_t i = 0; i < kCount; ++i) {
      blocks_.push_back(std::make_unique<DeviceBlock>(size, policy));
      EXPECT_SUCCESS(aclrtMemset(blocks_[i]->data(), size, 0x77, size));
    }
    // Gaps between those that stay.
    for (size_t i = 1; i < kCount; i += 2) blocks_[i].reset();
  }
  void expect_unchanged() const {
    for (const auto& block : blocks_) {
      if (block == nullptr) continue;
      EXPECT_TRUE(copy_out(block->data(), block->size()) ==
                  std::vector<uint8_t>(block->size(), 0x77));
    }
  }

 private:
  static constexpr size_t kCount = 8;
  std::vector<std::unique_ptr<DeviceBlock>> blocks_;
};

void copy_while_blocks_end(size_t size, aclrtMemMallocPolicy policy, int rounds) {
  const MemoryFigures before = memory_figures();
  {
    const Neighbours neighbours(size, policy);
    std::atomic<void*> target{nullptr};
    std::atomic<bool> ended{false};
    CopyAnswers answers;
    run_on_threads(4, [&](int thread) {
      if (thread == 0) {
        for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
          void* block = nullptr;
          EXPECT_SUCCESS(aclrtMalloc(&block, size, policy));
          target = block;
          wait_for_copies(answers, 3);
          EXPECT_SUCCESS(aclrtFree(block));
          if (round % 8 == 0) neighbours.expect_unchanged();
        }
        ended = true;
        return;
      }
      std::vector<uint8_t> host(size, 0x11);
      while (!ended) {
        void* const block = target;
        if (block == nullptr) {
          std::this_thread::yield();
          continue;
        }
        answers.note(aclrtMemcpy(block, size, host.data(), size, ACL_MEMCPY_HOST_TO_DEVICE));
        answers.note(aclrtMemset(block, size, 0x22, size / 2));
        answers.note(aclrtMemcpy(host.data(), size, block, size, ACL_MEMCPY_DEVICE_TO_HOST));
      }
    });
    EXPECT_EQ(answers.unexpected, 0) << "for example " << answers.last_unexpected;
    neighbours.expect_unchanged();
  }
  EXPECT_EQ(memory_figures(), before);
}

TEST_F(ConcurrentAllocation, CopiesRaceWithFreesOfSmallBlocks) {
  copy_while_blocks_end(5000, ACL_MEM_MALLOC_NORMAL_ONLY, kSanitized ? 200 : 500);
}

TEST_F(ConcurrentAllocation, CopiesRaceWithFreesOfLargeBlocks) {
  copy_while_blocks_end(kMiB + 5000, ACL_MEM_MALLOC_HUGE_ONLY, kSanitized ? 20 : 150);
}

}  // namespace
}  // namespace understudy_test
