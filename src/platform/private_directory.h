// SPDX-License-Identifier: Apache-2.0
//
// A directory that belongs to this user alone, where processes of the user meet. Nobody else can
// put anything there, so what is found in it is the user's own; it is looked at carefully anyway.
// Every descriptor is closed in programs that are executed and in fork children.
#pragma once

#include <string>

#include "base/result.h"
#include "platform/unique_fd.h"

namespace understudy::platform {

class PrivateDirectory {
 public:
  // Makes the directory if it is not there. Refuses links, and directories that others own or may
  // look into.
  static Result<PrivateDirectory> open_or_make(const std::string& wanted);
  PrivateDirectory(PrivateDirectory&&) = default;
  PrivateDirectory& operator=(PrivateDirectory&&) = delete;
  ~PrivateDirectory();

  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_.get(); }

  // A file of it for reading and writing, made if it is not there. Refuses what is no plain file
  // of this user with this one name.
  Result<UniqueFd> open_file(const char* name) const;
  void remove(const char* name) const;
  // All that have names of this beginning.
  void remove_all(const char* prefix) const;

 private:
  PrivateDirectory(std::string path, UniqueFd descriptor)
      : path_(std::move(path)), descriptor_(std::move(descriptor)) {}

  std::string path_;
  UniqueFd descriptor_;
};

// Where the processes of this user meet if nothing else is said.
std::string default_server_directory();

}  // namespace understudy::platform
