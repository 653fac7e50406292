// SPDX-License-Identifier: Apache-2.0
//
// A directory for the files of one run, in memory if there is a place. Removed with everything in
// it.
#pragma once

#include <filesystem>
#include <string>

namespace understudy::command {

class WorkDirectory {
 public:
  // `purpose` is part of its name. Throws std::system_error if no directory can be made.
  explicit WorkDirectory(const std::string& purpose);
  ~WorkDirectory();
  WorkDirectory(const WorkDirectory&) = delete;
  WorkDirectory& operator=(const WorkDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace understudy::command
