// SPDX-License-Identifier: Apache-2.0
//
// Checks of understudy doctor: what is installed, and how it is configured.
#include "device/config.h"
#include "tools/doctor_checks.h"
#include "tools/installation.h"

namespace understudy::command {

namespace {

Finding look_at_library() {
  const Installation installation = Installation::of_this_command();
  if (!installation.has_library()) {
    return {Verdict::kProblem, installation.library() + " is missing or cannot be read",
            "No program can be run with this command; install it again.", ""};
  }
  return {Verdict::kFine, installation.library(), "`understudy run` leads programs to it.", ""};
}

Finding look_at_configuration() {
  if (const Result<Settings> settings = read_settings(); !settings.ok()) {
    return {Verdict::kProblem, settings.error().text(), "Every first call fails with 100000.", ""};
  }
  return {Verdict::kFine, "can be used", "The variables and the file have allowed values.", ""};
}

}  // namespace

const std::vector<Check>& installation_checks() {
  static const std::vector<Check> checks = {{"library", look_at_library},
                                            {"configuration", look_at_configuration}};
  return checks;
}

}  // namespace understudy::command
