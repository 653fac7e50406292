// SPDX-License-Identifier: Apache-2.0
#include "platform/address_window.h"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/scope_exit.h"
#include "base/size_text.h"
#include "platform/fault_plan.h"
#include "platform/leak_scan.h"

namespace understudy::platform {

namespace {

constexpr int kOccupyFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

int protection_of(CpuAccess access) {
  switch (access) {
    case CpuAccess::kNone:
      return PROT_NONE;
    case CpuAccess::kRead:
      return PROT_READ;
    case CpuAccess::kReadWrite:
      return PROT_READ | PROT_WRITE;
  }
  return PROT_NONE;
}

Error mapping_failure(int number, VirtualRange range, const char* what) {
  // ENOMEM from mmap means address space or vm.max_map_count, seldom memory.
  return Error::system(
      ErrorCode::kOutOfResources, number, "the host cannot %s %s at %p (errno %d%s)", what,
      SizeText(range.size).c_str(), to_pointer(range.base), number,
      number == ENOMEM ? "; see vm.max_map_count and the address space limit" : "");
}

// A window shows device memory: a core dump must not drag it to disk, a child must not keep it.
void keep_private(VirtualRange range) {
  madvise(to_pointer(range.base), range.size, MADV_DONTDUMP);
  madvise(to_pointer(range.base), range.size, MADV_DONTFORK);
}

}  // namespace

Result<void> occupy(VirtualRange range) {
  int number = planned_fault(SystemCall::kReserveAddresses);
  // NOREPLACE alone says all to the kernel; ThreadSanitizer takes it for a hint without the other.
  if (number == 0 && mmap(to_pointer(range.base), range.size, PROT_NONE,
                          kOccupyFlags | MAP_FIXED | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED) {
    number = errno;
  }
  if (number != 0) return mapping_failure(number, range, "occupy");
  madvise(to_pointer(range.base), range.size, MADV_DONTFORK);
  return {};
}

Result<VirtualRange> occupy_anywhere(uint64_t size, uint64_t alignment) {
  int number = planned_fault(SystemCall::kReserveAddresses);
  const auto raised = VirtualRange::make(size, alignment);
  if (number == 0 && !raised) number = ENOMEM;
  void* got = MAP_FAILED;
  if (number == 0) {
    got = mmap(nullptr, raised->end(), PROT_NONE, kOccupyFlags, -1, 0);
    if (got == MAP_FAILED) number = errno;
  }
  if (number != 0) return mapping_failure(number, {0, size}, "occupy");
  // Cut the overhang so that exactly [base, base + size) stays.
  const VirtualRange whole{to_address(got), raised->end()};
  const VirtualRange range{*align_up(whole.base, alignment), size};
  if (range.base > whole.base) vacate({whole.base, range.base - whole.base});
  if (whole.end() > range.end()) vacate({range.end(), whole.end() - range.end()});
  madvise(to_pointer(range.base), range.size, MADV_DONTFORK);
  return range;
}

bool vacate(VirtualRange range) {
  end_exclusion_from_leak_scan(range);
  return munmap(to_pointer(range.base), range.size) == 0;
}

Result<void> place_file(VirtualRange range, const MemoryFile& file, uint64_t offset,
                        CpuAccess access) {
  int number = planned_fault(SystemCall::kMapFile);
  if (number == 0 && mmap(to_pointer(range.base), range.size, protection_of(access),
                          MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file.usable_descriptor(),
                          static_cast<off_t>(offset)) == MAP_FAILED) {
    number = errno;
  }
  if (number != 0) return mapping_failure(number, range, "map");
  keep_private(range);
  exclude_from_leak_scan(range);
  return {};
}

Result<void> cover(VirtualRange range) {
  int number = planned_fault(SystemCall::kUnmap);
  if (number == 0 && mmap(to_pointer(range.base), range.size, PROT_NONE, kOccupyFlags | MAP_FIXED,
                          -1, 0) == MAP_FAILED) {
    number = errno;
  }
  if (number != 0) return mapping_failure(number, range, "cover");
  madvise(to_pointer(range.base), range.size, MADV_DONTFORK);
  return {};
}

Result<void> place_memory(VirtualRange range, TouchedPages pages) {
  int number = planned_fault(SystemCall::kMapFile);
  if (number == 0 && mmap(to_pointer(range.base), range.size, PROT_READ | PROT_WRITE,
                          kOccupyFlags | MAP_FIXED, -1, 0) == MAP_FAILED) {
    number = errno;
  }
  if (number != 0) return mapping_failure(number, range, "map");
  keep_private(range);
  exclude_from_leak_scan(range);
  madvise(to_pointer(range.base), range.size,
          pages == TouchedPages::kHuge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  return {};
}

void discard_pages(VirtualRange range) {
  end_exclusion_from_leak_scan(range);
  madvise(to_pointer(range.base), range.size, MADV_DONTNEED);
}

Result<void> change_access(VirtualRange range, CpuAccess access) {
  if (mprotect(to_pointer(range.base), range.size, protection_of(access)) == 0) return {};
  return mapping_failure(errno, range, "change the access of");
}

Result<VirtualRange> map_whole_file(const MemoryFile& file, uint64_t alignment) {
  US_TRY_ASSIGN(const VirtualRange range, occupy_anywhere(file.size(), alignment));
  ScopeExit undo([&] { vacate(range); });
  US_TRY(place_file(range, file, 0, CpuAccess::kReadWrite));
  undo.dismiss();
  return range;
}

bool is_mapped(VirtualAddress address) {
  unsigned char resident = 0;
  return mincore(to_pointer(align_down(address, kNormalPage)), 1, &resident) == 0;
}

Result<void> bind_to_numa_node(VirtualRange range, unsigned node) {
  constexpr unsigned kBits = 8 * sizeof(unsigned long);
  std::array<unsigned long, 16> mask{};
  if (node >= mask.size() * kBits) {
    return Error::system(ErrorCode::kInvalidParam, EINVAL, "NUMA node %u is out of range", node);
  }
  mask[node / kBits] |= 1UL << (node % kBits);
  if (syscall(SYS_mbind, to_pointer(range.base), range.size, MPOL_BIND, mask.data(),
              mask.size() * kBits + 1, 0) == 0) {
    return {};
  }
  return Error::system(ErrorCode::kOutOfResources, errno,
                       "the host cannot place memory on NUMA node %u (errno %d)", node, errno);
}

}  // namespace understudy::platform
