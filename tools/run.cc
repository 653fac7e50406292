// SPDX-License-Identifier: Apache-2.0
//
// understudy run: any program on the software NPU, unmodified. Sets the environment, checks the
// configuration as the library will, and becomes the program (private_server.h tells why).
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <system_error>

#include "device/config.h"
#include "device/config_keys.h"
#include "tools/command.h"
#include "tools/command_line.h"
#include "tools/environment.h"
#include "tools/failure_sweep.h"
#include "tools/private_server.h"
#include "tools/program.h"
#include "tools/recording/chunk_file.h"
#include "tools/schedule_sweep.h"

namespace understudy::command {

namespace {

constexpr const char* kRuntimeDirectory = "runtime_dir";
constexpr const char* kFail = "fail";
constexpr const char* kSweep = "sweep";
constexpr const char* kCheck = "check";
constexpr const char* kSchedule = "schedule";
constexpr const char* kTrace = "trace";

struct RunOptions {
  std::map<std::string, std::string> values;  // by key, those that were given
  std::string config;
  std::string join;   // "true": without a directory
  std::string check;  // "true": without a list
  bool explain = false;

  bool joins() const { return !join.empty() || values.count(kRuntimeDirectory) != 0; }
};

// The option of a key: --normal-memory.
std::string option_name(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return "--" + key;
}

// The options as they may be given again.
std::vector<std::string> words_of(const RunOptions& options) {
  std::vector<std::string> words;
  if (!options.config.empty()) words.push_back("--config=" + options.config);
  if (options.explain) words.emplace_back("--explain");
  if (options.join == "true") words.emplace_back("--join");
  for (const auto& [name, value] : options.values) words.push_back(option_name(name) + "=" + value);
  return words;
}

void set(const std::string& name, const std::string& value) {
  setenv(name.c_str(), value.c_str(), 1);
}

// A path as the program finds it, which may change its directory before it looks.
std::string absolute(const std::string& path) {
  std::error_code removed;
  const auto found = std::filesystem::absolute(path, removed);
  return removed ? path : found.string();
}

// The values of the command as variables, which the library reads. Each is checked where it can be
// told from which option it came.
Result<void> pass_on(const RunOptions& options) {
  if (!options.config.empty()) {
    if (access(options.config.c_str(), R_OK) != 0) {
      return Error::format(ErrorCode::kInvalidArgument,
                           "the configuration file %s (--config) cannot be read",
                           options.config.c_str());
    }
    set("UNDERSTUDY_CONFIG", absolute(options.config));
  }
  if (options.explain && options.values.count("log") == 0) set("UNDERSTUDY_LOG", "error");
  for (const auto& [name, value] : options.values) {
    const ConfigKey& key = *find_config_key(name);
    ConfigDraft draft;
    if (!key.read(draft, value)) return wrong_config_value(key, value, option_name(name));
    set(config_variable(name), value);
  }
  return {};
}

// The library goes on with a recording that is there, as it must for the processes of one program.
// One of an earlier run is replaced; a file that is something else is left as it is.
Result<void> remove_earlier_recording(const std::string& path) {
  std::error_code missing;
  if (std::filesystem::file_size(path, missing) == 0 || missing) return {};
  US_TRY(ChunkFile::open(path));
  if (unlink(path.c_str()) != 0) {
    return Error::system(ErrorCode::kInvalidArgument, errno, "%.200s cannot be replaced: %s",
                         path.c_str(), strerror(errno));
  }
  return {};
}

int fail(const char* sentence, int status) {
  fprintf(stderr, "understudy run: %s\n", sentence);
  return status;
}

int run(RunOptions options, const std::vector<std::string>& program) {
  if (program.empty()) return fail("a program is missing", kWrongUsage);
  if (options.join.starts_with('/')) {
    if (options.values.count(kRuntimeDirectory) != 0) {
      return fail("--join and --runtime-dir both name a directory", kWrongUsage);
    }
    options.values[kRuntimeDirectory] = options.join;
  } else if (!options.join.empty() && options.join != "true") {
    return fail("--join=DIR needs a path that begins with /", kWrongUsage);
  }
  if (!options.check.empty())
    options.values[kCheck] = options.check == "true" ? "on" : options.check;
  const bool sweeps = options.values.count(kFail) != 0 && options.values[kFail] == kSweep;
  if (sweeps) options.values.erase(kFail);
  const auto seeds = parse_schedule_sweep(options.values[kSchedule]);
  if (!seeds.ok()) return fail(seeds.error().text(), kWrongUsage);
  if (seeds.value() && sweeps) {
    return fail("--fail sweep and --schedule sweep are two commands", kWrongUsage);
  }
  if (options.values[kSchedule].empty() || seeds.value()) options.values.erase(kSchedule);
  if (const Result<void> passed = pass_on(options); !passed.ok()) {
    return fail(passed.error().text(), kWrongUsage);
  }
  // A private server has its own, whatever there was.
  if (!options.joins()) unsetenv(config_variable(kRuntimeDirectory).c_str());
  if (const Result<Settings> settings = read_settings(); !settings.ok()) {
    return fail(settings.error().text(), kWrongUsage);
  }
  if (const auto trace = options.values.find(kTrace); trace != options.values.end()) {
    if (const Result<void> removed = remove_earlier_recording(trace->second); !removed.ok()) {
      return fail(removed.error().text(), kWrongUsage);
    }
  }
  if (sweeps) return sweep_failures(program, options.joins());
  if (seeds.value()) {
    if (!find_program(program.front())) return become(program);  // says so
    return sweep_schedules(*seeds.value(), words_of(options), program, options.joins());
  }
  const Installation installation = Installation::of_this_command();
  if (!installation.has_library()) {
    const std::string missing = installation.library() + " is missing or cannot be read";
    return fail(missing.c_str(), kCannotRun);
  }
  apply(changes_for(variables_of(installation, NpuSmi::kWithout)));
  if (!find_program(program.front())) return become(program);  // says so, and needs no server
  if (!options.joins()) {
    const Result<std::string> directory = make_private_server();
    if (!directory.ok()) return fail(directory.error().text(), kCannotRun);
    set(config_variable(kRuntimeDirectory), directory.value());
  }
  return become(program);
}

}  // namespace

ProgramAction declare_run(OptionSet& options) {
  const auto chosen = std::make_shared<RunOptions>();
  options.add_flag("--join", chosen->join,
                   "use the server that is configured, or --join=DIR, not a private one");
  options.add("--config", chosen->config, "a TOML file", "FILE");
  options.add_flag("--explain", chosen->explain, "print the sentence of every call that fails");
  for (const ConfigKey& key : config_keys()) {
    if (key.name == kFail || key.name == kCheck) continue;
    const bool is_schedule = key.name == kSchedule;
    const bool is_of_checks = key.name.starts_with(kCheck) || is_schedule;
    options.add_to_group(is_of_checks ? "Checks" : "Configuration", option_name(key.name),
                         (is_schedule ? "sweep=N, or " : "") + key.allowed,
                         [chosen, key](const std::string& value) {
                           chosen->values[key.name] = key.is_file ? absolute(value) : value;
                         });
  }
  options.add_flag("--check", chosen->check,
                   "look for mistakes of the program: all (without advice), or --check=LIST of " +
                       joined(kCheckNames));
  options.add_repeated_to_group("Checks", option_name(kFail),
                                "sweep, or " + find_config_key(kFail)->allowed,
                                [chosen](const auto& rule) {
                                  std::string& rules = chosen->values[kFail];
                                  rules += (rules.empty() ? "" : ";") + rule;
                                });
  return [chosen](const std::vector<std::string>& program) { return run(*chosen, program); };
}

}  // namespace understudy::command
