// SPDX-License-Identifier: Apache-2.0
//
// Notices that this process is a fork child: one word of memory that the kernel wipes in children
// (MADV_WIPEONFORK), so that clone and vfork tricks are seen as well. Descriptors of stores are
// remembered here, because a child that keeps one open keeps all of its parent's memory alive.
#pragma once

namespace understudy::platform {

// Arms the word for this process; until then in_fork_child() is false. False if the kernel cannot.
bool arm_fork_sentinel();
// True once in a fork child, until arm_fork_sentinel is called again.
bool in_fork_child();

// Fixed room: descriptors past it stay open in children.
void close_in_fork_child(int descriptor);
void forget_for_fork_child(int descriptor);
// Called by the child: closes what its parent registered.
void close_inherited_descriptors();

}  // namespace understudy::platform
