// SPDX-License-Identifier: Apache-2.0
//
// The tree that this command is installed in: what clients know as ASCEND_HOME_PATH. The build tree
// is laid out alike.
#pragma once

#include <string>
#include <utility>

namespace understudy::command {

class Installation {
 public:
  // The one that the running file lies in, links followed. Its home is empty where the host does
  // not tell.
  static Installation of_this_command();

  explicit Installation(std::string home) : home_(std::move(home)) {}

  const std::string& home() const { return home_; }
  std::string commands() const { return home_ + "/bin"; }
  std::string libraries() const { return home_ + "/lib64"; }
  std::string library() const { return libraries() + "/libascendcl.so"; }
  std::string headers() const { return home_ + "/include"; }
  std::string python() const { return home_ + "/python"; }
  // A folder with a link npu-smi and nothing else. Not on anyone's PATH by itself: programs take
  // that command for a sign of real hardware.
  std::string npu_smi_folder() const { return home_ + "/libexec/understudy"; }

  // Whether the library is where it belongs.
  bool has_library() const;

 private:
  std::string home_;
};

}  // namespace understudy::command
