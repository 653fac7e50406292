// SPDX-License-Identifier: Apache-2.0
#include "tools/failure_sweep.h"

#include <sys/wait.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

#include "device/config_keys.h"
#include "tools/command.h"
#include "tools/progress.h"
#include "tools/swept_program.h"
#include "tools/text_table.h"

namespace understudy::command {

namespace {

constexpr const char* kFail = "fail";
constexpr const char* kCallSites = "call_sites";
constexpr const char* kSites = "sites";  // the file

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

class FailureSweep {
 public:
  FailureSweep(const std::vector<std::string>& program, bool joins_server)
      : program_(program, joins_server, SweptProgram::Errors::kInOutput) {}

  int run() {
    const bool survives = run_unharmed();
    if (program_.interruption() != 0) return 128 + program_.interruption();
    if (!survives) return kFailed;
    const std::set<CallSite> sites = read_sites();
    TextTable table({{"FUNCTION"}, {"PLACE"}, {"OUTCOME"}, {"RULE"}});
    size_t survived = 0;
    size_t done = 0;
    {
      Progress progress("call sites", sites.size());
      for (const CallSite& site : sites) {
        survived += add_run(table, site) ? 1 : 0;
        if (program_.interruption() != 0) return 128 + program_.interruption();
        progress.show(++done);
      }
    }
    fputs(table.text().c_str(), stdout);
    printf("%zu of %zu failures survived\n", survived, sites.size());
    return survived == sites.size() ? kDone : kFailed;
  }

 private:
  // With the places listed. False, and a sentence, if the program does not survive by itself.
  bool run_unharmed() {
    const auto end = program_.run_first({kFail, kCallSites},
                                        config_variable(kCallSites) + "=" + program_.file(kSites));
    fputs(program_.output().c_str(), stdout);
    if (end.is_survival() || program_.interruption() != 0) return true;
    fprintf(stderr, "understudy run: the program does not survive without failures: %s\n",
            strsignal(WTERMSIG(*end.status)));
    return false;
  }

  // Adds a line to the table. Whether the program survived.
  bool add_run(TextTable& table, const CallSite& site) {
    if (!site.can_be_named()) {
      table.add_row({site.function, site.place, "not tried: no rule can name it", ""});
      return true;
    }
    const auto end = program_.run_with(config_variable(kFail) + "=" + site.rule());
    const bool was_reached = program_.output().find(" fails on purpose: ") != std::string::npos;
    const bool survived = end.is_survival();
    table.add_row({site.function, site.place,
                   survived && !was_reached ? "not reached again" : program_.outcome_of(end),
                   survived ? "" : site.rule()});
    return survived;
  }

  std::set<CallSite> read_sites() const {
    std::set<CallSite> sites;
    std::ifstream file(program_.file(kSites));
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

  SweptProgram program_;
};

}  // namespace

int sweep_failures(const std::vector<std::string>& program, bool joins_server) {
  try {
    return FailureSweep(program, joins_server).run();
  } catch (const std::system_error& error) {
    fprintf(stderr, "understudy run: %s\n", error.what());
    return kCannotRun;
  }
}

}  // namespace understudy::command
