// SPDX-License-Identifier: Apache-2.0
#include "platform/shared_mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/no_cancel.h"
#include "base/size_text.h"
#include "base/sizes.h"
#include "platform/fault_plan.h"
#include "platform/leak_scan.h"

namespace understudy::platform {

Result<SharedMapping> SharedMapping::make(int file, uint64_t size, int flags) {
  int number = planned_fault(SystemCall::kMapFile);
  void* data = MAP_FAILED;
  if (number == 0) {
    data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | flags, file, 0);
    if (data == MAP_FAILED) number = errno;
  }
  if (number != 0) {
    return Error::system(ErrorCode::kOutOfResources, number,
                         "the host cannot map %s of bookkeeping (errno %d)", SizeText(size).c_str(),
                         number);
  }
  madvise(data, size, MADV_DONTFORK);
  madvise(data, size, MADV_DONTDUMP);
  return SharedMapping(data, size);
}

Result<SharedMapping> SharedMapping::of_file(int file, uint64_t size) {
  US_TRY_ASSIGN(SharedMapping mapping, make(file, size, 0));
  const uint64_t existing = align_up(file_size(file), kNormalPage).value_or(size);
  if (existing < size) {
    exclude_from_leak_scan({to_address(mapping.data()) + existing, size - existing});
  }
  return mapping;
}

Result<SharedMapping> SharedMapping::without_file(uint64_t size) {
  return make(-1, size, MAP_ANONYMOUS);
}

SharedMapping& SharedMapping::operator=(SharedMapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

SharedMapping::~SharedMapping() {
  if (data_ == nullptr) return;
  end_exclusion_from_leak_scan({to_address(data_), size_});
  munmap(data_, size_);
}

namespace {

// Past this limit the kernel would answer with a signal.
bool is_past_limit(uint64_t size) {
  rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && size > limit.rlim_cur;
}

}  // namespace

Result<void> resize_file(int file, uint64_t size) {
  int number = planned_fault(SystemCall::kResizeFile);
  if (number == 0 && is_past_limit(size)) number = EFBIG;
  if (number == 0 && ftruncate(file, static_cast<off_t>(size)) != 0) number = errno;
  if (number == 0) return {};
  return Error::system(ErrorCode::kOutOfResources, number,
                       "the host cannot size a file of %s for bookkeeping (errno %d)",
                       SizeText(size).c_str(), number);
}

Result<void> clear_file(int file) {
  const NoCancel no_cancel;
  const uint64_t size = file_size(file);
  if (size == 0 || fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                             static_cast<off_t>(size)) == 0) {
    return {};
  }
  return resize_file(file, 0);
}

uint64_t file_size(int file) {
  struct stat status;
  return fstat(file, &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
}

Result<void> back_file(int file, uint64_t offset, uint64_t size) {
  int number = planned_fault(SystemCall::kCommit);
  if (number == 0 && is_past_limit(offset + size)) number = EFBIG;
  if (number == 0) {
    const NoCancel no_cancel;
    do {
      number = posix_fallocate(file, static_cast<off_t>(offset), static_cast<off_t>(size));
    } while (number == EINTR);
  }
  if (number == 0) return {};
  return Error::system(ErrorCode::kOutOfResources, number,
                       "the host has no room for %s of bookkeeping (errno %d)",
                       SizeText(size).c_str(), number);
}

}  // namespace understudy::platform
