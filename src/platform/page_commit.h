// SPDX-License-Identifier: Apache-2.0
//
// Ways to get pages for a window onto a shared memory file without the signal that a plain touch
// raises when there is no memory. Ranges are multiples of 2 MiB.
#pragma once

#include "base/result.h"
#include "base/virtual_range.h"

namespace understudy::platform {

// Makes the range consist of zeroed 2 MiB pages, with no hugetlb pool and no root: one 4 KiB page
// per 2 MiB is touched, then the kernel is asked to collapse them (Linux 6.1). Fails where it
// cannot; the range is usable as before then, though some pages may have been made.
// REQUIRES: nobody else writes to the range meanwhile.
Result<void> commit_collapsed(VirtualRange range);

}  // namespace understudy::platform
