// SPDX-License-Identifier: Apache-2.0
//
// Moves bytes with the method that is fastest at their size on this machine: the C library's copy,
// stores that bypass the caches, or the processor's own string move. Which one that is differs
// between machines by a factor of two, so the engine measures the copies that it makes: a large
// copy is moved in steps, the first ones try each method, the rest use the best, and at intervals
// another method is tried again. Whether help of other threads pays is measured in the same manner.
// Any thread may call anything.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "memory/byte_kernels.h"
#include "memory/copy_method_selector.h"
#include "memory/helper_pool.h"

namespace understudy {

class CopyEngine {
 public:
  // From this size on it pays to choose a method.
  static constexpr size_t kManyBytes = 64 * 1024;
  // From this size on it may pay to have help.
  static constexpr size_t kWorthHelp = 16 * 1024 * 1024;

  // The ranges may overlap. Complete, also for other threads, on return.
  void copy(void* destination, const void* source, size_t count) {
    if (count >= kManyBytes && may_choose(destination, source, count)) [[unlikely]] {
      copy_many(destination, source, count);
    } else {
      copy_bytes(destination, source, count);
    }
  }
  // The same for any number of bytes in ranges that do not overlap, with a chosen method.
  void copy_many(void* destination, const void* source, size_t count);

  // Which threads are asked for help; null for none. The pool must outlive all copies.
  void set_helper_pool(HelperPool* pool) { helper_pool_.store(pool, std::memory_order_release); }

 private:
  static bool may_choose(const void* destination, const void* source, size_t count);

  static constexpr unsigned kMethods = 3;
  // By the power of two of the size of the whole copy, which decides what is in the caches.
  static constexpr unsigned kPowers = 24;
  static unsigned power_index(size_t count);
  using MethodSelector = CopyMethodSelector<kMethods>;
  friend class SteppedCopy;

  std::array<MethodSelector, kPowers> alone_{};     // one thread moves all bytes
  std::array<MethodSelector, kPowers> together_{};  // what each of several threads finds
  // Whether help pays: with too few bytes, or no idle processor, it does not.
  enum Company : unsigned { kAlone, kTogether, kCompanies };
  std::array<CopyMethodSelector<kCompanies>, kPowers> companies_{};
  std::atomic<HelperPool*> helper_pool_{nullptr};
};

}  // namespace understudy
