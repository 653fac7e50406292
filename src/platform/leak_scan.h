// SPDX-License-Identifier: Apache-2.0
//
// Valgrind looks for pointers in everything that a process can read and write, word by word. In a
// sparse mapping that would give host memory to every page, or raise a signal for every word that
// its file does not have, for minutes or until the host runs out of memory.
#pragma once

#include "base/virtual_range.h"

namespace understudy::platform {

// Under Valgrind's memcheck: no search for pointers in the range, and no report of accesses to it,
// until it is unmapped. Otherwise, and on processors other than x86-64, nothing.
void exclude_from_leak_scan(VirtualRange range);
// Before the range is unmapped: what is mapped there next is reported again.
void end_exclusion_from_leak_scan(VirtualRange range);

}  // namespace understudy::platform
