// SPDX-License-Identifier: Apache-2.0
//
// A subcommand of `understudy`. It declares its options and gives back what to do once they are
// read; that returns the exit status of the process. The table of all of them is in main.cc.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace understudy::command {

class OptionSet;

// What the command answers, besides the status of a program that it ran.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;       // looked, and found something wrong
inline constexpr int kWrongUsage = 2;   // the arguments make no sense; nothing was done
inline constexpr int kCannotRun = 125;  // a program was not started, for reasons that are ours
inline constexpr int kNotExecutable = 126;
inline constexpr int kNotFound = 127;  // these three as env(1), nohup(1) and shells answer them

using Action = std::function<int()>;

// Of a subcommand whose options are followed by a program with arguments of its own.
using ProgramAction = std::function<int(const std::vector<std::string>& program)>;

ProgramAction declare_run(OptionSet& options);
Action declare_env(OptionSet& options);
ProgramAction declare_which(OptionSet& options);
Action declare_doctor(OptionSet& options);
Action declare_clean(OptionSet& options);
Action declare_info(OptionSet& options);
Action declare_ps(OptionSet& options);
Action declare_top(OptionSet& options);
Action declare_conformance(OptionSet& options);
Action declare_trace(OptionSet& options);
Action declare_diff(OptionSet& options);
ProgramAction declare_live(OptionSet& options);
Action declare_replay(OptionSet& options);
Action declare_version(OptionSet& options);

// The command under the name npu-smi.
int run_npu_smi(int argc, char** argv);

}  // namespace understudy::command
