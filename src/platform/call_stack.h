// SPDX-License-Identifier: Apache-2.0
//
// Where the program is: the return addresses of the calling thread outside of this library, from
// the place of the public call outwards.
//
// To unwind a stack takes microseconds. So a thread remembers the stacks that it captured, and
// where in its memory each return address stood. A call at the same depth that finds the same
// addresses in the same places has the same stack, which takes nanoseconds to see.
//
// An interpreter's own stack says nothing of its program. Its module names the place instead.
//
// Stacks are kept for the life of the process, each once. Nothing takes a lock, so a fork child
// goes on with those of its parent. Any thread may call anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace understudy::platform {

class CallStack {
 public:
  static constexpr size_t kMostFrames = 32;

  // Return addresses: an instruction behind each call. None if the place was named.
  std::span<const uintptr_t> frames() const { return {frames_, count_}; }
  // Lines, "kv.py:41 fill", the innermost first. Empty if the place was not named.
  std::string_view named() const { return named_; }

 private:
  friend class StackDepot;
  CallStack() = default;

  const CallStack* next_ = nullptr;  // of the same bucket
  std::string named_;
  uint32_t count_ = 0;
  uintptr_t frames_[kMostFrames];
};

// Null if there is no memory to keep it. Equal stacks are one object.
const CallStack* capture_stack() noexcept;

// The same for a thread that a signal has interrupted at an instruction: from there outwards. For a
// handler of that signal.
const CallStack* capture_interrupted_stack(uintptr_t instruction) noexcept;

// Names the place that the calling thread is at, until it names another; empty: where its stack
// says. May throw std::bad_alloc.
void name_place(std::string_view place);

}  // namespace understudy::platform
