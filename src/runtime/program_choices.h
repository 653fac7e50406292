// SPDX-License-Identifier: Apache-2.0
//
// What the program told the process to remember, and no device, context or stream owns: options
// and callbacks. A fork child starts without any of it. Any thread may use anything.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "runtime/context.h"
#include "runtime/failure_callbacks.h"
#include "runtime/named_callbacks.h"

namespace understudy {

struct ProgramChoices {
  // Options of the process; never set reads as 0 (CTX-12).
  std::array<std::atomic<int64_t>, kSystemOptions> options{};
  NamedCallbacks<AnyFunction> device_callbacks;
  NamedCallbacks<AnyFunction> stream_callbacks;
  NamedCallbacks<AnyFunction> abort_callbacks;
  FailureCallbacks failure_callbacks;
};

}  // namespace understudy
