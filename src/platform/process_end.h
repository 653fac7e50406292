// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace understudy::platform {

// Ends the process with a status of its own choice, after what the program has written is out. For
// code that runs behind all other code of the process.
[[noreturn]] void end_process(int status);

}  // namespace understudy::platform
