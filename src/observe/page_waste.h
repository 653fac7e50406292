// SPDX-License-Identifier: Apache-2.0
//
// Memory that allocations take beyond what the program asked for, because pages are whole: added up
// by the place that allocates, at the moment when it was most. Told as advice at the end of the
// process. A fork child begins with none. Any thread may call
// anything, also with locks.
#pragma once

#include <atomic>

#include "observe/object_life.h"

namespace understudy {

class PageWaste {
 public:
  PageWaste() = delete;

  // An object begins. Where it is counted from now on; null if it is not.
  static PlacePages* add(const ObjectLife& life) noexcept;
  // It has ended. REQUIRES: it was counted.
  static void remove(const ObjectLife& life) noexcept;
  // Places where a quarter of the memory was wasted, and not only little; each once.
  static void tell() noexcept;

 private:
  struct State;

  // May throw std::bad_alloc.
  static State* state();
  static void forget_in_fork_child();

  static std::atomic<State*> state_;
  static const bool registered_;
};

}  // namespace understudy
