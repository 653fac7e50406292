// SPDX-License-Identifier: Apache-2.0
//
// Processes of a test in namespaces of their own, as containers have them.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <string>

#include "rules/share_objects.h"

namespace understudy_test::share {

// Processes started during its life are in a new namespace.
class NewNamespace {
 public:
  explicit NewNamespace(int kind)
      : kind_(kind), own_(open(("/proc/self/ns/" + name()).c_str(), O_RDONLY | O_CLOEXEC)) {
    if (unshare(kind) != 0) error_ = errno;
  }
  ~NewNamespace() {
    if (error_ == 0) {
      EXPECT_EQ(setns(own_, kind_), 0) << strerror(errno);
    }
    close(own_);
  }
  NewNamespace(const NewNamespace&) = delete;
  NewNamespace& operator=(const NewNamespace&) = delete;

  int error() const { return error_; }

 private:
  std::string name() const {
    return kind_ == CLONE_NEWPID ? "pid" : kind_ == CLONE_NEWNET ? "net" : "ipc";
  }

  const int kind_;
  const int own_;
  int error_ = 0;
};

// In the other process: a /proc with the numbers of its own namespace. It is put on top of the old
// one, which is first made private, so that no other namespace sees it. Not "/": in a chroot that
// is no mount point.
inline bool mount_own_proc() {
  return unshare(CLONE_NEWNS) == 0 &&
         mount("none", "/proc", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("proc", "/proc", "proc", 0, nullptr) == 0;
}

enum class Proc : uint8_t { kCommon, kOwn };

struct Surroundings {
  const char* name;
  int kind;
  Proc proc;
};

// A process bound to device 0 in a new namespace, or none where that is not allowed: then the test
// is skipped.
inline void start_inside(const Surroundings& surroundings, std::optional<Remote>& process) {
  process.reset();
  {
    const NewNamespace inside(surroundings.kind);
    if (inside.error() != 0) {
      GTEST_SKIP() << "no new namespace without privileges: " << strerror(inside.error());
    }
    // LeakSanitizer does not find the threads of a process whose numbers in /proc are others.
    process.emplace(kNoDevice, std::initializer_list<Variable>{{"LSAN_OPTIONS", "detect_leaks=0"}});
  }
  if (surroundings.proc == Proc::kOwn) {
    ASSERT_TRUE(process->call(mount_own_proc));
  }
  process->call(bind, 0);
}

}  // namespace understudy_test::share
