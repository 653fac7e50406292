// SPDX-License-Identifier: Apache-2.0
//
// The command `understudy`: reads its arguments by one table of subcommands and calls one of them.
// Under the name npu-smi, that of a link, it is a look-alike of that command.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/command.h"
#include "tools/command_line.h"
#include "tools/output.h"
#include "tools/program_line.h"

namespace understudy::command {

namespace {

struct Subcommand {
  const char* name;
  const char* summary;
  // One of the two.
  Action (*declare)(OptionSet& options);
  ProgramAction (*declare_with_program)(OptionSet& options) = nullptr;
  // Only behind --: the words in front of it are the subcommand's own.
  bool program_is_marked = false;
};

// In the order of the help text.
constexpr Subcommand kSubcommands[] = {
    {"run", "run a program on the software NPU", nullptr, declare_run},
    {"info", "show a server's devices and processes", declare_info},
    {"ps", "list the processes of all servers of this user", declare_ps},
    {"top", "show a server live on the terminal", declare_top},
    {"clean", "remove what is left of servers without processes", declare_clean},
    {"trace", "show a recording, and make pages and files for other tools of it", declare_trace},
    {"diff", "compare two recordings: what grew", declare_diff},
    {"live", "show a recording in a browser while it grows", nullptr, declare_live, true},
    {"replay", "make the calls of a recording again, and tell what differs", declare_replay},
    {"doctor", "explain what this machine offers, and how to improve it", declare_doctor},
    {"env", "print what points a shell at the software NPU", declare_env},
    {"which", "tell which libascendcl.so a program loads, and why", nullptr, declare_which},
    {"conformance", "test any libascendcl.so against the rules", declare_conformance},
    {"version", "show the version and the library", declare_version},
};

ProgramAction declare(const Subcommand& subcommand, OptionSet& options) {
  if (subcommand.declare_with_program == nullptr) {
    return [action = subcommand.declare(options)](const auto&) { return action(); };
  }
  if (!subcommand.program_is_marked) {
    options.add_rest("PROGRAM",
                     "what follows the options, with arguments of its own; -- may precede it",
                     "[ARGUMENT...]");
  }
  return subcommand.declare_with_program(options);
}

int run(int argc, char** argv) {
  CommandLine line("understudy", "understudy: a software NPU");
  line.add_version("-V,--version", "understudy " US_VERSION);
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (!arguments.empty() && (arguments.front() == "--version" || arguments.front() == "-V")) {
    arguments.front() = "version";
  }
  std::vector<std::string> program;
  ProgramAction action;
  for (const Subcommand& each : kSubcommands) {
    OptionSet options = line.add_subcommand(each.name, each.summary);
    // The options of the others are not looked at, and take time.
    if (arguments.empty() || arguments.front() != each.name) continue;
    action = declare(each, options);
    if (each.declare_with_program == nullptr) continue;
    program = each.program_is_marked ? split_off_marked_program(arguments)
                                     : split_off_program(options, arguments);
  }
  if (const std::optional<int> status = line.read(std::move(arguments))) return *status;
  return action(program);
}

// What was printed may be lost as late as here.
int finish_output(const char* name, int status) {
  if (flush_output()) return status;
  fprintf(stderr, "%s: standard output: %s\n", name, output_failure());
  return status == kDone ? kFailed : status;
}

int run_as(std::string_view path, int argc, char** argv) {
  if (path.substr(path.rfind('/') + 1) == "npu-smi") {
    return finish_output("npu-smi", run_npu_smi(argc, argv));
  }
  return finish_output("understudy", run(argc, argv));
}

}  // namespace

}  // namespace understudy::command

int main(int argc, char** argv) {
  return understudy::command::run_as(argc > 0 ? argv[0] : "", argc, argv);
}
