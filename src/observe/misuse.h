// SPDX-License-Identifier: Apache-2.0
//
// Calls that failed because of an object that they named: one that has ended, or an address that is
// inside of one, or beside it. Told as findings of the check `history`, with the object's life.
#pragma once

#include "base/error.h"

namespace understudy {

// `function` failed with an error. Nothing if that is about no object that is known here.
void tell_misuse(const char* function, const Error& error) noexcept;

}  // namespace understudy
