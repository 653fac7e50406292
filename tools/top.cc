// SPDX-License-Identifier: Apache-2.0
//
// understudy top: a server's devices and processes, live on a terminal.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include "tools/command.h"
#include "tools/command_line.h"
#include "tools/servers.h"
#include "tools/terminal.h"
#include "tools/top_lines.h"

namespace understudy::command {

namespace {

struct TopOptions {
  std::string directory;
  double interval = 0.5;
};

// Shows the server until the user or a signal ends it. Returns that signal.
std::optional<int> show(Terminal& terminal, const std::string& directory,
                        std::chrono::duration<double> interval) {
  using Clock = std::chrono::steady_clock;
  AllocationRates rates;
  TopChoice choice;
  ServerView server;
  Clock::time_point next_look;  // at once
  while (!Terminal::ended_by()) {
    if (Clock::now() >= next_look) {
      server = look_at_server(directory);
      rates.update(server, Clock::now());
      next_look = Clock::now() + std::chrono::duration_cast<Clock::duration>(interval);
    }
    terminal.draw(top_lines(server, rates, choice, terminal.size()));
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_look - Clock::now());
    switch (terminal.read_key(static_cast<int>(std::max<int64_t>(left.count(), 0)))) {
      case Key::kQuit:
        return std::nullopt;
      case Key::kHelp:
        choice.help = !choice.help;
        break;
      case Key::kNext:
        choice.move(TopChoice::Step::kNext, server.devices.size());
        break;
      case Key::kPrevious:
        choice.move(TopChoice::Step::kPrevious, server.devices.size());
        break;
      case Key::kNone:
      case Key::kOther:
        break;
    }
  }
  return Terminal::ended_by();
}

int refuse(const Error& error, int status) {
  fprintf(stderr, "understudy: %s\n", error.text());
  return status;
}

int run(const TopOptions& options) {
  const Result<std::string> directory = chosen_directory(options.directory);
  if (!directory.ok()) return refuse(directory.error(), kFailed);
  std::optional<int> signal;
  {
    Result<Terminal> terminal = Terminal::open();
    if (!terminal.ok()) return refuse(terminal.error(), kWrongUsage);
    signal =
        show(terminal.value(), directory.value(), std::chrono::duration<double>(options.interval));
  }
  if (signal) {
    // Ends as the signal says, now that the terminal is as it was.
    ::signal(*signal, SIG_DFL);
    raise(*signal);
  }
  return kDone;
}

}  // namespace

Action declare_top(OptionSet& options) {
  const auto chosen = std::make_shared<TopOptions>();
  add_runtime_dir_option(options, chosen->directory);
  options.add("--interval", chosen->interval, "seconds between two looks (0.5)", "SECONDS",
              {0.05, 3600.0});
  return [chosen] { return run(*chosen); };
}

}  // namespace understudy::command
