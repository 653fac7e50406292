// SPDX-License-Identifier: Apache-2.0
//
// What the processor can do. Of the linker, which has asked it for every process: each question to
// the processor itself is one to the hypervisor, if there is one, and takes microseconds there.
#pragma once

namespace understudy::platform {

// Whether the 256-bit vectors of AVX2 may be used. False on other architectures.
bool has_avx2() noexcept;
// Whether the counter of ticks runs at one rate on all processors, whatever they do.
bool has_invariant_counter() noexcept;

}  // namespace understudy::platform
