// SPDX-License-Identifier: Apache-2.0
//
// understudy ps: the processes of all servers of this user.
#include <cstdio>
#include <memory>

#include "tools/command.h"
#include "tools/command_line.h"
#include "tools/server_json.h"
#include "tools/servers.h"
#include "tools/text_table.h"

namespace understudy::command {

namespace {

std::vector<ServerView> live_servers() {
  std::vector<ServerView> live;
  for (const std::string& directory : directories_of_user()) {
    ServerView server = look_at_server(directory);
    if (server.state == ServerState::kLive) live.push_back(std::move(server));
  }
  return live;
}

std::string text_of(const std::vector<ServerView>& servers) {
  TextTable table({{"PID", Align::kRight},
                   {"PROGRAM"},
                   {"USED", Align::kRight},
                   {"PEAK", Align::kRight},
                   {"ALLOCATIONS", Align::kRight},
                   {"STREAMS", Align::kRight},
                   {"PRODUCT"},
                   {"SERVER"}});
  for (const ServerView& server : servers) {
    for (const ProcessView& process : server.processes) {
      const DeviceUseView use = process.all_devices();
      table.add_row({std::to_string(process.process), program_name(process),
                     size_cell(use.used.total()), size_cell(use.peak),
                     std::to_string(use.allocations), std::to_string(process.streams),
                     server.product, server.directory});
    }
  }
  return table.text();
}

int run(bool json) {
  const std::vector<ServerView> servers = live_servers();
  if (json) {
    Json all = Json::array();
    for (const ServerView& server : servers) all.push_back(to_json(server));
    print_json({{"servers", std::move(all)}});
  } else if (!servers.empty()) {
    fputs(text_of(servers).c_str(), stdout);
  } else {
    fputs("understudy: no process of this user uses a server\n", stderr);
  }
  return servers.empty() ? kFailed : kDone;
}

}  // namespace

Action declare_ps(OptionSet& options) {
  const auto json = std::make_shared<bool>(false);
  options.add_flag("--json", *json, "print JSON; sizes are bytes");
  return [json] { return run(*json); };
}

}  // namespace understudy::command
