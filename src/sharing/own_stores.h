// SPDX-License-Identifier: Apache-2.0
//
// The stores of this process that others may need, by number. A store is published in the process's
// slot of the ledger when something of it is exported for the first time; those past the room there
// are known to the attendant alone. Any thread may call anything.
#pragma once

#include <cstdint>
#include <vector>

#include "base/mutex.h"
#include "device/ledger.h"
#include "memory/store.h"

namespace understudy {

class OwnStores {
 public:
  explicit OwnStores(Ledger& ledger) : ledger_(ledger) {}

  // The number of a store, which it keeps.
  uint16_t number_of(Store& store);
  // Null if there is none of that number.
  Store* at(uint16_t number) const;
  static StoreRecord describe(const Store& store);

 private:
  Ledger& ledger_;
  mutable Mutex mutex_{LockRank::kOwnStores};
  std::vector<Store*> stores_ US_GUARDED_BY(mutex_);
};

}  // namespace understudy
