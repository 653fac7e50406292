// SPDX-License-Identifier: Apache-2.0
//
// understudy conformance: the black-box rule tests of this project on any libascendcl.so, and a
// report of what differs. On a machine with an NPU it compares the rules with the real library.
//
// How it works, and why so:
// - The tests are a program of their own (tests/rules), installed as
//   libexec/understudy/rule_tests. It names the library by SONAME alone, is not
//   position-independent and binds lazily: every reference to a function goes through the program's
//   own PLT, so that it starts on a library that lacks some, and ends with the name of the function
//   when a test calls one of them.
// - The command never loads the library. A first process asks it for versions and chip; tests run
//   in processes with a time limit (test_run.h). A crash or a hang is a result of one test.
// - A library without aclUnderstudy* functions is foreign. Variables UNDERSTUDY_* mean nothing to
//   it, so tests that need one do not apply, unless it is UNDERSTUDY_PRODUCT with the product that
//   its chip belongs to. Foreign devices are real: one test at a time, as each counts their memory.
// - Tests assert exact codes. On a foreign library another non-zero code is recorded, and judged
//   here: rules whose code is this project's decision accept any, those about state accept 507899
//   as well.
// - Tests that are about no rule of the API (the configuration of the software NPU) are left out.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/edit_distance.h"
#include "tools/command.h"
#include "tools/command_line.h"
#include "tools/conformance/library_under_test.h"
#include "tools/conformance/report.h"
#include "tools/conformance/rule_table.h"
#include "tools/conformance/test_list.h"
#include "tools/conformance/test_run.h"
#include "tools/progress.h"
#include "tools/whole_file.h"
#include "tools/work_directory.h"

