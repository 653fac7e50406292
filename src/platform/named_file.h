// SPDX-License-Identifier: Apache-2.0
//
// A plain file that several processes map, known by its path. It is opened for each change of its
// size and closed again: a descriptor that stays open may be closed by the program, and its number
// be that of another file. Any thread may call anything.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/result.h"
#include "platform/shared_mapping.h"
#include "platform/unique_fd.h"

namespace understudy::platform {

// An open file that is held against all others that open it, until this ends. Mappings keep the
// file open, and would keep it held.
class FileTurn {
 public:
  FileTurn() = default;
  explicit FileTurn(UniqueFd file) : file_(std::move(file)) {}
  FileTurn(FileTurn&&) noexcept = default;
  FileTurn& operator=(FileTurn&& other) noexcept;
  ~FileTurn() { give_up(); }

  int file() const { return file_.get(); }

 private:
  void give_up() noexcept;

  UniqueFd file_;
};

class NamedFile {
 public:
  // Opens it, or makes an empty one that its owner alone may use, and holds it against all others
  // that do the same, until `turn` ends. Fails after five seconds of waiting, and for what is no
  // plain file.
  static Result<NamedFile> open(const std::string& path, FileTurn& turn);

  const std::string& path() const { return path_; }
  // The file again. Fails if the path means another one by now, or none.
  Result<UniqueFd> open_again() const;
  // Takes its name away: what is open or mapped stays.
  Result<void> remove() const;
  // Makes sure that a range of it can be touched. Fails if the path means another file by now.
  Result<void> back(uint64_t offset, uint64_t size) const;

 private:
  NamedFile(std::string path, uint64_t device, uint64_t inode)
      : path_(std::move(path)), device_(device), inode_(inode) {}

  std::string path_;
  uint64_t device_;
  uint64_t inode_;
};

// Gives the pages of a range memory now, where that takes less than one by one. Only a hint.
void populate_for_writing(void* address, uint64_t size) noexcept;

}  // namespace understudy::platform
