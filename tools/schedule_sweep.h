// SPDX-License-Identifier: Apache-2.0
//
// understudy run --schedule sweep=N: runs a program once with its tasks in the order in which they
// are queued, and then once for each seed from 1 to N. Tells with which seeds it ends otherwise:
// with another status, or another standard output.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace understudy::command {

struct ScheduleSweep {
  uint64_t seeds = 0;
  std::string rest;  // of the schedule, behind the seed: ",slow=3:4x"

  std::string schedule(uint64_t seed) const { return "seed=" + std::to_string(seed) + rest; }
};

// Nothing if the schedule is no sweep.
Result<std::optional<ScheduleSweep>> parse_schedule_sweep(const std::string& schedule);

// The configuration is in the environment of this process; `options` are those of the command that
// put it there. The exit status: 0 if no seed changes anything.
int sweep_schedules(const ScheduleSweep& sweep, const std::vector<std::string>& options,
                    const std::vector<std::string>& program, bool joins_server);

}  // namespace understudy::command
