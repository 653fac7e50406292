// SPDX-License-Identifier: Apache-2.0
//
// What a fork does to us. In a child of fork, the descriptors of stores are closed before fork
// returns: a child that kept one open would keep all of its parent's memory. Children of a bare
// clone are noticed by a word of memory that the kernel wipes in them (MADV_WIPEONFORK).
#pragma once

namespace understudy::platform {

// Arms the word for this process and has the descriptors closed in children from now on.
void arm_fork_sentinel();
// True in a child, however it was made, until arm_fork_sentinel is called there.
bool in_fork_child();
// Has it called in every child of fork from now on, on the thread that forked.
void call_in_fork_child(void (*function)());

// Fixed room: descriptors past it stay open in children.
void close_in_fork_child(int descriptor);
void forget_for_fork_child(int descriptor);
// For a child that fork did not make: closes what its parent registered, if it still is that.
void close_inherited_descriptors();

}  // namespace understudy::platform
