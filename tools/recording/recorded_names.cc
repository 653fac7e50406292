// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/recorded_names.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace understudy::command {

namespace {

// The text of a definition for people and files: without what a terminal would obey.
std::string definition_text(std::span<const uint64_t> record) {
  const size_t size = std::min<uint64_t>(record[1], (record.size() - 2) * sizeof(uint64_t));
  std::string text(reinterpret_cast<const char*>(record.data() + 2), size);
  while (!text.empty() && (text.back() == '\0' || text.back() == '\n')) text.pop_back();
  for (char& letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if ((byte < ' ' && letter != '\n') || byte == 0x7f) letter = '?';
  }
  return text;
}

constexpr std::string_view kGiven = "given ";

uint64_t number_in(std::string_view text) {
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// "out prop:P3"
Parameter parse_parameter(std::string_view text) {
  Parameter parameter;
  while (text.starts_with(' ')) text.remove_prefix(1);
  if (text.starts_with("out ")) {
    parameter.is_out = true;
    text.remove_prefix(4);
  }
  const size_t colon = std::min(text.find(':'), text.size());
  parameter.name = text.substr(0, colon);
  const std::string_view type = text.substr(std::min(colon + 1, text.size()));
  if (!type.empty()) parameter.type = type.front();
  if (type.size() > 1) {
    parameter.words = static_cast<uint8_t>(std::clamp<uint64_t>(number_in(type.substr(1)), 1, 255));
  }
  return parameter;
}

}  // namespace

RecordedFunction parse_function(std::string_view text) {
  RecordedFunction function;
  const size_t open = std::min(text.find('('), text.size());
  function.name = text.substr(0, open);
  if (function.name.empty()) function.name = "(no name)";
  std::string_view rest = text.substr(std::min(open + 1, text.size()));
  rest = rest.substr(0, rest.rfind(')'));
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    function.parameters.push_back(parse_parameter(rest.substr(0, comma)));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return function;
}

uint32_t RecordedNames::place(DefinitionKind kind, std::string text) {
  const auto inserted = texts_[static_cast<size_t>(kind)].try_emplace(std::move(text), 0);
  const Texts::iterator found = inserted.first;
  if (!inserted.second) return found->second;
  const auto add_to = [&](auto& table, auto entry) {
    table.push_back(std::move(entry));
    found->second = static_cast<uint32_t>(table.size() - 1);
  };
  switch (kind) {
    case DefinitionKind::kFunction:
      add_to(recording_.functions, parse_function(found->first));
      break;
    case DefinitionKind::kStack:
      add_to(recording_.stacks, found->first);
      break;
    case DefinitionKind::kTaskKind:
      add_to(recording_.task_kinds, found->first);
      break;
    case DefinitionKind::kObjectKind:
      add_to(recording_.object_kinds, found->first);
      break;
    default:
      add_to(recording_.texts, found->first);
      break;
  }
  return found->second;
}

void RecordedNames::describe(RecordedProcess& process, std::string_view lines) {
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = line.substr(0, equals);
    const std::string_view value = line.substr(equals + 1);
    if (name == "parent" || name == "fork_of") {
      process.parent = static_cast<uint32_t>(number_in(value));
    } else if (name == "program") {
      process.program = value;
    } else if (name == "product") {
      process.product = value;
    } else if (name == "devices") {
      process.devices = static_cast<uint32_t>(number_in(value));
    } else if (name == "memory") {
      process.device_memory = number_in(value);
    } else if (name == "visible") {
      process.visible_devices = value;
    } else if (name.starts_with(kGiven)) {
      process.given.emplace_back(name.substr(kGiven.size()), value);
    }
  }
}

void RecordedNames::add(uint32_t process, std::span<const uint64_t> record) {
  const RecordHead head = RecordHead::unpack(record[0]);
  const auto number = static_cast<uint32_t>(head.value);
  const auto kind = static_cast<DefinitionKind>(head.detail);
  switch (kind) {
    case DefinitionKind::kProcess:
      return describe(recording_.processes[process], definition_text(record));
    case DefinitionKind::kThread:
      thread_names_[key(process, number)] = definition_text(record);
      return;
    case DefinitionKind::kFunction:
    case DefinitionKind::kStack:
    case DefinitionKind::kTaskKind:
    case DefinitionKind::kObjectKind:
    case DefinitionKind::kText:
      numbers_[head.detail][key(process, number)] = place(kind, definition_text(record));
      return;
    default:
      return;  // of a later version
  }
}

uint32_t RecordedNames::find_or_make(DefinitionKind kind, uint32_t process, uint64_t number,
                                     const char* noun) {
  const auto [found, is_new] =
      numbers_[static_cast<size_t>(kind)].try_emplace(key(process, number), 0);
  if (is_new) {
    ++unknown_;
    found->second = place(kind, noun + std::to_string(number));
  }
  return found->second;
}

uint32_t RecordedNames::function(uint32_t process, uint64_t number) {
  return find_or_make(DefinitionKind::kFunction, process, number, "function");
}
uint16_t RecordedNames::task_kind(uint32_t process, uint64_t number) {
  return static_cast<uint16_t>(
      find_or_make(DefinitionKind::kTaskKind, process, number, "task kind "));
}
uint16_t RecordedNames::object_kind(uint32_t process, uint64_t number) {
  return static_cast<uint16_t>(
      find_or_make(DefinitionKind::kObjectKind, process, number, "object kind "));
}

uint32_t RecordedNames::stack(uint32_t process, uint64_t number) const {
  if (number == 0) return kNone;
  const Numbers& known = numbers(DefinitionKind::kStack);
  const auto found = known.find(key(process, number));
  return found == known.end() ? kNone : found->second;
}

uint64_t RecordedNames::text(uint32_t process, uint64_t number) const {
  const Numbers& known = numbers(DefinitionKind::kText);
  const auto found = number > UINT32_MAX ? known.end() : known.find(key(process, number));
  return found == known.end() ? UINT64_MAX : found->second;
}

std::string RecordedNames::thread_name(uint32_t process, uint32_t number) const {
  const auto found = thread_names_.find(key(process, number));
  return found == thread_names_.end() ? std::string() : found->second;
}

}  // namespace understudy::command
