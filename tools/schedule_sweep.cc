// SPDX-License-Identifier: Apache-2.0
#include "tools/schedule_sweep.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <string_view>
#include <system_error>

#include "device/config_keys.h"
#include "device/config_value.h"
#include "device/schedule_choice.h"
#include "tools/command.h"
#include "tools/progress.h"
#include "tools/swept_program.h"
#include "tools/text_table.h"

namespace understudy::command {

namespace {

constexpr const char* kScheduleKey = "schedule";
constexpr std::string_view kSweepPart = "sweep=";
constexpr uint64_t kMostSeeds = 1'000'000;

// A word as a shell takes it.
std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char letter : word) text += letter == '\'' ? "'\\''" : std::string(1, letter);
  return text + "'";
}

std::string command_for(const std::string& schedule, const std::vector<std::string>& options,
                        const std::vector<std::string>& program) {
  std::string text = "understudy run --schedule " + schedule;
  for (const std::string& option : options) text += " " + quoted(option);
  text += " --";
  for (const std::string& word : program) text += " " + quoted(word);
  return text;
}

}  // namespace

Result<std::optional<ScheduleSweep>> parse_schedule_sweep(const std::string& schedule) {
  const std::vector<std::string_view> parts = split(schedule, ',');
  const auto sweeps = [](std::string_view part) { return part.starts_with(kSweepPart); };
  const auto found = std::ranges::find_if(parts, sweeps);
  if (found == parts.end()) return std::optional<ScheduleSweep>();
  const std::optional<uint64_t> seeds = parse_number(found->substr(kSweepPart.size()));
  if (!seeds || *seeds == 0 || *seeds > kMostSeeds) {
    return Error::format(ErrorCode::kInvalidArgument,
                         "--schedule: \"%.64s\" is not sweep=N with a number from 1 to %" PRIu64,
                         std::string(*found).c_str(), kMostSeeds);
  }
  ScheduleSweep sweep{*seeds, ""};
  for (auto part = parts.begin(); part != parts.end(); ++part) {
    if (part->starts_with("seed=")) {
      return Error::format(ErrorCode::kInvalidArgument,
                           "--schedule: a sweep has all seeds from 1 on, and no other");
    }
    if (part != found) sweep.rest += "," + std::string(*part);
  }
  US_TRY(parse_schedule(sweep.schedule(1)));
  return std::optional(sweep);
}

int sweep_schedules(const ScheduleSweep& sweep, const std::vector<std::string>& options,
                    const std::vector<std::string>& program, bool joins_server) try {
  SweptProgram swept(program, joins_server, SweptProgram::Errors::kApart);
  (void)swept.run_first({kScheduleKey}, config_variable(kScheduleKey) + "=seed=0");
  const std::string output = swept.output();
  fputs(output.c_str(), stdout);
  fputs(swept.errors().c_str(), stderr);
  TextTable table({{"SEED", Align::kRight}, {"OUTCOME"}, {"REPEAT WITH"}});
  uint64_t same = 0;
  {
    Progress progress("seeds", sweep.seeds);
    for (uint64_t seed = 1; seed <= sweep.seeds && swept.interruption() == 0; ++seed) {
      const std::string schedule = sweep.schedule(seed);
      const auto end = swept.run_with(config_variable(kScheduleKey) + "=" + schedule);
      const bool ends_alike = swept.ends_like_first(end);
      if (ends_alike && swept.output() == output) {
        ++same;
      } else {
        table.add_row({std::to_string(seed), ends_alike ? "another output" : swept.outcome_of(end),
                       command_for(schedule, options, program)});
      }
      progress.show(seed);
    }
  }
  if (swept.interruption() != 0) return 128 + swept.interruption();
  if (!table.empty()) fputs(table.text().c_str(), stdout);
  printf("%" PRIu64 " of %" PRIu64 " seeds change nothing\n", same, sweep.seeds);
  return same == sweep.seeds ? kDone : kFailed;
} catch (const std::system_error& error) {
  fprintf(stderr, "understudy run: %s\n", error.what());
  return kCannotRun;
}

}  // namespace understudy::command
