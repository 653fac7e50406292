// SPDX-License-Identifier: Apache-2.0
#include "tools/server_users.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>

#include "device/config_keys.h"
#include "platform/process_identity.h"
#include "platform/text_file.h"
#include "server/server_view.h"

namespace understudy::command {

namespace {

using platform::UniqueFd;

bool has_process(const ServerView& server, int32_t id) {
  return std::any_of(server.processes.begin(), server.processes.end(), [id](const auto& process) {
    return process.process == id && !process.is_of_other_namespace;
  });
}

UniqueFd find_in_ledger(const std::string& directory) {
  const ServerView server = look_at_server(directory);
  for (const ProcessView& process : server.processes) {
    if (process.is_of_other_namespace) continue;
    UniqueFd opened = platform::open_process(process.process);
    // The number may be another process's by now, which then is not in the ledger.
    if (opened.valid() && has_process(look_at_server(directory), process.process)) return opened;
  }
  return UniqueFd();
}

// Whether a process began with this line in its environment. Those of other users do not tell, nor
// do ended ones.
bool began_with(const std::string& process, const std::string& line) {
  const auto environment = platform::read_text_file("/proc/" + process + "/environ");
  if (!environment) return false;
  const std::string whole_line = '\0' + line + '\0';
  return ('\0' + *environment + '\0').find(whole_line) != std::string::npos;
}

UniqueFd find_by_environment(const std::string& directory) {
  const std::string line = config_variable("runtime_dir") + "=" + directory;
  std::error_code unreadable;
  std::filesystem::directory_iterator entry("/proc", unreadable);
  for (; entry != std::filesystem::directory_iterator(); entry.increment(unreadable)) {
    const std::string name = entry->path().filename().string();
    int32_t id = 0;
    const auto [end, wrong] = std::from_chars(name.data(), name.data() + name.size(), id);
    if (wrong != std::errc() || end != name.data() + name.size() || id == getpid()) continue;
    if (!began_with(name, line)) continue;
    UniqueFd process = platform::open_process(id);
    // The number may be another process's by now, which then had no such line.
    if (process.valid() && began_with(name, line)) return process;
  }
  return UniqueFd();
}

}  // namespace

UniqueFd find_user_of(const std::string& directory) {
  UniqueFd user = find_in_ledger(directory);
  // Twice: a process can start another one, with a number that was passed, and end meanwhile.
  for (int attempt = 0; attempt < 2 && !user.valid(); ++attempt) {
    user = find_by_environment(directory);
  }
  return user;
}

}  // namespace understudy::command
