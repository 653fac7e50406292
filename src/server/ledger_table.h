// SPDX-License-Identifier: Apache-2.0
//
// What a part of the ledger does about processes that died. The parts register with ProcessSlots,
// which knows none of them by name.
#pragma once

#include "server/ledger_mutex.h"

namespace understudy {

class LedgerTable {
 public:
  // The process of a slot has ended: gives up what it had. May be called again for the same slot if
  // the caller died in the middle.
  virtual void drop_holds(unsigned slot) US_REQUIRES(ledger_held) = 0;
  // The lock was taken from a process that died with it: computes anew what follows from the
  // entries. Counts of holds and returns in the slots are zero when this is called.
  virtual void repair() US_REQUIRES(ledger_held) = 0;

 protected:
  ~LedgerTable() = default;
};

}  // namespace understudy
