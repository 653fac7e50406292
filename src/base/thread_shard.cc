// SPDX-License-Identifier: Apache-2.0
#include "base/thread_shard.h"

#include <atomic>

namespace understudy {

namespace {

std::atomic<unsigned> next_shard{0};
constexpr unsigned kUnassigned = ~0U;
// The initial-exec model makes this one instruction, also in a library opened at run time.
thread_local unsigned shard [[gnu::tls_model("initial-exec")]] = kUnassigned;

}  // namespace

unsigned thread_shard() {
  if (shard == kUnassigned) {
    shard = next_shard.fetch_add(1, std::memory_order_relaxed) % kShards;
  }
  return shard;
}

}  // namespace understudy
