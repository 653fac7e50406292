// SPDX-License-Identifier: Apache-2.0
#include "sharing/own_stores.h"

#include <algorithm>

namespace understudy {

StoreRecord OwnStores::describe(const Store& store) {
  const platform::FileIdentity identity = store.file().identity();
  return {.size = store.size(),
          .file_system = identity.file_system,
          .inode = identity.inode,
          .states_file_system = store.states_file().identity().file_system,
          .states_inode = store.states_file().identity().inode,
          .descriptor = store.file().descriptor(),
          .states_descriptor = store.states_file().descriptor(),
          .file_kind = static_cast<uint8_t>(store.kind()),
          .fresh_byte = store.fresh_byte()};
}

uint16_t OwnStores::number_of(Store& store) {
  MutexLock lock(mutex_);
  const auto found = std::find(stores_.begin(), stores_.end(), &store);
  const auto number = static_cast<uint16_t>(found - stores_.begin());
  if (found != stores_.end()) return number;
  stores_.push_back(&store);
  if (number < ProcessSlot::kStores) {
    ledger_.own().store[number] = describe(store);
    ledger_.own().stores.store(number + 1U);
  }
  return number;
}

Store* OwnStores::at(uint16_t number) const {
  MutexLock lock(mutex_);
  return number < stores_.size() ? stores_[number] : nullptr;
}

}  // namespace understudy
