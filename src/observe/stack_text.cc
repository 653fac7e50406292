// SPDX-License-Identifier: Apache-2.0
#include "observe/stack_text.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "platform/call_site.h"

namespace understudy {

namespace {

// What begins a program or a thread, in the C library: nothing outside of it is the program's.
constexpr std::array<std::string_view, 5> kBeginnings = {
    "__libc_start_call_main", "__libc_start_main", "__libc_start_main_impl", "start_thread",
    "_start"};

// "kv.py:41 fill"
StackFrame named_frame(std::string_view line) {
  const size_t space = std::min(line.find(' '), line.size());
  const std::string_view function = line.substr(std::min(space + 1, line.size()));
  return {std::string(line.substr(0, space)), std::string(function)};
}

}  // namespace

std::vector<StackFrame> frames_of(const platform::CallStack* stack) {
  std::vector<StackFrame> frames;
  if (stack == nullptr) return frames;
  const std::string_view named = stack->named();
  for (size_t begin = 0; begin < named.size();) {
    const size_t end = std::min(named.find('\n', begin), named.size());
    frames.push_back(named_frame(named.substr(begin, end - begin)));
    begin = end + 1;
  }
  for (const uintptr_t address : stack->frames()) {
    platform::SourcePlace source = platform::find_source(address);
    if (std::ranges::find(kBeginnings, source.function) != kBeginnings.end()) break;
    const bool is_of_system =
        source.object.starts_with("libc.so") || source.object.starts_with("libstdc++.so");
    frames.push_back({std::move(source.place), std::move(source.function), is_of_system});
  }
  return frames;
}

std::string place_of(const platform::CallStack* stack) {
  const std::vector<StackFrame> frames = frames_of(stack);
  if (frames.empty()) return "an unknown place";
  // Libraries may be in between.
  const auto in_source = std::ranges::find_if(frames, [](const StackFrame& frame) {
    return !frame.is_of_system && frame.place.find(':') != std::string::npos;
  });
  return in_source != frames.end() ? in_source->place : frames.front().place;
}

}  // namespace understudy
