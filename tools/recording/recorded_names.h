// SPDX-License-Identifier: Apache-2.0
//
// What the numbers of each process stand for, brought together: processes that define the same
// function, stack or kind share one entry of the recording's tables.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "observe/recording_format.h"
#include "tools/recording/recording.h"

namespace understudy::command {

class RecordedNames {
 public:
  explicit RecordedNames(Recording& recording) : recording_(recording) {}

  // One definition of a process, a position in Recording::processes.
  void add(uint32_t process, std::span<const uint64_t> record);

  // Positions in the recording's tables. What is not defined gets an entry that says so.
  uint32_t function(uint32_t process, uint64_t number);
  uint16_t task_kind(uint32_t process, uint64_t number);
  uint16_t object_kind(uint32_t process, uint64_t number);
  // kNone if it is not known; 0 stands for none.
  uint32_t stack(uint32_t process, uint64_t number) const;
  // UINT64_MAX if it is not known.
  uint64_t text(uint32_t process, uint64_t number) const;
  std::string thread_name(uint32_t process, uint32_t number) const;
  // How many entries had to be made up.
  uint64_t unknown() const { return unknown_; }

 private:
  static constexpr size_t kKinds = 8;  // of DefinitionKind
  using Numbers = std::unordered_map<uint64_t, uint32_t>;
  using Texts = std::unordered_map<std::string, uint32_t>;

  static uint64_t key(uint32_t process, uint64_t number) {
    return uint64_t{process} << 32 | (number & UINT32_MAX);
  }
  const Numbers& numbers(DefinitionKind kind) const { return numbers_[static_cast<size_t>(kind)]; }
  // The position of a text in its table, which it is added to.
  uint32_t place(DefinitionKind kind, std::string text);
  uint32_t find_or_make(DefinitionKind kind, uint32_t process, uint64_t number, const char* noun);
  void describe(RecordedProcess& process, std::string_view lines);

  Recording& recording_;
  std::array<Numbers, kKinds> numbers_;
  std::array<Texts, kKinds> texts_;
  std::unordered_map<uint64_t, std::string> thread_names_;
  uint64_t unknown_ = 0;
};

// "aclrtMalloc(out devPtr:p, size:u, policy:i)".
RecordedFunction parse_function(std::string_view text);

}  // namespace understudy::command
