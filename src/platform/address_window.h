// SPDX-License-Identifier: Apache-2.0
//
// The host's address space: ranges kept out of everyone's way, and files mapped into them.
//
// All functions: base and size are multiples of 4 KiB (of the file's page size where a file is
// mapped) and size > 0. A failure carries errno, changes nothing unless said, raises no signal.
// None of these ranges is inherited by fork children or written to core dumps.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "base/virtual_range.h"
#include "platform/memory_file.h"

namespace understudy::platform {

enum class CpuAccess : uint8_t { kNone, kRead, kReadWrite };

// Occupies exactly this range without access. Fails with EEXIST if anything lives there, with
// another number if the host cannot map it at all.
Result<void> occupy(VirtualRange range);
// Occupies `size` bytes at an address of the kernel's choice, a multiple of `alignment` (a power
// of two).
Result<VirtualRange> occupy_anywhere(uint64_t size, uint64_t alignment);
// Gives a range back, with whatever is mapped in it. False if the host keeps it: splitting a map
// entry needs another one, and they can run out.
bool vacate(VirtualRange range);

// Replaces an occupied range by a window onto the file. On failure the range is as it was.
Result<void> place_file(VirtualRange range, const MemoryFile& file, uint64_t offset,
                        CpuAccess access);
// Replaces a window by an occupied range without access. On failure the window stays.
Result<void> cover(VirtualRange range);
// Replaces an occupied range by zeroed memory of the process, whose pages the kernel makes when
// they are touched; of 2 MiB where it has them and the range wants them. On failure the range is as
// it was.
enum class TouchedPages : uint8_t { kSmall, kHuge };
Result<void> place_memory(VirtualRange range, TouchedPages pages);
// Gives the pages of such a range back; it reads as zeros. Needs nothing that could run out.
void discard_pages(VirtualRange range);
Result<void> change_access(VirtualRange range, CpuAccess access);

// A window onto a whole file, read and write, at an address that is a multiple of `alignment`.
Result<VirtualRange> map_whole_file(const MemoryFile& file, uint64_t alignment);

// Whether anything is mapped at the page of the address. Says nothing about access.
bool is_mapped(VirtualAddress address);

// Places the memory behind a range on a NUMA node from now on.
Result<void> bind_to_numa_node(VirtualRange range, unsigned node);

}  // namespace understudy::platform
