// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/refused_allocations.h"

#include <optional>
#include <span>

#include "tools/recording/argument_text.h"

namespace understudy::command {

namespace {

constexpr int32_t kOutOfMemory = 207001;
constexpr uint64_t kOnDevice = 1;  // as aclrtMemLocationType counts

// Where the properties of a physical block place it.
std::optional<int32_t> device_in_properties(const Recording& recording, const RecordedCall& call) {
  const std::span<const uint64_t> words = argument_named(recording, call, "prop");
  if (words.size() < 3 || words[1] >> 32 != kOnDevice || words[2] > INT32_MAX) return std::nullopt;
  return static_cast<int32_t>(words[2]);
}

bool is_of_host(const RecordedFunction& function) {
  return function.name.find("Host") != std::string::npos;
}

}  // namespace

std::vector<RefusedAllocation> refused_allocations(const Recording& recording) {
  std::vector<RefusedAllocation> refused;
  std::vector<int32_t> chosen(recording.threads.size());
  for (uint32_t index = 0; index < recording.calls.size(); ++index) {
    const RecordedCall& call = recording.calls[index];
    const RecordedFunction& function = recording.functions[call.function];
    if (call.code == 0 && function.name == "aclrtSetDevice" && call.arguments > 0 &&
        recording.arguments(call)[0] <= INT32_MAX) {
      chosen[call.thread] = static_cast<int32_t>(recording.arguments(call)[0]);
    }
    if (call.code != kOutOfMemory || is_of_host(function)) continue;
    const std::span<const uint64_t> size = argument_named(recording, call, "size");
    if (size.empty()) continue;
    refused.push_back(
        {index, device_in_properties(recording, call).value_or(chosen[call.thread]), size[0]});
  }
  return refused;
}

}  // namespace understudy::command
