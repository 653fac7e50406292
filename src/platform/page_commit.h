// SPDX-License-Identifier: Apache-2.0
//
// Ways to get pages for a window onto a shared memory file, or for memory of the process, without
// the signal that a plain touch raises when there is no memory. Bytes that are there stay.
#pragma once

#include "base/result.h"
#include "base/virtual_range.h"

namespace understudy::platform {

// Gives every 4 KiB page of the range memory. Returns 0, or the errno for which the kernel did not.
// REQUIRES: no other thread or process writes to the range meanwhile.
int commit_pages(VirtualRange range);

// The same by the advice alone, where the kernel knows it, which needs no descriptor. Others may
// write to the range meanwhile: a process that is stopped at it and goes on later changes no byte.
Result<void> commit_small(VirtualRange range);

// Makes the range, a multiple of 2 MiB, consist of zeroed 2 MiB pages, with no hugetlb pool and no
// root: one 4 KiB page per 2 MiB is committed, then the kernel is asked to collapse them (Linux
// 6.1). Fails where it cannot; the range is usable as before then, though some pages may have been
// made. Others may write to the range meanwhile.
Result<void> commit_collapsed(VirtualRange range);

}  // namespace understudy::platform
