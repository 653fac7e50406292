// SPDX-License-Identifier: Apache-2.0
//
// Stores that another process has: what it sees of them, and whose budget pays for what.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>

#include "memory/store.h"
#include "unit/expect_result.h"
#include "unit/platform/mapped_bytes.h"
#include "unit/platform/planned_fault.h"
#include "unit/test_server.h"

namespace understudy {
namespace {

using platform::bytes_behind;
using platform::cpu_can_read;
using platform::FileKind;
using platform::MemoryFile;
using platform::PlannedFault;
using platform::SystemCall;

constexpr uint64_t kGranules = 16;
constexpr uint64_t kSize = kGranules * kGranule;

class StoreAttach : public testing::Test {
 protected:
  static StoreOptions options(const Ledger& ledger, Poison poison = Poison::kOff) {
    StoreOptions wanted;
    wanted.name = "unit-test";
    wanted.collapse = false;
    wanted.poison = poison;
    wanted.ledger = &ledger;
    return wanted;
  }
  std::unique_ptr<Store> make(Poison poison = Poison::kOff) {
    return value_of(Store::create(options(*ledger_, poison), kSize, budget_));
  }
  static MemoryFile copy_of(const MemoryFile& file) {
    return MemoryFile::adopt(platform::UniqueFd(dup(file.descriptor())), file.kind(), file.size());
  }
  // In the same process, which is all that visibility needs.
  Result<std::unique_ptr<Store>> try_attach(const Store& store) {
    return Store::attach(options(*ledger_), copy_of(store.file()), copy_of(store.states_file()),
                         other_budget_);
  }
  // What another process may do with a store: attaches, does its part, says so, and goes when told.
  template <typename Body>
  auto attached(const Store& store, Body body, Poison poison = Poison::kOff) {
    const auto file = store.file().identity();
    const auto states = store.states_file().identity();
    return [this, &store, file, states, body, poison](const Line& line) {
      const auto open = [](const MemoryFile& theirs, const platform::FileIdentity& identity) {
        return value_of(MemoryFile::open_of_process(getppid(), theirs.descriptor(), identity,
                                                    theirs.kind(), theirs.size()));
      };
      const std::unique_ptr<Ledger> ledger = server_.join();
      const std::unique_ptr<Store> own =
          value_of(Store::attach(options(*ledger, poison), open(store.file(), file),
                                 open(store.states_file(), states), other_budget_));
      body(*own, line);
      line.say();
      line.hear();
    };
  }
  static uint8_t* bytes(const Store& store, uint64_t offset) {
    return static_cast<uint8_t*>(to_pointer(store.alias(offset)));
  }

