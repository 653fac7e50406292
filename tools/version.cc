// SPDX-License-Identifier: Apache-2.0
//
// understudy version: what is installed here.
#include <cstdio>
#include <memory>

#include "tools/command.h"
#include "tools/command_line.h"
#include "tools/installation.h"
#include "tools/json_output.h"

namespace understudy::command {

Action declare_version(OptionSet& options) {
  const auto as_json = std::make_shared<bool>(false);
  options.add_flag("--json", *as_json, "print JSON");
  return [as_json] {
    const Installation installation = Installation::of_this_command();
    const bool has_library = installation.has_library();
    if (*as_json) {
      Json facts = {{"version", US_VERSION}, {"home", installation.home()}};
      facts["library"] = has_library ? Json(installation.library()) : Json();
      print_json(facts);
      return kDone;
    }
    puts("understudy " US_VERSION);
    printf("library %s%s\n", installation.library().c_str(), has_library ? "" : " (missing)");
    return kDone;
  };
}

}  // namespace understudy::command
