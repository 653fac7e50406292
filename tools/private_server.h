// SPDX-License-Identifier: Apache-2.0
//
// A server for one program and its children: a fresh runtime directory, and a janitor that removes
// it when the last of them has ended.
//
// `understudy run` becomes the program (execve(2)); it does not wait for it. Process number,
// parent, process group, terminal, stops, signals, exit status and core dumps are then the
// program's own, and there is nothing to forward or to imitate. A parent in between would have to
// do all of that, and would leave the directory behind when it is killed. What is left to do after
// the program is the janitor's.
//
// The janitor is a grandchild whose parent has ended, so that the program never finds it among its
// children (wait(2)). It has a session of its own, no terminal, none of the program's descriptors,
// / as its directory, and a command line that does not name the program. It sleeps in poll(2) on
// descriptors of processes. Only SIGKILL ends it early; `understudy clean` does its work then.
// There is no janitor where the process is the first one of its pid namespace, since all others end
// with that one, nor where the host allows no descriptor of a process.
#pragma once

#include <string>

#include "base/result.h"

namespace understudy::command {

// Gives this process, which is to become the program, a directory.
Result<std::string> make_private_server();

}  // namespace understudy::command
