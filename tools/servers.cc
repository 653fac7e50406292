// SPDX-License-Identifier: Apache-2.0
#include "tools/servers.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "device/config.h"
#include "tools/command_line.h"

namespace understudy::command {

namespace {

constexpr const char* kServersFolder = "/dev/shm";

std::string default_name() { return "understudy-" + std::to_string(geteuid()); }

// The default server's directory, or "understudy-<uid>.<anything>" of a private one: of `understudy
// run` (.run-), and of test programs (.test-).
bool is_name_of_server(const std::string& name) {
  const std::string own = default_name();
  return name == own || name.starts_with(own + ".");
}

// Whether it is a directory of this user, and no link.
bool is_own_directory(const std::filesystem::path& path) {
  struct stat status;  // it may be gone by now
  return lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid();
}

void add_servers_in(const std::filesystem::path& folder, std::vector<std::string>& found) {
  std::error_code end;
  // Not a loop over the range, which throws where a folder cannot be read on.
  for (std::filesystem::directory_iterator entry(folder.lexically_normal(), end), none;
       !end && entry != none; entry.increment(end)) {
    if (is_name_of_server(entry->path().filename().string()) && is_own_directory(entry->path())) {
      found.push_back(entry->path().string());
    }
  }
}

}  // namespace

void add_runtime_dir_option(OptionSet& options, std::string& directory) {
  options.add("--runtime-dir", directory, "directory of the server", "DIR");
}

Result<std::string> chosen_directory(const std::string& asked) {
  if (!asked.empty()) return asked;
  US_TRY_ASSIGN(const Settings settings, read_settings());
  if (!settings.runtime_directory.empty()) return settings.runtime_directory;
  return std::string(kServersFolder) + "/" + default_name();
}

std::vector<std::string> directories_of_user() {
  std::vector<std::string> found;
  const char* const temporary = getenv("TMPDIR");
  for (const char* const folder : {kServersFolder, temporary, "/tmp"}) {  // as private_server.cc
    if (folder != nullptr && folder[0] == '/') add_servers_in(folder, found);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());  // TMPDIR may be one of them
  std::error_code ignored;
  const Result<std::string> chosen = chosen_directory("");
  if (chosen.ok() && std::find(found.begin(), found.end(), chosen.value()) == found.end() &&
      std::filesystem::is_directory(chosen.value(), ignored)) {
    found.push_back(chosen.value());
  }
  return found;
}

std::string product_text(const ServerView& server) {
  const ProductProfile* const profile = find_product(server.product);
  if (profile == nullptr) return "product " + server.product;
  const std::string soc = server.soc.empty() ? std::string(profile->socs[0].name) : server.soc;
  return soc + " (" + std::string(profile->family) + ")";
}

std::string program_name(const ProcessView& process) {
  std::string name;
  if (!process.is_of_other_namespace) {
    std::ifstream file("/proc/" + std::to_string(process.process) + "/comm");
    std::getline(file, name);
  }
  if (name.empty()) return "?";
  // A program may call itself anything.
  std::replace_if(
      name.begin(), name.end(), [](char letter) { return letter < ' ' || letter > '~'; }, '?');
  return name;
}

}  // namespace understudy::command
