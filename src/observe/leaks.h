// SPDX-License-Identifier: Apache-2.0
//
// Objects that the program still has when what they belong to ends, told by the places where it
// made them. Each object is told once. Where leaks are not checked, these do nothing.
#pragma once

#include <array>
#include <cstdint>

#include "observe/object_life.h"

namespace understudy {

// What the reset of a device ends.
inline constexpr std::array<ObjectKind, 5> kEndedByReset = {
    ObjectKind::kAllocation, ObjectKind::kPool, ObjectKind::kStream, ObjectKind::kEvent,
    ObjectKind::kNotify};

// Before a reset ends them.
void tell_leaks_on(int32_t device) noexcept;
// All that are left.
void tell_leaks_at_exit() noexcept;

}  // namespace understudy
