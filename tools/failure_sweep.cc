// SPDX-License-Identifier: Apache-2.0
#include "tools/failure_sweep.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>

#include "device/config_keys.h"
#include "tools/child_process.h"
#include "tools/command.h"
#include "tools/held_signals.h"
#include "tools/progress.h"
#include "tools/text_table.h"
#include "tools/work_directory.h"

namespace understudy::command {

namespace {

using std::chrono::milliseconds;

constexpr const char* kFail = "fail";
constexpr const char* kCallSites = "call_sites";

// A place of the program, as the library lists it (runtime/call_site_list.h).
struct CallSite {
  std::string function;
  std::string site;
  std::string place;  // in the source

  std::string rule() const { return function + "@" + site + ":nth=1"; }
  // Whether a rule can name it.
  bool can_be_named() const { return site.find_first_of(":;,|@") == std::string::npos; }
  friend auto operator<=>(const CallSite&, const CallSite&) = default;
};

// How a run of the program ended.
struct RunEnd {
  std::optional<int> status;  // as wait(2) gives it; none: not in time
  milliseconds took{0};

  bool is_survival() const { return status && WIFEXITED(*status); }
};

class Sweep {
 public:
  Sweep(const std::vector<std::string>& program, bool joins_server)
      : program_({std::filesystem::read_symlink("/proc/self/exe").string(), "run"}) {
    if (joins_server) program_.emplace_back("--join");
    program_.emplace_back("--");
    program_.insert(program_.end(), program.begin(), program.end());
  }

  int run() {
    const std::optional<RunEnd> first = run_unharmed();
    if (interruption_ != 0) return 128 + interruption_;
    if (!first) return kFailed;
    const std::set<CallSite> sites = read_sites();
    time_limit_ = std::max(time_limit_, first->took * 10);
    TextTable table({{"FUNCTION"}, {"PLACE"}, {"OUTCOME"}, {"RULE"}});
    size_t survived = 0;
    {
      Progress progress("call sites", sites.size());
      for (const CallSite& site : sites) {
        survived += add_run(table, site, *first) ? 1 : 0;
        if (interruption_ != 0) return 128 + interruption_;
        progress.show(++done_);
      }
    }
    fputs(table.text().c_str(), stdout);
    printf("%zu of %zu failures survived\n", survived, sites.size());
    return survived == sites.size() ? kDone : kFailed;
  }

 private:
  // With the places listed. Nothing, and a sentence, if the program does not survive by itself.
  std::optional<RunEnd> run_unharmed() {
    time_limit_ = std::chrono::hours(24);
    const RunEnd end = run_with(config_variable(kCallSites) + "=" + sites_file());
    time_limit_ = std::chrono::seconds(10);
    fputs(output().c_str(), stdout);
    if (end.is_survival() || interruption_ != 0) return end;
    fprintf(stderr, "understudy run: the program does not survive without failures: %s\n",
            strsignal(WTERMSIG(*end.status)));
    return std::nullopt;
  }

  // Adds a line to the table. Whether the program survived.
  bool add_run(TextTable& table, const CallSite& site, const RunEnd& first) {
    if (!site.can_be_named()) {
      table.add_row({site.function, site.place, "not tried: no rule can name it", ""});
      return true;
    }
    const RunEnd end = run_with(config_variable(kFail) + "=" + site.rule());
    const bool was_reached = output().find(" fails on purpose: ") != std::string::npos;
    const bool survived = end.is_survival();
    table.add_row({site.function, site.place,
                   survived && !was_reached ? "not reached again" : outcome_of(end, first),
                   survived ? "" : site.rule()});
    return survived;
  }

  static std::string outcome_of(const RunEnd& end, const RunEnd& first) {
    if (!end.status) return "does not end";
    if (WIFSIGNALED(*end.status)) {
      return std::string("killed: ") + strsignal(WTERMSIG(*end.status));
    }
    const std::string status = std::to_string(WEXITSTATUS(*end.status));
    return *end.status == *first.status ? "goes on" : "ends with status " + status;
  }

  // With one variable of ours, and no other of the kind.
  RunEnd run_with(const std::string& variable) {
    std::vector<std::string> environment = {variable};
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string_view text = *entry;
      if (!text.starts_with(config_variable(kFail) + "=") &&
          !text.starts_with(config_variable(kCallSites) + "=")) {
        environment.emplace_back(text);
      }
    }
    const auto begun = std::chrono::steady_clock::now();
    ChildProcess process(program_, environment, output_file());
    milliseconds took{0};
    std::optional<int> status;
    while (!(status = process.poll_end()) && took < time_limit_ && interruption_ == 0) {
      interruption_ = held_.wait();
      took = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begun);
    }
    return {status, took};
  }

  std::set<CallSite> read_sites() const {
    std::set<CallSite> sites;
    std::ifstream file(sites_file());
    for (std::string line; std::getline(file, line);) {
      std::istringstream fields(line);
      CallSite site;
      if (std::getline(fields, site.function, '\t') && std::getline(fields, site.site, '\t') &&
          std::getline(fields, site.place)) {
        sites.insert(site);
      }
    }
    return sites;
  }

  std::string sites_file() const { return (directory_.path() / "sites").string(); }
  std::string output_file() const { return (directory_.path() / "output").string(); }
  std::string output() const {
    std::ostringstream text;
    text << std::ifstream(output_file()).rdbuf();
    return text.str();
  }

  const WorkDirectory directory_{"sweep"};
  std::vector<std::string> program_;  // by way of this command
  milliseconds time_limit_{0};
  const HeldSignals held_;
  int interruption_ = 0;  // the signal; 0: none
  size_t done_ = 0;
};

}  // namespace

int sweep_failures(const std::vector<std::string>& program, bool joins_server) {
  try {
    return Sweep(program, joins_server).run();
  } catch (const std::system_error& error) {
    fprintf(stderr, "understudy run: %s\n", error.what());
    return kCannotRun;
  }
}

}  // namespace understudy::command
