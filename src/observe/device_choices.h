// SPDX-License-Identifier: Apache-2.0
//
// Which devices the program has set, and which thread has which context since when, for advice: a
// call may fail because another thread than its own has a context, and objects may be of a device
// that the process never set. A fork child begins with none. Callers ask is_advised first. Any
// thread may call anything, without a lock of the library.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "base/error.h"
#include "observe/object_life.h"

namespace understudy {

class DeviceChoices {
 public:
  DeviceChoices() = delete;

  // The process has set a device.
  static void note_set(unsigned device) noexcept;
  // The calling thread has a context of a device from now on.
  [[gnu::cold]] static void note_context(uint64_t context, unsigned device) noexcept;
  // An object begins. Tells if the process has not set its device.
  static void look_at(const ObjectLife& life) noexcept;
  // A call fails because the calling thread has no context. Tells which other thread has one;
  // nothing if none has.
  [[gnu::cold]] static void tell_missing_context(
      const Error& error, const std::function<bool(uint64_t context)>& is_alive) noexcept;

 private:
  struct State;

  // May throw std::bad_alloc.
  static State* state();
  static void forget_in_fork_child();

  static std::atomic<uint64_t> set_devices_;  // bit per device
  static std::atomic<State*> state_;
  static const bool registered_;
};

}  // namespace understudy
