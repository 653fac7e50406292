// SPDX-License-Identifier: Apache-2.0
//
// understudy info: the devices of a server, the processes that use them, and the host memory
// behind.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include "tools/command.h"
#include "tools/command_line.h"
#include "tools/output.h"
#include "tools/server_json.h"
#include "tools/server_text.h"
#include "tools/servers.h"

namespace understudy::command {

namespace {

struct InfoOptions {
  std::string directory;
  bool json = false;
  std::optional<double> watch;  // seconds between two looks
};

std::string text_of(const ServerView& server) {
  return headline(server) + "\n\n" + devices_text(server) + "\n" + uses_text(server) + "\n" +
         processes_text(server);
}

int show(const std::string& directory, const InfoOptions& options) {
  const ServerView server = look_at_server(directory);
  const bool is_live = server.state == ServerState::kLive;
  if (options.json) {
    // Documents that follow each other have a line each.
    print_json({{"server", to_json(server)}}, options.watch ? kOneLine : 2);
  } else if (is_live) {
    fputs(text_of(server).c_str(), stdout);
  }
  (void)flush_output();  // what follows is on another stream
  if (!is_live) fprintf(stderr, "understudy: %s\n", server.explanation.c_str());
  return is_live ? kDone : kFailed;
}

// Until it is interrupted, or nothing can be written any more.
int watch(const std::string& directory, const InfoOptions& options) {
  const bool on_terminal = isatty(STDOUT_FILENO) == 1 && !options.json;
  while (true) {
    if (on_terminal) fputs("\033[H\033[2J", stdout);
    (void)show(directory, options);
    if (!on_terminal && !options.json) puts("");
    if (!flush_output()) return kFailed;
    std::this_thread::sleep_for(std::chrono::duration<double>(*options.watch));
  }
}

int run(const InfoOptions& options) {
  const Result<std::string> directory = chosen_directory(options.directory);
  if (!directory.ok()) {
    fprintf(stderr, "understudy: %s\n", directory.error().text());
    return kFailed;
  }
  if (options.watch) return watch(directory.value(), options);
  return show(directory.value(), options);
}

}  // namespace

Action declare_info(OptionSet& options) {
  const auto chosen = std::make_shared<InfoOptions>();
  add_runtime_dir_option(options, chosen->directory);
  options.add_flag("--json", chosen->json, "print JSON; sizes are bytes");
  options.add("--watch", chosen->watch, "repeat every so many seconds (1)", "[SECONDS]",
              {0.05, 86400.0}, 1.0);
  return [chosen] { return run(*chosen); };
}

}  // namespace understudy::command
