// SPDX-License-Identifier: Apache-2.0
//
// understudy env: what points a shell at the software NPU, to be evaluated by it.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "tools/command.h"
#include "tools/command_line.h"
#include "tools/environment.h"
#include "tools/shell_text.h"

namespace understudy::command {

namespace {

struct EnvOptions {
  std::string shell = "sh";
  bool npu_smi = false;
  bool undo = false;
};

Shell shell_of(const std::string& name) {
  if (name == "fish") return Shell::kFish;
  return name == "csh" || name == "tcsh" ? Shell::kCsh : Shell::kPosix;
}

// Of the variables, those of PATH: the last one comes first.
std::vector<std::string> path_entries(const std::vector<Variable>& variables) {
  std::vector<std::string> entries;
  for (const Variable& variable : variables) {
    if (variable.name == "PATH") entries.insert(entries.begin(), variable.value);
  }
  return entries;
}

int print_environment(const EnvOptions& options) {
  const Installation installation = Installation::of_this_command();
  if (!installation.has_library()) {
    fprintf(stderr, "understudy env: %s is missing or cannot be read\n",
            installation.library().c_str());
    return kFailed;
  }
  // An end takes back all of it, the link too.
  const bool with_npu_smi = options.npu_smi || options.undo;
  const std::vector<Variable> variables =
      variables_of(installation, with_npu_smi ? NpuSmi::kWith : NpuSmi::kWithout);
  const Shell shell = shell_of(options.shell);
  for (const Change& change : options.undo ? changes_against(variables) : changes_for(variables)) {
    // A shell may have a PATH that it does not export, and that this process does not see.
    const bool is_unseen = change.name == "PATH" && getenv("PATH") == nullptr;
    puts((is_unseen ? path_extension(shell, path_entries(variables), kUsualFolders)
                    : assignment(shell, change.name, change.value))
             .c_str());
  }
  return kDone;
}

}  // namespace

Action declare_env(OptionSet& options) {
  const auto chosen = std::make_shared<EnvOptions>();
  options.add_flag("--npu-smi", chosen->npu_smi, "with a command npu-smi that shows this server");
  options.add("--shell", chosen->shell,
              "whose words are printed: sh (also for others alike), fish or csh", "SHELL",
              {"sh", "bash", "dash", "ksh", "zsh", "fish", "csh", "tcsh"});
  options.add_flag("--undo", chosen->undo, "take it back");
  options.set_footer(
      "sh, bash, zsh: eval \"$(understudy env)\"\n"
      "fish: understudy env --shell fish | source\n"
      "csh, tcsh: eval \"`understudy env --shell csh`\"");
  return [chosen] { return print_environment(*chosen); };
}

}  // namespace understudy::command