namespace understudy::command {

namespace {

namespace fs = std::filesystem;

struct Options {
  std::string library;
  std::vector<std::string> rules;  // IDs and groups; empty: all
  std::string report;
  std::string tests;  // the program
  bool is_json = false;
  bool is_list = false;
  bool is_foreign = false;
  unsigned jobs = 0;  // 0: as many as fit
  unsigned time_limit = 120;
};

int complain(int status, const std::string& sentence) {
  fprintf(stderr, "understudy conformance: %s\n", sentence.c_str());
  return status;
}

// The first of these files that exists, seen from the folder of this program.
std::optional<fs::path> beside_command(std::initializer_list<const char*> places) {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* place : places) {
    const fs::path path = (folder / place).lexically_normal();
    if (fs::exists(path, error)) return path;
  }
  return std::nullopt;
}

// Names of rules and groups have capital letters.
std::vector<std::string> in_capitals(std::vector<std::string> names) {
  for (std::string& name : names) {
    for (char& letter : name) {
      if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
    }
  }
  return names;
}

bool is_known(const std::string& name) {
  const auto rules = rule_table();
  return std::any_of(rules.begin(), rules.end(),
                     [&](const Rule& rule) { return rule.is_among(std::span(&name, 1)); });
}

std::string unknown_name(const std::string& asked, const std::string& name) {
  std::vector<std::string_view> all;
  // A number that a group does not have is no slip of the keyboard.
  if (!is_known(name.substr(0, name.rfind('-')))) {
    for (const Rule& rule : rule_table()) {
      all.push_back(rule.group());
      all.push_back(rule.id);
    }
  }
  const std::optional<std::string_view> likely = likely_word(name, all);
  return "there is no rule or group " + asked +
         (likely ? "; did you mean " + std::string(*likely) + "?" : "; --list shows them");
}

void list_rules(const Options& options) {
  nlohmann::json list = nlohmann::json::array();
  for (const Rule& rule : rule_table()) {
    if (!rule.is_among(options.rules)) continue;
    list.push_back({{"rule", rule.id},
                    {"text", rule.text},
                    {"decision", rule.is_decision},
                    {"state", rule.is_state}});
    if (options.is_json) continue;
    printf("%-11.*s%s%.*s\n", static_cast<int>(rule.id.size()), rule.id.data(),
           rule.is_decision ? "(decision) " : "", static_cast<int>(rule.text.size()),
           rule.text.data());
  }
  if (options.is_json) puts(list.dump(2).c_str());
}

// Writes the report where it is wanted.
Result<void> publish(const ConformanceReport& report, const Options& options) {
  const auto dump = [&] {
    return report.json().dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  };
  fputs((options.is_json ? dump() : report.text()).c_str(), stdout);
  if (options.report.empty()) return {};
  return write_whole_file(options.report,
                          options.report.ends_with(".json") ? dump() : report.text());
}

std::vector<std::string> wanted_tests(const std::vector<std::string>& tests,
                                      const std::vector<std::string>& wanted) {
  std::vector<std::string> chosen;
  for (const std::string& test : tests) {
    const std::vector<const Rule*> rules = rules_of_test(test);
    if (std::any_of(rules.begin(), rules.end(),
                    [&](const Rule* rule) { return rule->is_among(wanted); })) {
      chosen.push_back(test);
    }
  }
  return chosen;
}

int run_tests(const Options& options, const fs::path& program, const fs::path& library_file) {
  const WorkDirectory directory("conformance");
  const LibraryUnderTest library(library_file, directory.path());
  const std::chrono::seconds time_limit(options.time_limit);
  const LibraryDescription description = library.describe(program.string(), time_limit);
  const bool is_foreign = options.is_foreign || !description.is_understudy;

  TestRunOptions run_options;
  run_options.program = program.string();
  run_options.environment = library.environment(is_foreign ? &description : nullptr);
  run_options.directory = directory.path();
  run_options.jobs = options.jobs != 0 ? options.jobs
                     : is_foreign      ? 1
                                       : std::max(1U, std::thread::hardware_concurrency());
  run_options.time_limit = time_limit;
  const std::vector<std::string> tests =
      wanted_tests(list_tests(run_options, time_limit), options.rules);

  if (tests.empty()) return complain(kWrongUsage, "no test that is installed is about these rules");
  if (!options.report.empty()) {  // before the tests, which may take minutes
    const Result<void> checked = check_writable(options.report);
    if (!checked.ok()) return complain(kFailed, checked.error().text());
  }

  const auto start = std::chrono::steady_clock::now();
  std::optional<Progress> progress(std::in_place, "tests", tests.size());
  run_options.on_progress = [&](size_t done) { progress->show(done); };
  TestRun run(std::move(run_options));
  std::map<std::string, TestResult> results = run.run(tests);
  progress.reset();
  if (run.interruption() != 0) return 128 + run.interruption();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const ConformanceReport report(description, is_foreign, options.rules, std::move(results),
                                 seconds.count());
  const Result<void> published = publish(report, options);
  if (!published.ok()) return complain(kFailed, published.error().text());
  return report.all_hold() ? kDone : kFailed;
}

int conform(Options options) {
  const std::vector<std::string> asked = std::exchange(options.rules, in_capitals(options.rules));
  for (size_t i = 0; i < asked.size(); ++i) {
    if (!is_known(options.rules[i])) {
      return complain(kWrongUsage, unknown_name(asked[i], options.rules[i]));
    }
  }
  if (options.is_list) {
    list_rules(options);
    return kDone;
  }
  const std::optional<fs::path> program =
      options.tests.empty() ? beside_command({"../libexec/understudy/rule_tests", "rule_tests"})
                            : fs::path(options.tests);
  if (!program) {
    return complain(kFailed, "its tests are not installed; ./dev build --conformance builds them");
  }
  std::error_code unseen;
  if (!fs::is_regular_file(*program, unseen) || access(program->c_str(), X_OK) != 0) {
    return complain(kWrongUsage, program->string() + " is no program that can be executed");
  }
  const std::optional<fs::path> library = options.library.empty()
                                              ? beside_command({"../lib64/libascendcl.so"})
                                              : fs::path(options.library);
  if (!library) return complain(kFailed, "there is no library beside the command; name one");
  try {
    return run_tests(options, *program, *library);
  } catch (const std::exception& error) {
    return complain(kFailed, error.what());
  }
}

}  // namespace

Action declare_conformance(OptionSet& set) {
  const auto options = std::make_shared<Options>();
  set.add("--library", options->library, "the libascendcl.so to test; default: our own", "PATH");
  set.add("--rules", options->rules, "only these rules or groups: UNMAP-03 MAP", "GROUP|ID");
  set.add("--report", options->report, "also write the report; as JSON to a name in .json", "FILE");
  set.add_flag("--json", options->is_json, "print the report as JSON");
  set.add("--jobs", options->jobs, "tests at a time; default: one per CPU, 1 if foreign", "N",
          {1, 1024});
  set.add("--time-limit", options->time_limit, "seconds that a test may take (120)", "SECONDS",
          {1, 86400});
  set.add_flag("--list", options->is_list, "list the rules and test nothing");
  set.add_flag("--foreign", options->is_foreign, "treat the library as one that is not Understudy");
  set.add("--tests", options->tests, "another program with the tests", "PATH");
  return [options] { return conform(*options); };
}

}  // namespace understudy::command
