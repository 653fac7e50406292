// SPDX-License-Identifier: Apache-2.0
#include "base/thread_shard.h"

#include <atomic>

namespace understudy {

namespace {

std::atomic<unsigned> next_number{0};
constexpr unsigned kUnassigned = ~0U;
// The initial-exec model makes this one instruction, also in a library opened at run time.
thread_local unsigned number [[gnu::tls_model("initial-exec")]] = kUnassigned;

}  // namespace

unsigned thread_number() {
  if (number == kUnassigned) number = next_number.fetch_add(1, std::memory_order_relaxed);
  return number;
}

}  // namespace understudy
