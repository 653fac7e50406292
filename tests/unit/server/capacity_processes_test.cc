// SPDX-License-Identifier: Apache-2.0
//
// The capacity of devices that several processes use: together they never get more than there is,
// and what a dead one had is there for the others.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <new>
#include <vector>

#include "unit/ledger_image.h"
#include "unit/share_rig.h"

namespace understudy {
namespace {

constexpr auto kHuge = PageKind::kHuge;
constexpr Charge kAll{0, kHuge, TestServer::kHugeMemory};
constexpr Charge kTooMuch{0, kHuge, TestServer::kHugeMemory + kHugePage};
constexpr Charge kOnePage{0, kHuge, kHugePage};
constexpr uint64_t kPages = TestServer::kHugeMemory / kHugePage;  // huge ones
constexpr uint64_t kAllPages = TestServer::kHugeMemory / kNormalPage;

class CapacityOfProcesses : public testing::Test {
 protected:
  bool charge_all() { return own_.capacity.charge(kAll); }

  TestServer server_;
  ShareRig own_{server_};
  LedgerImage image_{server_};
};

TEST_F(CapacityOfProcesses, ChargesOfAllCount) {
  OtherProcess other([&](const Line& line) {
    ShareRig theirs(server_);
    EXPECT_TRUE(theirs.capacity.charge(kOnePage));
    line.say();
    line.hear_word();
    theirs.capacity.credit(kOnePage);
    line.say();
    line.hear();
  });
  other.hear_word();
  EXPECT_EQ(own_.used(), kHugePage);
  EXPECT_FALSE(charge_all());
  EXPECT_TRUE(own_.capacity.charge({0, kHuge, TestServer::kHugeMemory - kHugePage}));
  EXPECT_FALSE(own_.capacity.charge(kOnePage));
  other.say();
  other.hear_word();
  EXPECT_TRUE(own_.capacity.charge(kOnePage));
}

TEST_F(CapacityOfProcesses, NeverGetMoreThanThereIs) {
  void* const memory = mmap(nullptr, sizeof(std::atomic<uint64_t>), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const held = new (memory) std::atomic<uint64_t>(0);
  const auto grab = [held](Capacity& capacity) {
    for (int round = 0; round < 300; ++round) {
      uint64_t mine = 0;
      for (uint64_t i = 0; i < kPages * 3 / 4; ++i) {
        if (!capacity.charge(kOnePage)) continue;
        ++mine;
        ASSERT_LE(held->fetch_add(1) + 1, kPages);
      }
      held->fetch_sub(mine);
      capacity.credit({0, kHuge, mine * kHugePage});
    }
  };
  OtherProcess other([&](const Line& line) {
    ShareRig theirs(server_);
    line.say();
    line.hear_word();
    grab(theirs.capacity);
  });
  other.hear_word();
  other.say();
  grab(own_.capacity);
  EXPECT_TRUE(other.ended_well());
  EXPECT_EQ(own_.used(), 0u);
  munmap(memory, sizeof(std::atomic<uint64_t>));
}

TEST_F(CapacityOfProcesses, TogetherGetExactlyWhatThereIs) {
  const auto take_all = [](Capacity& capacity) {
    uint64_t granted = 0;
    while (capacity.charge(kOnePage)) ++granted;
    return granted;
  };
  OtherProcess other([&](const Line& line) {
    ShareRig theirs(server_);
    line.say();
    line.hear_word();
    line.say(take_all(theirs.capacity));
    line.hear();
  });
  other.hear_word();
  other.say();
  const uint64_t granted = take_all(own_.capacity);
  EXPECT_EQ(granted + other.hear_word(), kPages);
  EXPECT_EQ(own_.used(), TestServer::kHugeMemory);
}

TEST_F(CapacityOfProcesses, MemoryOfTheDeadIsThereForWhoNeedsIt) {
  server_.with_process_that_dies(
      [](Server& joined) { EXPECT_TRUE(joined.capacity().charge(kAll)); });
  EXPECT_TRUE(charge_all());
  EXPECT_EQ(own_.used(), TestServer::kHugeMemory);
}

TEST_F(CapacityOfProcesses, MemoryThatTheDeadSharedIsThereForWhoNeedsIt) {
  server_.with_process_that_dies([](Server& joined) {
    EXPECT_TRUE(joined.capacity().charge(kAll));
    ShareDescription wanted = ShareRig::description();
    wanted.charged = TestServer::kHugeMemory;
    EXPECT_TRUE(is_ok(joined.shares().add(wanted)));
  });
  EXPECT_TRUE(charge_all());
}

// A process that was killed while its charge was pending.
TEST_F(CapacityOfProcesses, PendingChargesOfTheDeadAreThereForWhoNeedsIt) {
  server_.with_process_that_dies([&](Server& joined) {
    LedgerImage(server_).pending(joined.slots().own_slot()).store(kAllPages);
  });
  EXPECT_TRUE(charge_all());
}

TEST_F(CapacityOfProcesses, WhatTheDeadHeldBackIsThereForWhoNeedsIt) {
  server_.with_process_that_dies_locked(
      [&](Server&) { LedgerImage(server_).held_back().store(kAllPages); });
  EXPECT_TRUE(charge_all());
  EXPECT_EQ(image_.held_back().load(), 0u);
}

TEST_F(CapacityOfProcesses, WhatALivingOneHoldsBackNoOtherTakes) {
  OtherProcess other([&](const Line& line) {
    ShareRig theirs(server_);
    {
      const LedgerLock lock(theirs.slots.mutex(), kNever);
      const LedgerImage image(server_);
      std::atomic<uint64_t>& held = image.held_back();
      held.store(kAllPages);
      line.say();
      line.hear_word();
      // As a charge does that got what it waited for.
      image.pages(theirs.slots.own_slot()).store(kAllPages);
      held.store(0);
    }
    line.hear();
  });
  other.hear_word();
  other.say();
  EXPECT_FALSE(own_.capacity.charge(kOnePage));
}

TEST_F(CapacityOfProcesses, ChargesThatAreTakenBackKeepNoOneFromTheirs) {
  OtherProcess other([&](const Line& line) {
    ShareRig theirs(server_);
    line.say();
    while (true) EXPECT_FALSE(theirs.capacity.charge(kTooMuch));
  });
  other.hear_word();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(own_.capacity.charge(kOnePage)) << i;
    own_.capacity.credit(kOnePage);
  }
  other.kill();
  EXPECT_EQ(own_.used(), 0u);
}

// Wherever it was stopped: with a pending charge too.
TEST_F(CapacityOfProcesses, StoppedProcessKeepsNoOneFromTheirs) {
  OtherProcess other([&](const Line& line) {
    ShareRig theirs(server_);
    line.say();
    while (true) EXPECT_FALSE(theirs.capacity.charge(kTooMuch));
  });
  other.hear_word();
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(kill(other.id(), SIGSTOP), 0);
    int status = 0;
    ASSERT_EQ(waitpid(other.id(), &status, WUNTRACED), other.id());
    ASSERT_TRUE(WIFSTOPPED(status));
    ASSERT_TRUE(charge_all()) << i;
    ASSERT_EQ(own_.used(), TestServer::kHugeMemory) << i;
    own_.capacity.credit(kAll);
    ASSERT_EQ(own_.used(), 0u) << i;
    ASSERT_EQ(kill(other.id(), SIGCONT), 0);
  }
  other.kill();
  EXPECT_EQ(own_.used(), 0u);
}

// ---- Leases: pages that a process was granted and does not use ----

// The body of a process that has a lease of what it gave back, and lives until it is told or
// killed. It charges a page more for each word before.
auto lease_holder(const TestServer& server) {
  return [&server](const Line& line) {
    ShareRig theirs(server);
    EXPECT_TRUE(theirs.capacity.charge(kOnePage));
    theirs.capacity.credit(kOnePage);
    line.say();
    while (line.hear()) line.say(theirs.capacity.charge(kOnePage) ? 1 : 0);
  };
}

TEST_F(CapacityOfProcesses, LeaseIsFreeToAllAndGoesToWhoNeedsIt) {
  OtherProcess holder(lease_holder(server_));
  holder.hear_word();
  EXPECT_GT(PoolWord(image_.pages(1).load()).leased(), 0u);
  EXPECT_EQ(own_.used(), 0u);
  EXPECT_TRUE(charge_all());
  EXPECT_EQ(own_.used(), TestServer::kHugeMemory);
  EXPECT_EQ(image_.pages(1).load(), 0u);
  holder.say();
  EXPECT_EQ(holder.hear_word(), 0u);
  own_.capacity.credit(kAll);
  holder.say();
  EXPECT_EQ(holder.hear_word(), 1u);
  EXPECT_EQ(own_.used(), kHugePage);
}

TEST_F(CapacityOfProcesses, LeaseOfAStoppedProcessGoesToWhoNeedsIt) {
  OtherProcess holder(lease_holder(server_));
  holder.hear_word();
  ASSERT_EQ(kill(holder.id(), SIGSTOP), 0);
  holder.wait_until_stopped();
  EXPECT_TRUE(charge_all());
  EXPECT_EQ(own_.used(), TestServer::kHugeMemory);
  holder.go_on();
  holder.say();
  EXPECT_EQ(holder.hear_word(), 0u) << "what it had is another one's now";
  EXPECT_EQ(own_.used(), TestServer::kHugeMemory);
}

TEST_F(CapacityOfProcesses, LeaseOfTheDeadIsThereForWhoNeedsIt) {
  OtherProcess holder(lease_holder(server_));
  holder.hear_word();
  holder.kill();
  EXPECT_EQ(own_.used(), 0u);
  EXPECT_TRUE(charge_all());
}

// Each of them holds what it can of one device; the last one needs all of it.
TEST_F(CapacityOfProcesses, LeasesOfManyAreNoShortage) {
  constexpr unsigned kHolders = 256;
  std::deque<OtherProcess> holders;
  while (holders.size() < kHolders) {
    holders.emplace_back(lease_holder(server_));
    holders.back().hear_word();
  }
  EXPECT_EQ(own_.slots.count(), kHolders + 1);
  EXPECT_EQ(own_.used(), 0u);
  EXPECT_TRUE(charge_all());
  EXPECT_EQ(own_.used(), TestServer::kHugeMemory);
  own_.capacity.credit(kAll);
  // As many as there is room for, and their ends are noticed at once.
  for (uint64_t i = 0; i < kPages; ++i) holders[i].say();
  for (uint64_t i = 0; i < kPages; ++i) EXPECT_EQ(holders[i].hear_word(), 1u) << i;
  EXPECT_EQ(own_.used(), TestServer::kHugeMemory);
  for (uint64_t i = 0; i < kPages; ++i) {
    holders[i].kill();
    EXPECT_EQ(own_.used(), TestServer::kHugeMemory - (i + 1) * kHugePage);
  }
}

TEST_F(CapacityOfProcesses, DevicesHaveTheNumbersOfTheServer) {
  OtherProcess other([&](const Line& line) {
    const std::unique_ptr<Server> joined = value_of(server_.try_join(TestServer::shape(), {1}));
    Capacity& capacity = joined->capacity();
    EXPECT_EQ(capacity.number_of(0), 1u);
    EXPECT_EQ(capacity.device_of(1), 0u);
    EXPECT_FALSE(capacity.device_of(0));
    EXPECT_TRUE(capacity.charge(kOnePage));
    line.say();
    line.hear();
  });
  other.hear_word();
  EXPECT_EQ(own_.capacity.figures(0, kHuge).free, TestServer::kHugeMemory);
  EXPECT_EQ(own_.capacity.figures(1, kHuge).free, TestServer::kHugeMemory - kHugePage);
}

TEST_F(CapacityOfProcesses, SharedMemoryIsStillThatOfItsModule) {
  const Charge charge{0, kHuge, kShareBytes, 7};
  ASSERT_TRUE(own_.capacity.charge(charge));
  const ShareToken token = value_of(own_.shares.add(ShareRig::description()));
  own_.capacity.note_shared(charge);
  ASSERT_TRUE(own_.capacity.charge(kOnePage));
  const std::vector<ModuleUsage> usage = own_.capacity.usage(0);
  ASSERT_EQ(usage.size(), 2u);
  EXPECT_EQ(usage[0].current, kShareBytes);
  EXPECT_EQ(usage[1].current, kHugePage);
  EXPECT_EQ(own_.drop(token), AfterDrop::kOwnAgain);
  own_.capacity.note_share_ended(charge);
  EXPECT_EQ(own_.capacity.usage(0)[0].current, 0u);
  EXPECT_EQ(own_.capacity.usage(0)[1].current, kHugePage);
}

}  // namespace
}  // namespace understudy
