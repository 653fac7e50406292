// SPDX-License-Identifier: Apache-2.0
//
// Numbers of threads, and which of a few shards a thread uses of a structure that many threads
// share. Threads are dealt out in turn, so the first sixteen never meet.
#pragma once

namespace understudy {

inline constexpr unsigned kShards = 16;

// A number that no other thread of the process has or had, from 0 on.
unsigned thread_number();
inline unsigned thread_shard() { return thread_number() % kShards; }

}  // namespace understudy
