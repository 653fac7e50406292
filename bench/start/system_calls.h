// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace bench {

// How many system calls a function makes, in a child process that is stopped at each. The same on a
// busy machine and on an idle one. Nothing where a process may not trace its child.
std::optional<uint64_t> system_calls_of(const std::function<void()>& function);

}  // namespace bench
