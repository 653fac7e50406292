// SPDX-License-Identifier: Apache-2.0
#include "sharing/own_stores.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "unit/expect_result.h"
#include "unit/run_on_threads.h"
#include "unit/test_server.h"

namespace understudy {
namespace {

class OwnStoresTest : public testing::Test {
 protected:
  Store& make(Poison poison = Poison::kOff) {
    StoreOptions options;
    options.name = "unit-test";
    options.poison = poison;
    options.ledger = ledger_.get();
    made_.push_back(value_of(Store::create(options, 2 * kGranule, budget_)));
    return *made_.back();
  }

  HostBudget budget_{HostBudget::Kind::kFixed, kMiB};
  std::unique_ptr<Ledger> ledger_ = value_of(Ledger::make_private(TestServer::shape()));
  std::vector<std::unique_ptr<Store>> made_;
  OwnStores stores_{*ledger_};
};

TEST_F(OwnStoresTest, StoreKeepsItsNumber) {
  Store& first = make();
  Store& second = make();
  EXPECT_EQ(stores_.number_of(first), 0u);
  EXPECT_EQ(stores_.number_of(second), 1u);
  EXPECT_EQ(stores_.number_of(first), 0u);
  EXPECT_EQ(stores_.at(0), &first);
  EXPECT_EQ(stores_.at(1), &second);
  EXPECT_EQ(stores_.at(2), nullptr);
  EXPECT_EQ(stores_.at(UINT16_MAX), nullptr);
}

TEST_F(OwnStoresTest, IsPublishedWhenItGetsItsNumber) {
  Store& store = make(Poison::kOn);
  EXPECT_EQ(ledger_->own().stores.load(), 0u);
  stores_.number_of(store);
  ASSERT_EQ(ledger_->own().stores.load(), 1u);
  const StoreRecord& record = ledger_->own().store[0];
  EXPECT_EQ(record.size, store.size());
  EXPECT_EQ(record.descriptor, store.file().descriptor());
  EXPECT_EQ(record.states_descriptor, store.states_file().descriptor());
  EXPECT_EQ((platform::FileIdentity{record.file_system, record.inode}), store.file().identity());
  EXPECT_EQ((platform::FileIdentity{record.states_file_system, record.states_inode}),
            store.states_file().identity());
  EXPECT_EQ(record.file_kind, static_cast<uint8_t>(store.kind()));
  EXPECT_EQ(record.fresh_byte, Store::kPoisonByte);
}

TEST_F(OwnStoresTest, StoresPastTheRoomOfTheSlotAreKnownHere) {
  constexpr unsigned kMany = ProcessSlot::kStores + 3;
  for (unsigned i = 0; i < kMany; ++i) EXPECT_EQ(stores_.number_of(make()), i);
  EXPECT_EQ(ledger_->own().stores.load(), ProcessSlot::kStores);
  for (unsigned i = 0; i < kMany; ++i) {
    EXPECT_EQ(stores_.at(static_cast<uint16_t>(i)), made_[i].get());
  }
}

TEST_F(OwnStoresTest, ThreadsAgreeOnNumbers) {
  for (int i = 0; i < 8; ++i) make();
  run_on_threads(4, [&](int thread) {
    for (size_t i = 0; i < made_.size(); ++i) {
      Store& store = *made_[(i + static_cast<size_t>(thread)) % made_.size()];
      EXPECT_EQ(stores_.at(stores_.number_of(store)), &store);
    }
  });
  EXPECT_EQ(ledger_->own().stores.load(), 8u);
}

}  // namespace
}  // namespace understudy
