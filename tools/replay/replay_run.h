// SPDX-License-Identifier: Apache-2.0
//
// A replay as a whole: its processes are started, watched and ended.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "tools/replay/replay_plan.h"
#include "tools/replay/replay_state.h"

namespace understudy::command {

struct ReplayChoices {
  std::string library;
  // Variables of the library for each process of the recording.
  std::vector<std::map<std::string, std::string>> environments;
  bool has_original_pace = false;
  unsigned longest_standstill = 30;  // seconds
};

struct ReplayEnd {
  // Why it did not come to its end; empty: it did.
  std::string failure;
  int interruption = 0;   // a signal
  uint64_t duration = 0;  // nanoseconds, of all calls
  double nanoseconds_per_tick = 1;
};

// Blocks signals meanwhile. `state` says afterwards what came of the calls. May throw
// std::system_error.
ReplayEnd run_replay(const Recording& recording, const ReplayPlan& plan, const ReplayState& state,
                     const ReplayChoices& choices);

}  // namespace understudy::command
