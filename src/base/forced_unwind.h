// SPDX-License-Identifier: Apache-2.0
//
// pthread_exit and pthread_cancel end a thread by unwinding its stack as an exception does, which
// no handler may stop. Functions of the program that are called from here may do so. A handler that
// catches everything catches this first and throws it again; what has to be put in order on the
// way is put in order there or in destructors.
#pragma once

#include <cxxabi.h>

namespace understudy {

using ForcedUnwind = abi::__forced_unwind;

// For functions that catch it: there is no object behind the reference, which
// UndefinedBehaviorSanitizer would report. It comes with AddressSanitizer here, and checks the code
// of a function that was made part of its caller as it checks the caller's.
#if defined(__SANITIZE_ADDRESS__)
#define US_CATCHES_FORCED_UNWIND __attribute__((no_sanitize("null"), noinline))
#else
#define US_CATCHES_FORCED_UNWIND __attribute__((no_sanitize("null")))
#endif

}  // namespace understudy
