// SPDX-License-Identifier: Apache-2.0
//
// A process of a replay: a child of the command that plays a recorded process. It loads the
// library, has a thread for each recorded thread with calls, and stays when they have ended: what
// it shares lives until the replay needs its end.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tools/replay/replay_plan.h"
#include "tools/replay/replay_state.h"

namespace understudy::command {

struct ReplayedProcessFacts {
  const Recording& recording;
  const ReplayPlan& plan;
  const ReplayState& state;
  uint32_t process;  // of the recording
  std::string library;
  std::map<std::string, std::string> environment;  // variables of the library
  bool has_original_pace;
};

// In the child. What keeps it from beginning is a sentence in the state.
[[noreturn]] void play_process(const ReplayedProcessFacts& facts);

}  // namespace understudy::command
