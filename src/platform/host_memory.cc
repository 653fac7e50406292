// SPDX-License-Identifier: Apache-2.0
#include "platform/host_memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/size_text.h"
#include "platform/fault_plan.h"
#include "platform/page_commit.h"

namespace understudy::platform {

namespace {

Error failure(int number, VirtualRange range, const char* what) {
  return Error::system(ErrorCode::kOutOfMemory, number, "the host cannot %s %s (errno %d)", what,
                       SizeText(range.size).c_str(), number);
}

void* map_anonymous(uint64_t size, int more_flags) {
  return mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | more_flags, -1,
              0);
}

}  // namespace

Result<VirtualRange> map_host_memory(uint64_t size, HostPages pages) {
  if (const int number = planned_fault(SystemCall::kMapFile); number != 0) {
    return failure(number, {0, size}, "map");
  }
  if (pages == HostPages::kHugetlb) {
    void* const mapped = map_anonymous(size, MAP_HUGETLB | (21 << MAP_HUGE_SHIFT));
    if (mapped == MAP_FAILED) return failure(errno, {0, size}, "take from its hugetlb pool");
    // Copies for a child would come from a pool that may be empty, which is a signal.
    (void)madvise(mapped, size, MADV_DONTFORK);
    return VirtualRange{to_address(mapped), size};
  }
  // More than asked for, so that a multiple of 2 MiB is in it.
  void* const mapped = map_anonymous(size + kHugePage, MAP_NORESERVE);
  if (mapped == MAP_FAILED) return failure(errno, {0, size}, "map");
  const VirtualAddress got = to_address(mapped);
  const VirtualRange range{*align_up(got, kHugePage), size};
  if (range.base > got) munmap(mapped, range.base - got);
  munmap(to_pointer(range.end()), got + kHugePage - range.base);
  if (pages == HostPages::kTransparent) {
    (void)madvise(to_pointer(range.base), size, MADV_HUGEPAGE);
  } else {
    (void)madvise(to_pointer(range.base), size, MADV_NOHUGEPAGE);
  }
  return range;
}

Result<void> populate(VirtualRange range, HostPages pages) {
  if (pages == HostPages::kTransparent && commit_collapsed(range).ok()) return {};
  int number = planned_fault(SystemCall::kCommit);
  if (number == 0) number = commit_pages(range);
  if (number != 0) return failure(number, range, "get");
  return {};
}

void unmap_host_memory(VirtualRange range) { munmap(to_pointer(range.base), range.size); }

Result<void> lock_pages(VirtualRange range) {
  int number = planned_fault(SystemCall::kLock);
  // Not mlock(): sanitizers make that a function that does nothing.
  if (number == 0 && syscall(SYS_mlock2, range.base, range.size, 0) != 0) number = errno;
  if (number != 0) return failure(number, range, "lock");
  return {};
}

void unlock_pages(VirtualRange range) { syscall(SYS_munlock, range.base, range.size); }

bool is_wholly_mapped(VirtualRange range) {
  constexpr uint64_t kPagesAtOnce = 4096;
  std::array<unsigned char, kPagesAtOnce> resident;
  for (VirtualAddress at = align_down(range.base, kNormalPage); at < range.end();) {
    const uint64_t size = std::min(range.end() - at, kPagesAtOnce * kNormalPage);
    if (mincore(to_pointer(at), size, resident.data()) != 0) return false;
    at += size;
  }
  return true;
}

}  // namespace understudy::platform
