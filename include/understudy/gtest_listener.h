/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For C++ tests with GoogleTest, C++14 or later: a test that leaves objects on the devices fails,
 * and a test that fails shows what the software NPU said of failed calls and tasks.
 *
 *   int main(int argc, char** argv) {
 *     testing::InitGoogleTest(&argc, argv);
 *     understudy::testing::private_server();
 *     understudy::testing::install();
 *     return RUN_ALL_TESTS();
 *   }
 *
 * Programs that link gtest_main have in one of their files, at namespace scope:
 *
 *   const bool installed = understudy::testing::install();
 *
 * The same program runs on a real device, where all of this does nothing.
 */
#ifndef UNDERSTUDY_GTEST_LISTENER_H_
#define UNDERSTUDY_GTEST_LISTENER_H_

#include <ftw.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "acl/acl_understudy.h"

// Null on a real device.
#pragma weak aclUnderstudyCountObjects
#pragma weak aclUnderstudySetErrorListener
#pragma weak aclUnderstudyRuntimeDirectory

namespace understudy {
namespace testing {

enum class Leaks { kFail, kWarn, kOff };

struct Options {
  Leaks leaks = Leaks::kFail;  // what becomes of a test that leaves objects
  bool errors = true;          // whether a test that fails shows what failed before
};

namespace internal {

inline bool has_software_npu() { return &aclUnderstudyCountObjects != nullptr; }

// What failed since the latest clear(): the first and the last ones. Any thread may add.
class ErrorRecord {
 public:
  void clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    first_.clear();
    last_.clear();
    left_out_ = 0;
  }

  static void hear(const aclUnderstudyFailure* failure, void* self) {
    static_cast<ErrorRecord*>(self)->add(line_of(*failure));
  }

  void print() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (first_.empty()) return;
    std::printf("software NPU: errors\n");
    for (const std::string& line : first_) std::printf("  %s\n", line.c_str());
    if (left_out_ > 0) std::printf("  (%llu more)\n", left_out_);
    for (const std::string& line : last_) std::printf("  %s\n", line.c_str());
    std::fflush(stdout);
  }

 private:
  static constexpr std::size_t kMost = 10;  // of the beginning, where causes are, and of the end

  static std::string line_of(const aclUnderstudyFailure& failure) {
    const std::string subject = failure.function != nullptr
                                    ? failure.function
                                    : "a task of stream " + std::to_string(failure.streamId) +
                                          " on device " + std::to_string(failure.deviceId);
    return subject + " failed with " + std::to_string(failure.code) + ": " + failure.sentence;
  }

  void add(std::string line) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (first_.size() < kMost) {
      first_.push_back(std::move(line));
      return;
    }
    last_.push_back(std::move(line));
    if (last_.size() <= kMost) return;
    last_.pop_front();
    ++left_out_;
  }

  mutable std::mutex mutex_;
  std::vector<std::string> first_;
  std::deque<std::string> last_;
  unsigned long long left_out_ = 0;
};

inline aclUnderstudyObjects count_objects() {
  aclUnderstudyObjects objects = {};
  aclUnderstudyCountObjects(&objects);
  return objects;
}

struct ObjectKind {
  uint64_t aclUnderstudyObjects::*count;
  const char* one;
  const char* several;
  const char* ended_by;
};

inline const std::vector<ObjectKind>& object_kinds() {
  using Objects = aclUnderstudyObjects;
  static const std::vector<ObjectKind> kinds = {
      {&Objects::allocations, "allocation", "allocations", "aclrtFree"},
      {&Objects::hostAllocations, "host allocation", "host allocations", "aclrtFreeHost"},
      {&Objects::physicalHandles, "physical handle", "physical handles", "aclrtFreePhysical"},
      {&Objects::reservations, "reservation", "reservations", "aclrtReleaseMemAddress"},
      {&Objects::mappings, "mapping", "mappings", "aclrtUnmapMem"},
      {&Objects::streams, "stream", "streams", "aclrtDestroyStream"},
      {&Objects::events, "event", "events", "aclrtDestroyEvent"},
      {&Objects::notifies, "notify", "notifies", "aclrtDestroyNotify"},
      {&Objects::pools, "memory pool", "memory pools", "aclrtMemPoolDestroy"},
  };
  return kinds;
}

