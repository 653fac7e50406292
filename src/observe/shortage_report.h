// SPDX-License-Identifier: Apache-2.0
//
// What a process has when a call finds no memory: who holds how much, by the places that made it,
// and the last calls. Told on standard error where the check `history` is chosen; it is no finding,
// because programs may try and do with less.
#pragma once

#include "base/error.h"

namespace understudy {

// `function` failed for want of memory.
void tell_shortage(const char* function, const Error& error) noexcept;

}  // namespace understudy
