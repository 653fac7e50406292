// SPDX-License-Identifier: Apache-2.0
//
// A directory that belongs to this user alone, where processes of the user meet. No other user can
// put anything there, so what is found in it is the user's own; it is looked at carefully anyway.
// Every descriptor is closed in programs that are executed and in fork children.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "platform/memory_file.h"
#include "platform/unique_fd.h"
#include "platform/unshared_fd.h"

namespace understudy::platform {

class PrivateDirectory {
 public:
  // Makes the directory if it is not there. Refuses links, and directories that others own or may
  // look into.
  static Result<PrivateDirectory> open_or_make(const std::string& wanted);
  // The same for one that must be there.
  static Result<PrivateDirectory> open(const std::string& wanted);
  PrivateDirectory(PrivateDirectory&&) = default;
  PrivateDirectory& operator=(PrivateDirectory&&) = delete;
  ~PrivateDirectory();

  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_.get(); }

  // A file of it for reading and writing, made if it is not there. Refuses what is no plain file
  // of this user with this one name.
  Result<UnsharedFd> open_file(const char* name) const;
  // The same for one that must be there.
  Result<UnsharedFd> open_existing_file(const char* name) const;
  void remove(const char* name) const;
  // Whether the name is a socket's, and not that of a link to one.
  bool is_socket(const char* name) const;
  // Removes a socket. Anything else of that name is the user's, and stays.
  void remove_socket(const char* name) const;
  // Of all that is in it.
  Result<std::vector<std::string>> names() const;

 private:
  static Result<PrivateDirectory> open_made(const std::string& path);
  Result<UnsharedFd> open_file_by(const char* name, int flags) const;
  // One that is the directory's at this moment, and is opened as `again` where the program has
  // closed its own; -1 if there is none.
  int usable_descriptor(UniqueFd& again) const;

  PrivateDirectory(std::string path, UniqueFd descriptor)
      : path_(std::move(path)),
        descriptor_(std::move(descriptor)),
        identity_(identity_of_file(descriptor_.get())) {}

  std::string path_;
  UniqueFd descriptor_;
  FileIdentity identity_;
};

// Whether an open file has no name any more.
bool is_removed(int file);

// Where the processes of this user meet if nothing else is said.
std::string default_server_directory();

}  // namespace understudy::platform
