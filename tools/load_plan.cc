// SPDX-License-Identifier: Apache-2.0
#include "tools/load_plan.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "platform/text_file.h"
#include "tools/loader_cache.h"

namespace understudy::command {

namespace {

#if defined(__x86_64__)
#define US_TRIPLET "x86_64-linux-gnu"
#elif defined(__aarch64__)
#define US_TRIPLET "aarch64-linux-gnu"
#endif
constexpr const char* kDefaultFolders[] = {
    "/lib/" US_TRIPLET, "/usr/lib/" US_TRIPLET, "/lib64", "/usr/lib64", "/lib", "/usr/lib"};

std::vector<std::string> split(const std::string& list, const char* separators) {
  std::vector<std::string> entries;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find_first_of(separators, begin), list.size());
    entries.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return entries;
}

std::string folder_of(const std::string& path) {
  std::error_code unknown;
  const std::filesystem::path whole = std::filesystem::canonical(path, unknown);
  return (unknown ? std::filesystem::path(path) : whole).parent_path().string();
}

// $ORIGIN is where the file that says so lies.
std::string expanded(std::string entry, const std::string& origin) {
  for (const std::string_view word : {"${ORIGIN}", "$ORIGIN"}) {
    for (size_t at = entry.find(word); at != std::string::npos;
         at = entry.find(word, at + origin.size())) {
      entry.replace(at, word.size(), origin);
    }
  }
  return entry;
}

// The first of the folders with such a library, one that this machine can load.
std::optional<Found> search_list(const std::string& name, const std::string& list,
                                 const char* separators, const std::string& origin, FoundBy by,
                                 const std::string& of) {
  for (const std::string& entry : split(list, separators)) {
    const std::string folder = expanded(entry.empty() ? "." : entry, origin);
    std::string path = folder + "/" + name;
    if (ElfFile::read(path)) return Found{std::move(path), by, of, entry.empty() ? "." : entry};
  }
  return std::nullopt;
}

std::optional<Found> search_system(const std::string& name) {
  for (const std::string& path : cached_libraries(name)) {
    if (ElfFile::read(path)) return Found{path, FoundBy::kCache, "", folder_of(path)};
  }
  for (const char* const folder : kDefaultFolders) {
    std::string path = std::string(folder) + "/" + name;
    if (ElfFile::read(path)) return Found{std::move(path), FoundBy::kDefault, "", folder};
  }
  return std::nullopt;
}

bool gets_other_rights(const std::string& program) {
  struct stat status;
  if (stat(program.c_str(), &status) != 0) return false;
  return ((status.st_mode & S_ISUID) != 0 && status.st_uid != getuid()) ||
         ((status.st_mode & S_ISGID) != 0 && status.st_gid != getgid());
}

}  // namespace

LoadPlan::LoadPlan(const ElfFile& program) : is_trusting_(!gets_other_rights(program.path)) {
  add(program, program.path, Found{program.path, FoundBy::kPath, "", ""}, kNone);
  if (!program.is_dynamic) return;
  if (is_trusting_) preload();
  add_needed_from(0);
}

void LoadPlan::open(const std::string& path) {
  std::optional<ElfFile> file = ElfFile::read(path);
  if (!file) return;
  const size_t first = objects_.size();
  add(std::move(*file), path, Found{path, FoundBy::kPath, "", ""}, objects_.empty() ? kNone : 0);
  add_needed_from(first);
}

void LoadPlan::preload() {
  const auto list = platform::environment_variable("LD_PRELOAD");
  if (!list) return;
  for (const std::string& name : split(*list, ": ")) {
    if (name.empty()) continue;
    std::optional<Found> found = search(name, 0);
    if (!found) continue;
    found->by = FoundBy::kPreload;
    std::optional<ElfFile> file = ElfFile::read(found->path);
    if (file) add(std::move(*file), name, std::move(*found), 0);
  }
}

void LoadPlan::add(ElfFile file, std::string requested, Found found, size_t needed_by) {
  objects_.push_back({std::move(file), std::move(requested), std::move(found), needed_by});
}

void LoadPlan::add_needed_from(size_t first) {
  for (size_t i = first; i < objects_.size(); ++i) {  // grows meanwhile
    const std::vector<std::string> needed = objects_[i].file.needed;
    for (const std::string& name : needed) {
      if (find(name) != nullptr) continue;
      std::optional<Found> found = search(name, i);
      std::optional<ElfFile> file = found ? ElfFile::read(found->path) : std::nullopt;
      if (file) {
        add(std::move(*file), name, std::move(*found), i);
      } else {
        missing_.push_back({name, i});
      }
    }
  }
}

const LoadPlan::Object* LoadPlan::find(const std::string& name) const {
  for (const Object& object : objects_) {
    if (object.requested == name || object.file.name == name) return &object;
  }
  return nullptr;
}

std::optional<Found> LoadPlan::search(const std::string& name) const {
  return search(name, objects_.empty() ? kNone : 0);
}

std::optional<Found> LoadPlan::search(const std::string& name, size_t needed_by) const {
  if (name.find('/') != std::string::npos) {
    return ElfFile::read(name) ? std::optional(Found{name, FoundBy::kPath, "", ""}) : std::nullopt;
  }
  const ElfFile* const file = needed_by == kNone ? nullptr : &objects_[needed_by].file;
  std::optional<Found> found;
  if (file != nullptr && !file->runpath) found = search_rpaths(name, needed_by);
  const auto library_path = platform::environment_variable("LD_LIBRARY_PATH");
  if (!found && is_trusting_ && library_path && !library_path->empty()) {
    found = search_list(name, *library_path, ":;", "", FoundBy::kLibraryPath, "");
  }
  if (!found && file != nullptr && file->runpath) {
    found = search_list(name, *file->runpath, ":", folder_of(file->path), FoundBy::kRunpath,
                        file->path);
  }
  const bool asks_system = file == nullptr || file->searches_defaults;
  return found || !asks_system ? found : search_system(name);
}

// Of the file that needs it, of the one that needs that, up to the program.
std::optional<Found> LoadPlan::search_rpaths(const std::string& name, size_t needed_by) const {
  for (size_t i = needed_by; i != kNone; i = objects_[i].needed_by) {
    const ElfFile& file = objects_[i].file;
    if (!file.rpath) continue;
    std::optional<Found> found =
        search_list(name, *file.rpath, ":", folder_of(file.path), FoundBy::kRpath, file.path);
    if (found) return found;
  }
  return std::nullopt;
}

}  // namespace understudy::command
