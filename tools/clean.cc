// SPDX-License-Identifier: Apache-2.0
//
// understudy clean: removes what is left of servers whose processes have all ended.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "server/server_removal.h"
#include "tools/command.h"
#include "tools/command_line.h"
#include "tools/json_output.h"
#include "tools/servers.h"

namespace understudy::command {

namespace {

struct CleanOptions {
  std::string directory;
  bool dry_run = false;
  bool json = false;
};

struct Found {
  std::string directory;
  Removal removal;
};

std::vector<Found> clean(const CleanOptions& options) {
  const std::vector<std::string> directories =
      options.directory.empty() ? directories_of_user() : std::vector{options.directory};
  std::vector<Found> all;
  for (const std::string& directory : directories) {
    const auto mode = options.dry_run ? RemovalMode::kOnlyLook : RemovalMode::kRemove;
    all.push_back({directory, remove_abandoned_server(directory, mode)});
  }
  return all;
}

bool is_removed(const Found& found) { return found.removal.outcome == RemovalOutcome::kRemoved; }
bool is_absent(const Found& found) { return found.removal.outcome == RemovalOutcome::kAbsent; }

void print_facts(const std::vector<Found>& all) {
  Json removed = Json::array();
  Json kept = Json::array();
  for (const Found& each : all) {
    if (is_removed(each)) {
      removed.push_back(each.directory);
    } else if (!is_absent(each)) {
      kept.push_back({{"directory", each.directory}, {"reason", each.removal.explanation}});
    }
  }
  print_json({{"removed", std::move(removed)}, {"kept", std::move(kept)}});
}

void print_text(const std::vector<Found>& all, bool dry_run) {
  if (all.empty()) puts("There is no server of this user.");
  for (const Found& each : all) {
    if (is_removed(each)) {
      printf("%s %s\n", dry_run ? "would remove" : "removed", each.directory.c_str());
    } else if (is_absent(each)) {
      printf("%s; there is nothing to remove\n", each.removal.explanation.c_str());
    } else {
      printf("kept %s: %s\n", each.directory.c_str(), each.removal.explanation.c_str());
    }
  }
}

int run(const CleanOptions& options) {
  const std::vector<Found> all = clean(options);
  if (options.json) {
    print_facts(all);
  } else {
    print_text(all, options.dry_run);
  }
  for (const Found& each : all) {
    if (each.removal.outcome == RemovalOutcome::kLeftOver) return kFailed;
  }
  return kDone;
}

}  // namespace

Action declare_clean(OptionSet& options) {
  const auto chosen = std::make_shared<CleanOptions>();
  add_runtime_dir_option(options, chosen->directory);
  options.add_flag("--dry-run", chosen->dry_run, "only tell what would be removed");
  options.add_flag("--json", chosen->json, "print JSON");
  return [chosen] { return run(*chosen); };
}

}  // namespace understudy::command
