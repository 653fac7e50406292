// SPDX-License-Identifier: Apache-2.0
//
// What the dynamic loader would load for a program, and why from there (ld.so(8)): preloaded
// libraries, then every needed one, each searched in the RPATH of the files that need it, in
// LD_LIBRARY_PATH, in the RUNPATH of the file that needs it, in the cache, in the default folders.
// Folders for special processors (glibc-hwcaps) are not searched.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/elf_file.h"

namespace understudy::command {

enum class FoundBy : unsigned char {
  kPath,  // the name is a path
  kPreload,
  kRpath,
  kLibraryPath,
  kRunpath,
  kCache,
  kDefault,
};

struct Found {
  std::string path;
  FoundBy by = FoundBy::kPath;
  std::string of;      // the file whose RPATH or RUNPATH it was
  std::string folder;  // the entry of the list, as it is written
};

class LoadPlan {
 public:
  struct Object {
    ElfFile file;
    std::string requested;  // by which name it was needed
    Found found;
    size_t needed_by;  // index of an object; kNone for the program
  };
  struct Missing {
    std::string name;
    size_t needed_by;
  };
  static constexpr size_t kNone = SIZE_MAX;

  // A process without a program: what any program would find.
  LoadPlan() = default;
  explicit LoadPlan(const ElfFile& program);

  // Adds what dlopen(3) of a file loads, with all that it needs.
  void open(const std::string& path);

  // Whether LD_LIBRARY_PATH and LD_PRELOAD count: not for a program that gets another user's
  // rights.
  bool is_trusting() const { return is_trusting_; }
  const std::vector<Object>& objects() const { return objects_; }
  const std::vector<Missing>& missing() const { return missing_; }
  // What is loaded under a name; null if nothing is.
  const Object* find(const std::string& name) const;
  // What dlopen(name) would find that is not loaded.
  std::optional<Found> search(const std::string& name) const;

 private:
  std::optional<Found> search(const std::string& name, size_t needed_by) const;
  std::optional<Found> search_rpaths(const std::string& name, size_t needed_by) const;
  void preload();
  void add(ElfFile file, std::string requested, Found found, size_t needed_by);
  void add_needed_from(size_t first);

  std::vector<Object> objects_;  // in the order of loading; the program is the first
  std::vector<Missing> missing_;
  bool is_trusting_ = true;
};

}  // namespace understudy::command