  TestServer server_;
  std::unique_ptr<Ledger> ledger_ = server_.join();
  HostBudget budget_{HostBudget::Kind::kFixed, kSize};
  HostBudget other_budget_{HostBudget::Kind::kFixed, kSize};
};

TEST_F(StoreAttach, NothingIsSeenUntilItIsShown) {
  const auto store = make();
  ASSERT_TRUE(is_ok(store->warm(0, kSize)));
  bytes(*store, 2 * kGranule)[5] = 0x55;
  const auto attached = value_of(try_attach(*store));
  EXPECT_EQ(attached->size(), kSize);
  EXPECT_EQ(attached->kind(), store->kind());
  EXPECT_TRUE(is_aligned(attached->alias(0), kHugePage));
  EXPECT_FALSE(cpu_can_read(attached->alias(2 * kGranule)));
  ASSERT_TRUE(is_ok(attached->show(2 * kGranule, 2 * kGranule)));
  EXPECT_EQ(bytes(*attached, 2 * kGranule)[5], 0x55);
  bytes(*attached, 3 * kGranule)[6] = 0x66;
  EXPECT_EQ(bytes(*store, 3 * kGranule)[6], 0x66);
  EXPECT_FALSE(cpu_can_read(attached->alias(2 * kGranule - 1)));
  EXPECT_FALSE(cpu_can_read(attached->alias(4 * kGranule)));
  attached->hide(2 * kGranule, 2 * kGranule);
  EXPECT_FALSE(cpu_can_read(attached->alias(2 * kGranule)));
  EXPECT_FALSE(cpu_can_read(attached->alias(3 * kGranule)));
  EXPECT_EQ(bytes(*store, 2 * kGranule)[5], 0x55);
}

TEST_F(StoreAttach, EndOfItLeavesNoWindow) {
  const auto store = make();
  VirtualAddress alias = 0;
  {
    const auto attached = value_of(try_attach(*store));
    alias = attached->alias(0);
    ASSERT_TRUE(is_ok(attached->show(0, kSize)));
    ASSERT_TRUE(is_ok(attached->warm(0, kGranule)));
    EXPECT_TRUE(cpu_can_read(alias));
  }
  EXPECT_FALSE(cpu_can_read(alias));
  EXPECT_EQ(other_budget_.taken(), 0u);
}

TEST_F(StoreAttach, FaultsOfTheHostAreErrors) {
  const auto store = make();
  for (const SystemCall call : {SystemCall::kMapFile, SystemCall::kReserveAddresses}) {
    const PlannedFault fault(call, 1, ENOMEM);
    EXPECT_FALSE(try_attach(*store).ok());
    EXPECT_TRUE(fault.happened());
  }
  const auto attached = value_of(try_attach(*store));
  {
    const PlannedFault fault(SystemCall::kMapFile, 1, ENOMEM);
    EXPECT_FALSE(attached->show(0, kGranule).ok());
    EXPECT_TRUE(fault.happened());
  }
  EXPECT_FALSE(cpu_can_read(attached->alias(0)));
  EXPECT_TRUE(is_ok(attached->show(0, kGranule)));
}

TEST_F(StoreAttach, WhoWarmsAGranulePaysForIt) {
  const auto store = make();
  ASSERT_TRUE(is_ok(store->warm(0, kGranule)));
  OtherProcess other(attached(*store, [this](Store& theirs, const Line&) {
    EXPECT_TRUE(theirs.is_warm_at(0));
    EXPECT_TRUE(is_ok(theirs.show(0, 4 * kGranule)));
    EXPECT_TRUE(is_ok(theirs.warm(0, 3 * kGranule)));
    EXPECT_EQ(theirs.backing().total(), 2 * kGranule);
    EXPECT_EQ(other_budget_.taken(), 2 * kGranule);
    bytes(theirs, 2 * kGranule)[1] = 0x11;
  }));
  other.hear_word();
  EXPECT_TRUE(store->is_all_warm(0, 3 * kGranule));
  EXPECT_EQ(store->backing().total(), kGranule);
  EXPECT_EQ(budget_.taken(), kGranule);
  EXPECT_EQ(bytes_behind(store->file()), 3 * kGranule);
  EXPECT_EQ(bytes(*store, 2 * kGranule)[1], 0x11);
  // Warm as it is, it costs nothing.
  EXPECT_TRUE(is_ok(store->warm(0, 3 * kGranule)));
  EXPECT_EQ(budget_.taken(), kGranule);
  // Nor is anything given back that others have paid.
  store->chill(0, 3 * kGranule);
  EXPECT_EQ(budget_.taken(), 0u);
  EXPECT_EQ(store->backing().total(), 0u);
  EXPECT_EQ(bytes_behind(store->file()), 0u);
}

TEST_F(StoreAttach, HiddenMemoryIsNoLongerPaidForAndKeepsItsBytes) {
  const auto store = make();
  OtherProcess other(attached(*store, [this](Store& theirs, const Line&) {
    EXPECT_TRUE(is_ok(theirs.show(0, 4 * kGranule)));
    EXPECT_TRUE(is_ok(theirs.warm(0, 4 * kGranule)));
    bytes(theirs, kGranule)[1] = 0x11;
    theirs.hide(0, 2 * kGranule);
    EXPECT_EQ(other_budget_.taken(), 2 * kGranule);
    EXPECT_EQ(theirs.backing().total(), 2 * kGranule);
    theirs.hide(0, 2 * kGranule);
    EXPECT_EQ(other_budget_.taken(), 2 * kGranule);
  }));
  other.hear_word();
  EXPECT_TRUE(store->is_all_warm(0, 4 * kGranule));
  EXPECT_EQ(bytes(*store, kGranule)[1], 0x11);
  EXPECT_EQ(budget_.taken(), 0u);
  other.kill();
  store->chill(0, 4 * kGranule);
  EXPECT_EQ(budget_.taken(), 0u);
  EXPECT_EQ(bytes_behind(store->file()), 0u);
}

TEST_F(StoreAttach, ProcessThatDiedAtWarmingIsNotWaitedFor) {
  const auto store = make(Poison::kOn);
  OtherProcess other([&, identity = store->states_file().identity()](const Line&) {
    const std::unique_ptr<Ledger> ledger = server_.join();
    const MemoryFile& theirs = store->states_file();
    GranuleStates states = value_of(GranuleStates::attach(
        value_of(MemoryFile::open_of_process(getppid(), theirs.descriptor(), identity,
                                             theirs.kind(), theirs.size())),
        kGranules, ledger.get()));
    for (const uint64_t granule : {0U, 1U, 3U}) EXPECT_TRUE(states.claim(granule));
    OtherProcess::end_child();
  });
  EXPECT_TRUE(other.ended_well());
  EXPECT_EQ(store->state_at(0), GranuleState::kWarming);
  EXPECT_EQ(store->warm_bytes_in(0, kSize), 0u);
  ASSERT_TRUE(is_ok(store->warm(0, 4 * kGranule)));
  EXPECT_EQ(budget_.taken(), 4 * kGranule);
  for (const uint64_t granule : {0U, 1U, 2U, 3U}) {
    EXPECT_EQ(bytes(*store, granule * kGranule)[kGranule - 1], Store::kPoisonByte) << granule;
  }
}

TEST_F(StoreAttach, MemoryThatTheOtherProcessWarmsIsFreshAsOurs) {
  const auto store = make(Poison::kOn);
  OtherProcess other(attached(
      *store,
      [](Store& theirs, const Line&) {
        EXPECT_EQ(theirs.fresh_byte(), Store::kPoisonByte);
        EXPECT_TRUE(is_ok(theirs.show(kGranule, kGranule)));
        EXPECT_TRUE(is_ok(theirs.warm(kGranule, kGranule)));
      },
      Poison::kOn));
  other.hear_word();
  EXPECT_EQ(bytes(*store, kGranule)[0], Store::kPoisonByte);
  EXPECT_EQ(bytes(*store, kGranule)[kGranule - 1], Store::kPoisonByte);
}

TEST_F(StoreAttach, ProcessesThatWarmTheSameGranulesPayOnce) {
  const auto store = make();
  OtherProcess other(attached(*store, [this](Store& theirs, const Line& line) {
    EXPECT_TRUE(is_ok(theirs.show(0, kSize)));
    line.say();
    line.hear_word();
    for (uint64_t granule = kGranules; granule-- > 0;) {
      EXPECT_TRUE(is_ok(theirs.warm(granule * kGranule, kGranule)));
    }
    line.say(other_budget_.taken());
  }));
  other.hear_word();
  other.say();
  EXPECT_TRUE(is_ok(store->warm(0, kSize)));
  EXPECT_EQ(other.hear_word() + budget_.taken(), kSize);
  EXPECT_EQ(bytes_behind(store->file()), kSize);
}

}  // namespace
}  // namespace understudy
