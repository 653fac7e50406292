// SPDX-License-Identifier: Apache-2.0
//
// The check `advice`: what a program may do, but at a price, or only because it runs here. Each is
// told with what to do instead. Callers ask is_advised first. Any thread may call anything, without
// a lock of the library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "observe/check.h"
#include "observe/object_life.h"

namespace understudy {

inline bool is_advised() { return is_checked(Check::kAdvice); }

// The sentence is about a place of the program. `topic` is constant.
void advise(std::string_view topic, const ProgramPlace& place, std::string sentence) noexcept;

// A call on a stream copies so many bytes at once, since memory of the host is not page-locked.
[[gnu::cold]] void advise_pageable(uint64_t bytes) noexcept;
// The calling function works because the configuration has a feature that `lacking` does not have.
[[gnu::cold]] void advise_switched_on(std::string_view feature, std::string_view lacking) noexcept;
// `function` failed, because the product or the driver does not have what it asks for. Nothing if
// the error is another one.
[[gnu::cold]] void advise_unsupported(const char* function, const Error& error) noexcept;

}  // namespace understudy
