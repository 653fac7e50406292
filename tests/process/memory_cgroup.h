// SPDX-License-Identifier: Apache-2.0
//
// A memory cgroup of a test's own, below or beside the one that the test is in. It is removed with
// its scope; the processes in it must have ended by then.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

namespace understudy_test {

class MemoryCgroup {
 public:
  explicit MemoryCgroup(uint64_t limit) {
    if (geteuid() != 0) {
      reason_ = "only root may make a cgroup";
      return;
    }
    if (const std::string own = own_path(":memory:"); !own.empty()) {
      folder_ = "/sys/fs/cgroup/memory" + own;
      limit_file_ = "memory.limit_in_bytes";
      usage_file_ = "memory.usage_in_bytes";
      events_file_ = "memory.oom_control";
    } else {
      // A cgroup with processes has no others below it that limit memory, but for the root.
      std::string beside = own_path("0::");
      if (beside != "/") beside.resize(beside.rfind('/'));
      folder_ = "/sys/fs/cgroup" + beside;
      limit_file_ = "memory.max";
      usage_file_ = "memory.current";
      events_file_ = "memory.events";
    }
    folder_ += "/understudy-test-" + std::to_string(getpid());
    if (mkdir(folder_.c_str(), 0755) != 0) {
      reason_ = "no cgroup can be made at " + folder_;
      return;
    }
    is_made_ = true;
    if (!write(limit_file_, limit)) reason_ = "the memory of " + folder_ + " cannot be limited";
  }
  ~MemoryCgroup() {
    if (is_made_) {
      EXPECT_EQ(rmdir(folder_.c_str()), 0) << folder_;
    }
  }
  MemoryCgroup(const MemoryCgroup&) = delete;
  MemoryCgroup& operator=(const MemoryCgroup&) = delete;

  // Empty if the cgroup is there.
  const std::string& why_not() const { return reason_; }
  void add(pid_t process) {
    EXPECT_TRUE(write("cgroup.procs", static_cast<uint64_t>(process))) << folder_;
  }
  uint64_t usage() const {
    uint64_t bytes = 0;
    std::ifstream(folder_ + "/" + usage_file_) >> bytes;
    return bytes;
  }
  // How many processes the kernel has killed for want of memory.
  uint64_t kills() const {
    std::ifstream events(folder_ + "/" + events_file_);
    uint64_t number = 0;
    for (std::string name; events >> name >> number;) {
      if (name == "oom_kill") return number;
    }
    return 0;
  }

 private:
  // The path of this process's cgroup in a hierarchy, or "".
  static std::string own_path(const std::string& marker) {
    std::ifstream file("/proc/self/cgroup");
    for (std::string line; std::getline(file, line);) {
      if (const size_t at = line.find(marker); at != std::string::npos) {
        return line.substr(at + marker.size());
      }
    }
    return "";
  }
  bool write(const std::string& name, uint64_t number) {
    std::ofstream file(folder_ + "/" + name);
    file << number << std::flush;
    return file.good();
  }

  std::string folder_;
  std::string limit_file_;
  std::string usage_file_;
  std::string events_file_;
  std::string reason_;
  bool is_made_ = false;
};

}  // namespace understudy_test
