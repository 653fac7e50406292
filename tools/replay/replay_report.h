// SPDX-License-Identifier: Apache-2.0
//
// The result of a replay for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "device/settings.h"
#include "tools/json_output.h"
#include "tools/replay/replay_result.h"

namespace understudy::command {

struct ReportedReplay {
  const Recording& recording;
  const ReplayPlan& plan;
  const ReplayResult& result;
  const ReplayEnd& end;
  const Settings& settings;  // that it ran with
  std::vector<std::string> notes;
};

std::string replay_text(const ReportedReplay& replay);
Json replay_json(const ReportedReplay& replay);

}  // namespace understudy::command
