// SPDX-License-Identifier: Apache-2.0
#include "tools/conformance/library_under_test.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "device/product_profile.h"
#include "tools/child_process.h"

namespace understudy::command {

namespace {

namespace fs = std::filesystem;

// Two products have the same chips; one of them runs programs on the device itself.
std::string product_of(std::string_view soc, bool runs_on_device) {
  for (const ProductProfile& product : product_profiles()) {
    if ((product.run_mode == RunMode::kDevice) != runs_on_device) continue;
    for (const Soc& known : product.socs) {
      if (known.name == soc) return std::string(product.key);
    }
  }
  return "unknown";
}

std::string text_or_empty(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

int number_or(const nlohmann::json& object, const char* key, int otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? found->get<int>() : otherwise;
}

// How a process ended, by its wait status.
std::string end_text(int status) {
  if (WIFSIGNALED(status)) return "was ended by signal " + std::to_string(WTERMSIG(status));
  return "ended with status " + std::to_string(WEXITSTATUS(status));
}

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// What would change how the library is configured, or how its functions are found. Which devices
// are used is the user's choice where they are real ones.
bool is_dropped(std::string_view entry, bool is_foreign) {
  if (entry.starts_with("ASCEND_RT_VISIBLE_DEVICES=")) return !is_foreign;
  return entry.starts_with("UNDERSTUDY_") || entry.starts_with("GTEST_") ||
         entry.starts_with("LD_BIND_NOW=") || entry.starts_with("LD_LIBRARY_PATH=");
}

}  // namespace

LibraryUnderTest::LibraryUnderTest(const fs::path& library, fs::path directory)
    : directory_(std::move(directory)) {
  std::error_code error;
  library_ = fs::canonical(library, error);
  if (error || !fs::is_regular_file(library_, error)) {
    throw LibraryError(library.string() + " is no file");
  }
  fs::create_directories(directory_);
  fs::create_symlink(library_, directory_ / "libascendcl.so");
  // Where the package has a libacl_rt.so of its own, the library may need that one.
  if (!fs::exists(library_.parent_path() / "libacl_rt.so", error)) {
    fs::create_symlink(library_, directory_ / "libacl_rt.so");
  }
}

LibraryDescription LibraryUnderTest::describe(const std::string& program,
                                              std::chrono::milliseconds time_limit) const {
  const fs::path answer = directory_ / "description";
  const fs::path output = directory_ / "description.output";
  const fs::path server = directory_ / "server";
  std::vector<std::string> variables = environment(nullptr);
  variables.push_back("UNDERSTUDY_TEST_DESCRIBE=" + answer.string());
  variables.push_back("UNDERSTUDY_RUNTIME_DIR=" + server.string());
  ChildProcess process({program}, std::move(variables), output.string());
  const std::optional<int> status = process.wait_for(time_limit);
  std::ifstream file(answer);
  const nlohmann::json object =
      nlohmann::json::parse(std::string(std::istreambuf_iterator<char>(file), {}), nullptr, false);
  if (!status) throw LibraryError(library_.string() + " does not tell its version in time");
  if (!object.is_object()) {
    const std::string words = first_line(output);
    throw LibraryError(
        library_.string() + " cannot be loaded: " +
        (words.empty() ? "the process " + end_text(*status) + " without a word" : words));
  }
  LibraryDescription description;
  description.file = library_.string();
  description.runtime_version = text_or_empty(object, "runtime_version");
  description.package_version = text_or_empty(object, "package_version");
  description.soc = text_or_empty(object, "soc");
  description.product = product_of(description.soc, object.value("runs_on_device", false));
  description.devices = number_or(object, "devices", -1);
  description.init_code = number_or(object, "init", 0);
  description.is_understudy = object.value("understudy", false);
  return description;
}

std::vector<std::string> LibraryUnderTest::environment(const LibraryDescription* foreign) const {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!is_dropped(*entry, foreign != nullptr)) entries.emplace_back(*entry);
  }
  std::string folders = directory_.string() + ":" + library_.parent_path().string();
  if (const char* more = getenv("LD_LIBRARY_PATH"); more != nullptr && *more != '\0') {
    folders += std::string(":") + more;
  }
  entries.push_back("LD_LIBRARY_PATH=" + folders);
  entries.push_back("UNDERSTUDY_TEST_DIRECTORY=" + directory_.string());
  if (foreign != nullptr) {
    entries.push_back("UNDERSTUDY_TEST_FOREIGN=" + foreign->product);
    entries.push_back("UNDERSTUDY_TEST_SOC=" + foreign->soc);
  }
  return entries;
}

}  // namespace understudy::command
