// SPDX-License-Identifier: Apache-2.0
//
// A file that lives in memory (memfd): the bytes behind a backing file. Sparse, so its size costs
// nothing.
//
// All functions: offsets and sizes are multiples of the file's page size and size > 0. A failure
// carries errno, changes nothing unless said, and never raises a signal.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "platform/unique_fd.h"

namespace understudy::platform {

// What the pages of a file are: ordinary memory, or pages of one of the kernel's hugetlb pools.
enum class FileKind : uint8_t { kShared, kHugetlb2M, kHugetlb1G };

// Tells files apart.
struct FileIdentity {
  uint64_t file_system = 0;
  uint64_t inode = 0;

  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

FileIdentity identity_of_file(int descriptor);

class MemoryFile {
 public:
  // Fails also if the size is past RLIMIT_FSIZE, which the kernel would answer with SIGXFSZ.
  static Result<MemoryFile> create(FileKind kind, const char* name, uint64_t size);

  // A file of another process, as it came from there.
  static MemoryFile adopt(UniqueFd descriptor, FileKind kind, uint64_t size);
  // The same, taken from the process itself. Fails if it has nothing there, or another file.
  static Result<MemoryFile> open_of_process(int32_t process, int descriptor,
                                            const FileIdentity& identity, FileKind kind,
                                            uint64_t size);

  MemoryFile(MemoryFile&&) = default;
  MemoryFile& operator=(MemoryFile&&) = delete;
  ~MemoryFile();

  int descriptor() const { return descriptor_.get(); }
  // The same for a system call; -1 if the program has closed it: its number may name another file
  // by now, which must not be mapped, sent or punched in place of this one.
  int usable_descriptor() const { return is_open() ? descriptor_.get() : -1; }
  FileKind kind() const { return kind_; }
  uint64_t size() const { return size_; }
  const FileIdentity& identity() const { return identity_; }

  // Makes pages for a range. On failure some pages of the range may have been made.
  Result<void> allocate(uint64_t offset, uint64_t size);
  // Gives the pages of a range back to the system; it reads as zeros afterwards.
  Result<void> discard(uint64_t offset, uint64_t size);
  // Hugetlb only: sets pages of the pool aside for a range, so that allocate cannot fail for want
  // of them. Costs no zeroing. Repeating it takes nothing twice.
  Result<void> set_aside(uint64_t offset, uint64_t size);

 private:
  MemoryFile(UniqueFd descriptor, FileKind kind, uint64_t size)
      : descriptor_(std::move(descriptor)),
        identity_(identity_of_file(descriptor_.get())),
        kind_(kind),
        size_(size) {}
  bool is_open() const { return identity_of_file(descriptor_.get()) == identity_; }

  UniqueFd descriptor_;
  FileIdentity identity_;
  FileKind kind_;
  uint64_t size_;
};

}  // namespace understudy::platform
