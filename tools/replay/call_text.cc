// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/call_text.h"

#include <bit>
#include <cstdio>

#include "base/size_text.h"

namespace understudy::command {

namespace {

bool is_size(const std::string& name) {
  for (const char* const word : {"size", "count", "destMax", "maxCount", "memSize"}) {
    if (name == word) return true;
  }
  return false;
}

std::string value_text(const Recording& recording, const Parameter& parameter, uint64_t word) {
  char text[64];
  switch (parameter.type) {
    case 'i':
      return std::to_string(static_cast<int64_t>(word));
    case 'u':
      return is_size(parameter.name) ? RoughSizeText(word).c_str() : std::to_string(word);
    case 'f':
      snprintf(text, sizeof text, "%g", std::bit_cast<float>(static_cast<uint32_t>(word)));
      return text;
    case 't':
      return word < recording.texts.size() ? '"' + recording.texts[word] + '"' : "NULL";
    case 'L':
      snprintf(text, sizeof text, "%d/%d", static_cast<int>(word), static_cast<int>(word >> 32));
      return text;
    default:
      if (word == 0) return "NULL";
      snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(word));
      return text;
  }
}

}  // namespace

std::string call_text(const Recording& recording, const RecordedCall& call) {
  const RecordedFunction& function = recording.functions[call.function];
  const auto arguments = recording.arguments(call);
  std::string text = function.name + "(";
  size_t word = 0;
  bool is_first = true;
  for (const Parameter& parameter : function.parameters) {
    if (word >= arguments.size()) break;
    if (!parameter.is_out && parameter.words == 1) {
      if (!is_first) text += ", ";
      is_first = false;
      text += parameter.name + " " + value_text(recording, parameter, arguments[word]);
    }
    word += parameter.words;
  }
  return text + ")";
}

std::string place_text(const Recording& recording, const RecordedCall& call) {
  if (call.stack >= recording.stacks.size()) return {};
  const std::string& stack = recording.stacks[call.stack];
  return stack.substr(0, stack.find('\n'));
}

std::string thread_text(const Recording& recording, uint32_t thread) {
  const RecordedThread& recorded = recording.threads[thread];
  const RecordedProcess& process = recording.processes[recorded.process];
  return "process " + std::to_string(process.pid) +
         (process.program.empty() ? "" : " (" + process.program + ")") + ", thread " +
         std::to_string(recorded.number);
}

}  // namespace understudy::command
