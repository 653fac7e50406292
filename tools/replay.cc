// SPDX-License-Identifier: Apache-2.0
//
// understudy replay: makes the calls of a recording again, as they were or on other devices, and
// tells what differs.
//
// How it works, and why so:
// - Each recorded process is played by a child of the command, with a thread for each recorded
//   thread. Children are forked before the library is loaded; each loads it as a program would.
// - Before anything is called the recording becomes a plan (replay/replay_plan.h): which call may
//   begin when, and which values stand for things that will have other values.
// - The replay is recorded, too: its memory is counted as that of the recording is, and recorded
//   times are compared with times that also paid for a recording.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <system_error>

#include "device/config.h"
#include "device/config_keys.h"
#include "tools/command.h"
#include "tools/command_line.h"
#include "tools/installation.h"
#include "tools/private_server.h"
#include "tools/replay/call_text.h"
#include "tools/replay/replay_report.h"
#include "tools/work_directory.h"

namespace understudy::command {

namespace {

using Variables = std::map<std::string, std::string>;

constexpr const char* kVisibleDevices = "ASCEND_RT_VISIBLE_DEVICES";

struct ReplayOptions {
  std::string file;
  std::string only;
  std::string pace;
  bool json = false;
  unsigned standstill = 30;
  std::map<std::string, std::string> values;  // by key, those that were given
};

int refuse_replay(int status, const std::string& sentence) {
  fprintf(stderr, "understudy replay: %s\n", sentence.c_str());
  return status;
}

// Keys that are about the recorded run, not about what its calls meet.
bool is_of_run(const std::string& key) {
  static const std::set<std::string> kKeys = {
      "runtime_dir",  "log",          "log_file",           "fail",  "schedule",    "check",
      "check_exit",   "check_report", "check_suppressions", "trace", "trace_limit", "trace_ring",
      "trace_stacks", "call_sites"};
  return kKeys.count(key) != 0;
}

bool is_allowed(const std::string& key, const std::string& value) {
  const ConfigKey* const known = find_config_key(key);
  ConfigDraft draft;
  return known != nullptr && known->read(draft, value);
}

// The configuration of a recorded process, by keys, and what the command says instead.
std::map<std::string, std::string> configuration_of(const RecordedProcess& process,
                                                    const ReplayOptions& options) {
  std::map<std::string, std::string> values;
  const bool is_other_product = options.values.count("product") != 0;
  if (!is_other_product) {
    values["product"] = process.product;
    if (process.device_memory != 0) values["memory"] = std::to_string(process.device_memory);
  }
  if (!process.visible_devices) values["devices"] = std::to_string(process.devices);
  for (const auto& [key, value] : process.given) values[key] = value;
  // They are of the product that it was recorded with.
  for (const char* const key : {"soc", "slice", "memory"}) {
    if (is_other_product) values.erase(key);
  }
  std::erase_if(values, [](const auto& each) {
    return is_of_run(each.first) || !is_allowed(each.first, each.second);
  });
  for (const auto& [key, value] : options.values) values[key] = value;
  return values;
}

Variables variables_of(const RecordedProcess& process, const ReplayOptions& options) {
  Variables variables;
  for (const auto& [key, value] : configuration_of(process, options)) {
    variables[config_variable(key)] = value;
  }
  if (process.visible_devices) variables[kVisibleDevices] = *process.visible_devices;
  return variables;
}

// The configuration comes from the recording and the options alone.
void clear_environment() {
  std::vector<std::string> names;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view variable = *each;
    if (!variable.starts_with("UNDERSTUDY_") && !variable.starts_with("ASCEND_")) continue;
    names.emplace_back(variable.substr(0, variable.find('=')));
  }
  for (const std::string& name : names) unsetenv(name.c_str());
}

Result<Settings> settings_with(const Variables& variables) {
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  Result<Settings> settings = read_settings();
  for (const auto& [name, value] : variables) unsetenv(name.c_str());
  return settings;
}

std::vector<std::string> notes_of(const Recording& recording, const ReplayResult& result) {
  std::vector<std::string> notes;
  for (const std::string& note : recording.notes) notes.push_back("of the recording: " + note);
  if (recording.is_ring)
    notes.emplace_back("the recording is a ring: its beginning may be missing");
  if (recording.is_part) {
    notes.emplace_back("the program recorded a part of its run: what it made before is missing");
  }
  for (const RecordedThread& thread : recording.threads) {
    if (thread.open_function == kNone) continue;
    notes.push_back("a call of " + recording.functions[thread.open_function].name + " in process " +
                    std::to_string(recording.processes[thread.process].pid) +
                    " had not ended when the recording did; it was not made");
  }
  if (is_incomplete(recording) && result.different != 0) {
    notes.emplace_back("calls are missing: others may answer differently for want of them");
  }
  std::set<std::string> known;
  for (const RecordedProcess& process : recording.processes) {
    for (const auto& [key, value] : process.given) {
      if ((key != "fail" && key != "schedule") || !known.insert(key).second) continue;
      notes.push_back("the program ran with --" + key + "=" + value + ", the replay does not");
    }
  }
  if (known.count("fail") != 0 && result.recorded_failures != 0) {
    notes.push_back("differences of calls that failed when they were recorded, maybe on purpose: " +
                    std::to_string(result.recorded_failures) + " of " +
                    std::to_string(result.different));
  }
  return notes;
}

int report(const ReplayOptions& options, const ReportedReplay& replay) {
  if (options.json) {
    print_json(replay_json(replay));
  } else {
    fputs(replay_text(replay).c_str(), stdout);
  }
  return replay.result.is_same() && replay.end.failure.empty() ? kDone : kFailed;
}

int replay(const ReplayOptions& options, const Recording& recording, const Settings& settings,
           ReplayChoices choices) {
  const ReplayPlan plan = make_replay_plan(
      recording, options.only.empty() ? ReplayedCalls::kAll : ReplayedCalls::kOnlyMemory);
  const WorkDirectory directory("replay");
  const std::string trace = (directory.path() / "recording").string();
  std::error_code unknown;
  const uint64_t size = std::filesystem::file_size(options.file, unknown);
  for (Variables& variables : choices.environments) {
    variables.try_emplace(config_variable("trace"), trace);
    variables.try_emplace(config_variable("trace_limit"),
                          std::to_string(std::clamp<uint64_t>(2 * size, kGiB, kTiB)));
  }
  const Result<ReplayState> state = ReplayState::make(recording, plan);
  if (!state.ok()) return refuse_replay(kCannotRun, state.error().text());
  const ReplayEnd end = run_replay(recording, plan, state.value(), choices);
  if (end.interruption != 0) return 128 + end.interruption;
  const Result<Recording> replayed =
      read_recording(options.values.count("trace") == 0 ? trace : options.values.at("trace"));
  const ReplayResult result = make_replay_result(recording, plan, state.value(), end,
                                                 replayed.ok() ? &replayed.value() : nullptr);
  return report(options, {recording, plan, result, end, settings, notes_of(recording, result)});
}

int run(const ReplayOptions& options) {
  for (const auto& [name, value] : options.values) {
    if (is_allowed(name, value)) continue;
    return refuse_replay(kWrongUsage,
                         wrong_config_value(*find_config_key(name), value, "the option").text());
  }
  const Result<Recording> recording = read_recording(options.file);
  if (!recording.ok()) return refuse_replay(kFailed, recording.error().text());
  if (recording.value().calls.empty()) {
    return refuse_replay(kFailed, "there are no calls in " + options.file);
  }
  const Installation installation = Installation::of_this_command();
  if (!installation.has_library()) {
    return refuse_replay(kCannotRun, installation.library() + " is missing or cannot be read");
  }
  clear_environment();
  ReplayChoices choices;
  choices.library = installation.library();
  choices.has_original_pace = options.pace == "original";
  choices.longest_standstill = options.standstill;
  for (const RecordedProcess& process : recording.value().processes) {
    choices.environments.push_back(variables_of(process, options));
  }
  const Result<Settings> settings = settings_with(choices.environments.front());
  if (!settings.ok()) return refuse_replay(kWrongUsage, settings.error().text());
  const std::string key = config_variable("runtime_dir");
  if (options.values.count("runtime_dir") == 0) {
    const Result<std::string> made = make_private_server();
    if (!made.ok()) return refuse_replay(kCannotRun, made.error().text());
    for (Variables& variables : choices.environments) variables[key] = made.value();
  }
  try {
    return replay(options, recording.value(), settings.value(), std::move(choices));
  } catch (const std::system_error& error) {
    return refuse_replay(kCannotRun, error.what());
  }
}

}  // namespace

Action declare_replay(OptionSet& options) {
  const auto chosen = std::make_shared<ReplayOptions>();
  options.add_word("FILE", chosen->file, "a recording");
  options.add("--only", chosen->only, "make only calls that take memory or give it back", "WHAT",
              {"memory"});
  options.add("--pace", chosen->pace, "full (as fast as it goes), or original", "PACE",
              {"full", "original"});
  options.add("--standstill", chosen->standstill,
              "seconds without the end of a call after which to give up (30)", "SECONDS",
              {1, 86400});
  options.add_flag("--json", chosen->json, "print JSON");
  for (const ConfigKey& key : config_keys()) {
    std::string name = "--" + key.name;
    std::replace(name.begin(), name.end(), '_', '-');
    options.add_to_group("Configuration, instead of the recorded one", name, key.allowed,
                         [chosen, key](const std::string& value) {
                           std::error_code removed;
                           const auto file = std::filesystem::absolute(value, removed);
                           chosen->values[key.name] =
                               key.is_file && !removed ? file.string() : value;
                         });
  }
  return [chosen] { return run(*chosen); };
}

}  // namespace understudy::command
