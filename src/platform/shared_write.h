// SPDX-License-Identifier: Apache-2.0
//
// Writes to a descriptor that is not ours alone, such as standard error, so that whatever is at its
// other end cannot harm the program:
// - The signal that goes with an error is held back and taken: SIGPIPE without a reader, SIGXFSZ
//   where a file has reached RLIMIT_FSIZE.
// - The flags of a descriptor that other processes share are not ours to change. A write to
//   something else than a file therefore asks for no waiting by itself (RWF_NOWAIT). Terminals,
//   named pipes, and all pipes before Linux 6.4 refuse that: they are opened once more, with
//   O_NONBLOCK. Where that cannot be, without /proc or without the right to open a terminal,
//   the write follows a look for room, and waits if there is too little.
// No lock, no heap memory, no stream of the C library. Any thread may call anything.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

namespace understudy::platform {

enum class WriteEnd : uint8_t { kWritten, kClosed, kLost };

// Writes all of it, waiting for room no longer than `patience`. To a file in one piece; else in
// pieces of 4 KiB, each of which a pipe takes whole or not at all. A terminal may take the
// beginning of one that is lost. Leaves errno changed.
WriteEnd write_shared(int descriptor, std::string_view text, std::chrono::milliseconds patience);

}  // namespace understudy::platform
