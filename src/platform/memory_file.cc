// SPDX-License-Identifier: Apache-2.0
#include "platform/memory_file.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <string>

#include "base/no_cancel.h"
#include "base/size_text.h"
#include "platform/fault_plan.h"
#include "platform/fork_sentinel.h"

namespace understudy::platform {

void close_descriptor(int descriptor) {
  const NoCancel no_cancel;
  close(descriptor);
}

namespace {

unsigned memfd_flags(FileKind kind) {
  switch (kind) {
    case FileKind::kShared:
      return MFD_CLOEXEC;
    case FileKind::kHugetlb2M:
      return MFD_CLOEXEC | MFD_HUGETLB | MFD_HUGE_2MB;
    case FileKind::kHugetlb1G:
      return MFD_CLOEXEC | MFD_HUGETLB | MFD_HUGE_1GB;
  }
  return MFD_CLOEXEC;
}

bool exceeds_file_size_limit(uint64_t size) {
  rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
         size > limit.rlim_cur;
}

}  // namespace

Result<MemoryFile> MemoryFile::create(FileKind kind, const char* name, uint64_t size) {
  int number = planned_fault(SystemCall::kCreateFile);
  UniqueFd descriptor(number != 0 ? -1 : memfd_create(name, memfd_flags(kind)));
  if (!descriptor.valid()) {
    if (number == 0) number = errno;
    return Error::system(ErrorCode::kOutOfResources, number,
                         "the host cannot create a memory file for %s (errno %d)", name, number);
  }
  if (exceeds_file_size_limit(size)) {
    return Error::system(ErrorCode::kOutOfResources, EFBIG,
                         "a memory file of %s for %s is past the file size limit of the process",
                         SizeText(size).c_str(), name);
  }
  number = planned_fault(SystemCall::kResizeFile);
  if (number == 0 && ftruncate(descriptor.get(), static_cast<off_t>(size)) != 0) number = errno;
  if (number != 0) {
    return Error::system(ErrorCode::kOutOfResources, number,
                         "the host cannot size a memory file of %s for %s (errno %d)",
                         SizeText(size).c_str(), name, number);
  }
  close_in_fork_child(descriptor.get());
  return MemoryFile(std::move(descriptor), kind, size);
}

MemoryFile MemoryFile::adopt(UniqueFd descriptor, FileKind kind, uint64_t size) {
  close_in_fork_child(descriptor.get());
  return MemoryFile(std::move(descriptor), kind, size);
}

FileIdentity identity_of_file(int descriptor) {
  struct stat status;
  if (fstat(descriptor, &status) != 0) return {};
  return {status.st_dev, status.st_ino};
}

Result<MemoryFile> MemoryFile::open_of_process(int32_t process, int descriptor,
                                               const FileIdentity& identity, FileKind kind,
                                               uint64_t size) {
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(descriptor);
  int number = planned_fault(SystemCall::kOpenFile);
  UniqueFd file;
  if (number == 0) {
    // Whatever it may be by now must not keep us waiting.
    const NoCancel no_cancel;
    file = UniqueFd(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
    if (!file.valid()) number = errno;
  }
  if (number == 0 && identity_of_file(file.get()) != identity) number = ESTALE;
  if (number != 0) {
    return Error::system(ErrorCode::kConnection, number, "%s cannot be opened (errno %d)",
                         path.c_str(), number);
  }
  return adopt(std::move(file), kind, size);
}

MemoryFile::~MemoryFile() {
  if (!descriptor_.valid()) return;
  forget_for_fork_child(descriptor_.get());
  if (!is_open()) descriptor_.release();  // the number is another file's
}

Result<void> MemoryFile::allocate(uint64_t offset, uint64_t size) {
  int number = planned_fault(SystemCall::kCommit);
  if (number == 0) {
    const NoCancel no_cancel;
    while (fallocate(usable_descriptor(), 0, static_cast<off_t>(offset),
                     static_cast<off_t>(size)) != 0) {
      number = errno;
      if (number != EINTR) break;
      number = 0;
    }
  }
  if (number == 0) return {};
  return Error::system(ErrorCode::kOutOfMemory, number,
                       "the host has no memory for %s of device memory (errno %d)",
                       SizeText(size).c_str(), number);
}

Result<void> MemoryFile::discard(uint64_t offset, uint64_t size) {
  const NoCancel no_cancel;
  int number = planned_fault(SystemCall::kDiscard);
  if (number == 0 && fallocate(usable_descriptor(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                               static_cast<off_t>(offset), static_cast<off_t>(size)) != 0) {
    number = errno;
  }
  if (number == 0) return {};
  return Error::system(ErrorCode::kOutOfResources, number,
                       "the host did not take back %s of memory (errno %d)", SizeText(size).c_str(),
                       number);
}

Result<void> MemoryFile::set_aside(uint64_t offset, uint64_t size) {
  // The reservation of a shared hugetlb mapping belongs to the file and outlives the mapping.
  int number = planned_fault(SystemCall::kCommit);
  void* mapping = MAP_FAILED;
  if (number == 0) {
    mapping = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, usable_descriptor(),
                   static_cast<off_t>(offset));
    if (mapping == MAP_FAILED) number = errno;
  }
  if (number != 0) {
    return Error::system(ErrorCode::kOutOfMemory, number,
                         "the host's hugetlb pool has no %s left (errno %d)",
                         SizeText(size).c_str(), number);
  }
  munmap(mapping, size);
  return {};
}

}  // namespace understudy::platform
