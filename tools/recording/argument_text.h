// SPDX-License-Identifier: Apache-2.0
//
// Arguments of recorded calls, by their names and for people: "4096", "0x180000000000", "device 0".
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tools/recording/recording.h"

namespace understudy::command {

// Appends an argument of a call. `words` are those it has, maybe fewer than `parameter` says. What
// a failed call would have written is the address to write to.
void append_argument(std::string& out, const Recording& recording, const Parameter& parameter,
                     std::span<const uint64_t> words, bool has_failed);

// Takes the words of the next parameter off the front: all there are, if they are too few.
std::span<const uint64_t> take_argument(std::span<const uint64_t>& words,
                                        const Parameter& parameter);
// The words of an argument; empty if the call has none of that name.
std::span<const uint64_t> argument_named(const Recording& recording, const RecordedCall& call,
                                         std::string_view name);

}  // namespace understudy::command
