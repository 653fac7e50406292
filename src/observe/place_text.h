// SPDX-License-Identifier: Apache-2.0
//
// Words that the sentences of findings have in common: calls, their places, ranges of addresses.
// Any thread may call anything; may throw std::bad_alloc.
#pragma once

#include <string>

#include "base/virtual_range.h"
#include "observe/object_life.h"

namespace understudy {

// "aclrtMemcpy at kv.c:20"
std::string call_at(const ProgramPlace& place);
// " by aclrtMemcpy"; nothing if the call is not known.
std::string by_call(const ProgramPlace& place);
// "0x180000000000"
std::string hex(VirtualAddress address);
// "4 KiB at 0x180000000000"
std::string text_of(VirtualRange range);

}  // namespace understudy