inline std::string size_text(uint64_t bytes) {
  const char* const units[] = {"bytes", "KiB", "MiB", "GiB"};
  std::size_t unit = 0;
  for (; unit < 3 && bytes % 1024 == 0; ++unit) bytes /= 1024;
  return std::to_string(bytes) + " " + units[unit];
}

// What there is more of than before, and the calls that end it; empty if there is nothing.
inline std::string described(const aclUnderstudyObjects& before,
                             const aclUnderstudyObjects& after) {
  std::string found;
  std::string calls;
  const auto append = [](std::string& list, const std::string& item) {
    list += (list.empty() ? "" : ", ") + item;
  };
  for (const ObjectKind& kind : object_kinds()) {
    if (after.*kind.count <= before.*kind.count) continue;
    const uint64_t more = after.*kind.count - before.*kind.count;
    append(found, std::to_string(more) + " " + (more == 1 ? kind.one : kind.several));
    append(calls, kind.ended_by);
  }
  if (after.deviceBytes > before.deviceBytes) {
    append(found, size_text(after.deviceBytes - before.deviceBytes) + " of device memory");
  }
  return found + (calls.empty() ? "" : " (" + calls + ")");
}

// Owned by GoogleTest. Its events come on the thread that runs the tests.
class Listener : public ::testing::EmptyTestEventListener {
 public:
  Listener() { aclUnderstudySetErrorListener(ErrorRecord::hear, &errors_); }
  ~Listener() override { aclUnderstudySetErrorListener(nullptr, nullptr); }

  void choose(const Options& options) { options_ = options; }

  void OnTestStart(const ::testing::TestInfo&) override {
    errors_.clear();
    before_ = count_objects();
  }

  // After the fixture's end, and before the test's outcome is printed: the listener that was added
  // last is told of ends first.
  void OnTestEnd(const ::testing::TestInfo& test) override {
    if (test.result()->Passed()) check_leaks(test);
    if (test.result()->Failed() && options_.errors) errors_.print();
  }

 private:
  void check_leaks(const ::testing::TestInfo& test) const {
    if (options_.leaks == Leaks::kOff) return;
    const std::string left = described(before_, count_objects());
    if (left.empty()) return;
    const std::string leaks = "test leaks: " + left;
    if (options_.leaks == Leaks::kFail) {
      ADD_FAILURE_AT(test.file(), test.line()) << leaks;
    } else {
      std::printf("warning: %s\n", leaks.c_str());
      std::fflush(stdout);
    }
  }

  Options options_;
  ErrorRecord errors_;
  aclUnderstudyObjects before_ = {};
};

// The directory that private_server() made; empty if there is none.
inline std::string& own_directory() {
  static std::string path;
  return path;
}

inline int remove_entry(const char* path, const struct stat*, int, struct FTW*) {
  std::remove(path);
  return 0;
}

}  // namespace internal

// Watches all tests from now on; called again, it changes the options. Gives true on the software
// NPU. Not for several threads at once.
inline bool install(const Options& options = Options()) {
  if (!internal::has_software_npu()) return false;
  static internal::Listener* const listener = [] {
    auto* const made = new internal::Listener;
    ::testing::UnitTest::GetInstance()->listeners().Append(made);
    return made;
  }();
  listener->choose(options);
  return true;
}

// Gives this program devices that no other process uses, until it exits: a runtime directory of its
// own in UNDERSTUDY_RUNTIME_DIR. A directory that is set there already stays. Gives false where it
// is too late, after the first ACL call, and on a real device.
inline bool private_server() {
  if (!internal::has_software_npu() || aclUnderstudyRuntimeDirectory() != nullptr) return false;
  if (std::getenv("UNDERSTUDY_RUNTIME_DIR") != nullptr) return true;
  for (const char* const parent : {"/dev/shm", "/tmp"}) {
    // A name by which `understudy ps` and `understudy clean` know the servers of this user.
    std::string path =
        std::string(parent) + "/understudy-" + std::to_string(geteuid()) + ".test-XXXXXX";
    if (mkdtemp(&path[0]) == nullptr) continue;
    static const pid_t owner = getpid();
    internal::own_directory() = path;
    std::atexit([] {  // of this process, not of one that it forked
      if (getpid() != owner) return;
      nftw(internal::own_directory().c_str(), internal::remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    });
    return setenv("UNDERSTUDY_RUNTIME_DIR", path.c_str(), 1) == 0;
  }
  return false;
}

}  // namespace testing
}  // namespace understudy

#endif  // UNDERSTUDY_GTEST_LISTENER_H_
