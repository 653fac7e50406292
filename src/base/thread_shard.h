// SPDX-License-Identifier: Apache-2.0
//
// Which of a few shards this thread uses of a structure that many threads share. Threads are dealt
// out in turn, so the first sixteen never meet.
#pragma once

namespace understudy {

inline constexpr unsigned kShards = 16;

unsigned thread_shard();

}  // namespace understudy
