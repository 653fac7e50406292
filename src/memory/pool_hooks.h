// SPDX-License-Identifier: Apache-2.0
//
// What memory tells the pools, which are above it because frees run in the order of streams.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "base/virtual_range.h"

namespace understudy {

class PoolHooks {
 public:
  // Frees the allocation that starts at an address of the pool with that number, whatever is queued
  // on streams. Refuses other addresses of the pool.
  virtual Result<void> free_at_once(uint32_t pool, VirtualAddress address) = 0;
  // Ends all pools of a device. Allocates nothing.
  // REQUIRES: its streams have ended.
  virtual void end_device(unsigned device) noexcept = 0;

 protected:
  ~PoolHooks() = default;
};

}  // namespace understudy
