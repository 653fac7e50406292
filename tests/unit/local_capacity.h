// SPDX-License-Identifier: Apache-2.0
//
// The capacity of devices that no other process has.
#pragma once

#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "device/capacity.h"

namespace understudy {

class LocalLedger {
 public:
  Ledger& ledger() { return *ledger_; }

 protected:
  LocalLedger(unsigned devices, uint64_t normal, uint64_t huge) {
    ServerShape shape;
    shape.devices = devices;
    shape.memory = normal + huge;
    shape.normal_memory = normal;
    ledger_ = std::move(Ledger::make_private(shape).value());
  }

  std::unique_ptr<Ledger> ledger_;
};

class LocalCapacity : public LocalLedger, public Capacity {
 public:
  // `normal` and `huge` are the sizes of the pools of each device.
  LocalCapacity(unsigned devices, uint64_t normal, uint64_t huge)
      : LocalLedger(devices, normal, huge), Capacity(ledger(), numbers(devices)) {}

 private:
  static std::vector<int32_t> numbers(unsigned devices) {
    std::vector<int32_t> all(devices);
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
};

}  // namespace understudy
