// SPDX-License-Identifier: Apache-2.0
//
// Processes that put more behind their device memory than their memory cgroup allows: each is told
// 207001, and the kernel kills none of them.
#include "process/memory_cgroup.h"

#include <sys/mman.h>

#include <array>
#include <cstring>
#include <deque>

#include "support/fork_safety.h"
#include "support/peer.h"
#include "support/rule_test.h"

namespace understudy_test {
namespace {

constexpr size_t kLimit = 300 * kMiB;
constexpr size_t kStep = 2 * kMiB;
constexpr size_t kEach = 512 * kMiB;  // of device memory

struct Committed {
  aclError code = ACL_SUCCESS;
  size_t bytes = 0;
};

// Writes step by step from where it stands, at most `most` bytes.
Committed commit(void* data, size_t& done, size_t most) {
  Committed now;
  while (now.bytes < most && done < kEach) {
    now.code = aclrtMemset(at(data, done), kStep, 0x5A, kStep);
    if (now.code != ACL_SUCCESS) break;
    now.bytes += kStep;
    done += kStep;
  }
  (void)recent_error();
  return now;
}

// Commits as much as it is told to, each time it is told.
US_PEER(CommitsInACgroup) {
  void* data = nullptr;
  size_t done = 0;
  for (size_t most = 0; channel.receive_bytes(&most, sizeof most);) {
    if (data == nullptr) {
      ASSERT_SUCCESS(aclrtSetDevice(0));
      ASSERT_SUCCESS(aclrtMalloc(&data, kEach, ACL_MEM_MALLOC_HUGE_FIRST));
    }
    channel.send(commit(data, done, most));
  }
  const std::vector<uint8_t> expected(kStep, 0x5A);
  for (size_t offset = 0; offset < done; offset += kStep) {
    ASSERT_EQ(copy_out(at(data, offset), kStep), expected) << offset;
  }
  EXPECT_SUCCESS(aclrtFree(data));
  EXPECT_SUCCESS(aclrtResetDeviceForce(0));
}

// Takes plain memory of its own: so many bytes in place of what it had.
US_PEER(TakesPlainMemory) {
  void* memory = nullptr;
  size_t size = 0;
  for (size_t wanted = 0; channel.receive_bytes(&wanted, sizeof wanted);) {
    if (size != 0) munmap(memory, size);
    size = wanted;
    if (size != 0) {
      memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      ASSERT_NE(memory, MAP_FAILED);
      memset(memory, 1, size);
    }
    channel.send(true);
  }
}

#define US_SKIP_WITHOUT_CGROUP(cgroup)                                 \
  if (!(cgroup).why_not().empty()) GTEST_SKIP() << (cgroup).why_not(); \
  if (why_no_fork_of_threads() != nullptr) GTEST_SKIP() << "a sanitizer needs memory of its own"

TEST(MemoryCgroup, FourProcessesThatWantTooMuchAreToldAndNotKilled) {
  US_FRESH_PROCESS();
  constexpr int kRounds = 3;
  for (int round = 0; round < kRounds && !testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE(round);
    MemoryCgroup cgroup(kLimit);
    US_SKIP_WITHOUT_CGROUP(cgroup);
    {
      std::deque<Peer> peers;
      for (int i = 0; i < 4; ++i) {
        peers.emplace_back(CommitsInACgroup);
        cgroup.add(peers.back().pid());
      }
      for (Peer& peer : peers) peer.send(kEach);
      size_t total = 0;
      for (Peer& peer : peers) {
        const auto committed = peer.receive<Committed>();
        EXPECT_EQ(committed.code, ACL_ERROR_RT_MEMORY_ALLOCATION);
        total += committed.bytes;
      }
      EXPECT_GT(total, kLimit / 3) << "far less than there is";
    }
    EXPECT_EQ(cgroup.kills(), 0u);
  }
}

TEST(MemoryCgroup, OneThatWasToldThereIsMemoryAsksAgainBeforeItTakesMore) {
  US_FRESH_PROCESS();
  constexpr size_t kLeft = 32 * kMiB;
  MemoryCgroup cgroup(kLimit);
  US_SKIP_WITHOUT_CGROUP(cgroup);
  {
    Peer process(CommitsInACgroup);
    Peer neighbour(TakesPlainMemory);
    for (const Peer* const peer : {&process, &neighbour}) cgroup.add(peer->pid());
    process.send(8 * kMiB);  // learns that there is plenty
    EXPECT_EQ(process.receive<Committed>().code, ACL_SUCCESS);
    const size_t plenty = kLimit - kLeft - cgroup.usage();
    neighbour.send(plenty);
    ASSERT_TRUE(neighbour.receive<bool>());
    process.send(2 * kLeft);
    EXPECT_EQ(process.receive<Committed>().code, ACL_ERROR_RT_MEMORY_ALLOCATION);
    EXPECT_EQ(cgroup.kills(), 0u);
    // When there is memory again, it is given.
    neighbour.send(size_t{0});
    ASSERT_TRUE(neighbour.receive<bool>());
    process.send(2 * kLeft);
    EXPECT_EQ(process.receive<Committed>().code, ACL_SUCCESS);
  }
  EXPECT_EQ(cgroup.kills(), 0u);
}

}  // namespace
}  // namespace understudy_test
