// SPDX-License-Identifier: Apache-2.0
//
// Where device addresses are. Hosts keep programs and their memory elsewhere: around 85 TiB and at
// 127 TiB on x86-64, and sanitizers below 16 TiB.
#pragma once

#include "base/virtual_range.h"

namespace understudy {

// Only for reservations that wish for an address (RESV-14).
inline constexpr VirtualRange kExpectedWindow{16 * kTiB, 8 * kTiB};
// Only for uncached reservations, which always wish for an address (RESVN-06). Shared with the
// windows below; nearer ones are used first, so that it stays free for long.
inline constexpr VirtualRange kUncachedWindow{40 * kTiB, 184 * kTiB};
// For reservations without a wish, in this order. Hosts with 47-bit addresses cannot map the
// second one: it exists in the software MMU alone.
inline constexpr VirtualRange kNearWindow{24 * kTiB, 60 * kTiB};
inline constexpr VirtualRange kFarWindow{128 * kTiB, 128 * kTiB};

// Addresses that host memory can have: the first pages are never mapped, and user space ends here.
inline constexpr VirtualAddress kHostBegin = 64 * kKiB;
#if defined(__x86_64__)
inline constexpr VirtualAddress kHostEnd = 128 * kTiB - 4 * kKiB;
#else
inline constexpr VirtualAddress kHostEnd = 256 * kTiB;
#endif

// Where a device address is one for ever, of whatever process: hosts have no memory there unless a
// program asks for exactly that address.
constexpr bool is_in_device_window(VirtualAddress address) {
  return kExpectedWindow.contains(address) || kNearWindow.contains(address) ||
         kFarWindow.contains(address);
}

}  // namespace understudy
