// SPDX-License-Identifier: Apache-2.0
//
// What the tests of sharing at its limits have in common: allocations offered by key, what the host
// spends on the memory files that a process has open, and looking until something has come true.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "rules/ipc_objects.h"
#include "rules/share_objects.h"

namespace understudy_test::share {

// Whether it becomes so, in reasonable time. For what nobody tells, so that one can only look.
template <typename Condition>
bool comes_true(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

// Bytes of host memory in the memory files of this process, own ones and those of others, each
// counted once.
inline size_t bytes_in_memory_files() {
  std::map<std::pair<dev_t, ino_t>, size_t> files;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code failed;
    const std::string target = std::filesystem::read_symlink(entry.path(), failed);
    struct stat status {};
    if (failed || !target.starts_with("/memfd:") || stat(entry.path().c_str(), &status) != 0) {
      continue;
    }
    files[{status.st_dev, status.st_ino}] = static_cast<size_t>(status.st_blocks) * 512;
  }
  size_t bytes = 0;
  for (const auto& [file, size] : files) bytes += size;
  return bytes;
}

// Gives all of a range that was marked host memory: marks alone cost a few pages.
inline void write_between_marks(void* start, size_t size) {
  EXPECT_SUCCESS(aclrtMemset(at(start, kKiB), size - 2 * kKiB, 1, size - 2 * kKiB));
}

// An allocation with a key, open to all. For either process.
struct KeyOffer {
  void* start;
  ipc::Key key;
};
inline KeyOffer offer_key(size_t size, uint8_t seed) {
  KeyOffer offer{};
  EXPECT_SUCCESS(aclrtMalloc(&offer.start, size, ACL_MEM_MALLOC_HUGE_FIRST));
  mark(offer.start, size, seed);
  offer.key = ipc::export_key(offer.start, size);
  return offer;
}
inline void withdraw_key(KeyOffer offer) {
  EXPECT_SUCCESS(aclrtIpcMemClose(offer.key.get()));
  EXPECT_SUCCESS(aclrtFree(offer.start));
}
inline void* import_key(ipc::Key key) {
  void* start = nullptr;
  EXPECT_SUCCESS(aclrtIpcMemImportByKey(&start, key.get(), ipc::kPlainImport));
  return start;
}
inline void close_key(ipc::Key key) { EXPECT_SUCCESS(aclrtIpcMemClose(key.get())); }

}  // namespace understudy_test::share
