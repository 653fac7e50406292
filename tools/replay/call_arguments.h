// SPDX-License-Identifier: Apache-2.0
//
// The arguments of a call, made anew from the recording: what things are now takes the place of
// what they were. One for each thread of a replay, with memory for what arguments lead to.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "tools/replay/program_memory.h"
#include "tools/replay/replay_plan.h"
#include "tools/replay/replay_state.h"

namespace understudy::command {

class CallArguments {
 public:
  static constexpr size_t kMost = 16;  // parameters of a function

  CallArguments(const Recording& recording, const ReplayPlan& plan, const ReplayState& state,
                ProgramMemory& memory);
  ~CallArguments();
  CallArguments(const CallArguments&) = delete;
  CallArguments& operator=(const CallArguments&) = delete;

  // False if it uses a thing that was not made.
  bool prepare(const PlannedCall& planned);
  const uint64_t* words() const { return words_.data(); }

  // What the call wrote becomes what its things are.
  void publish_things(const PlannedCall& planned);
  // They were not made.
  void give_up_things(const PlannedCall& planned);
  // What the call made or, if it returns nothing, its first argument: for the function that undoes
  // it.
  uint64_t made(const PlannedCall& planned) const;

 private:
  const RecordedCall& recorded(const PlannedCall& planned) const {
    return recording_.calls[planned.call];
  }
  const PlannedFunction& function(const PlannedCall& planned) const {
    return plan_.functions[recorded(planned).function];
  }
  // Memory of the thread for a parameter, zero at its beginning.
  char* room(size_t parameter);
  std::optional<uint64_t> value_of(const Reference& reference);
  bool prepare_given(const PlannedCall& planned, size_t parameter, uint32_t& reference);
  bool prepare_reference(const PlannedCall& planned, size_t parameter, const Reference& reference);
  bool prepare_elements(const PlannedCall& planned, size_t parameter, uint32_t& reference);
  void prepare_content(const PlannedCall& planned, size_t parameter, uint64_t word);
  void prepare_properties(const PlannedCall& planned, size_t parameter);
  void prepare_processes(size_t parameter, size_t bytes);
  int32_t process_now(int32_t pid) const;
  uint64_t thread_now(const Reference& reference) const;

  const Recording& recording_;
  const ReplayPlan& plan_;
  const ReplayState& state_;
  ProgramMemory& memory_;
  char* rooms_ = nullptr;
  std::array<uint64_t, kMost> words_{};
};

// The replay that this process is part of, for functions that streams call.
void wait_in_functions_for(const ReplayState& state);

}  // namespace understudy::command
