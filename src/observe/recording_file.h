// SPDX-License-Identifier: Apache-2.0
//
// The file of a recording as a process writes it (recording_format.h): mapped as a whole, and made
// longer as chunks are taken. A file that is there already is continued, by any number of
// processes. Chunks are never given back. Fork children do not inherit the mapping, and must not
// end it. Any thread may call anything; nothing takes a lock or heap memory but `open`.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "observe/recording_choice.h"
#include "observe/recording_format.h"
#include "platform/named_file.h"
#include "platform/process_identity.h"
#include "platform/shared_mapping.h"

namespace understudy {

class RecordingFile {
 public:
  // Fails if the file cannot be made or mapped, or is something else. May throw std::bad_alloc.
  static Result<std::unique_ptr<RecordingFile>> open(const RecordingChoice& choice);
  // The same file for a fork child, which does not have the mapping. Fails if it is not there any
  // more. May throw std::bad_alloc.
  Result<std::unique_ptr<RecordingFile>> open_in_child() const;

  RecordingHeader& header() const { return *reinterpret_cast<RecordingHeader*>(mapping_.data()); }
  bool records_stacks() const { return (header().flags & kRecordsStacks) != 0; }
  // An open chunk of the calling thread, all zero behind its header; null if there is none to be
  // had.
  ChunkHeader* take_chunk(ChunkKind kind) noexcept;
  // The records of this process are for other processes to write anew, but for those of threads
  // that are in a call. REQUIRES: no thread writes them any more.
  void close_chunks() noexcept;
  void note_lost(uint64_t records) const noexcept {
    header().lost.fetch_add(records, std::memory_order_relaxed);
  }

 private:
  RecordingFile(platform::NamedFile file, platform::SharedMapping mapping)
      : file_(std::move(file)), mapping_(std::move(mapping)) {}

  static Result<std::unique_ptr<RecordingFile>> map(platform::NamedFile file, int descriptor);

  ChunkHeader* chunk(uint64_t index) const {
    return reinterpret_cast<ChunkHeader*>(mapping_.data() + index * kChunkBytes);
  }
  // How many there are, with the first.
  uint64_t chunks() const { return std::min(header().chunks.load(), header().most_chunks); }
  // Null if the file is full or the host has no room.
  ChunkHeader* append() noexcept;
  // Whether the chunk can be touched; with some of those behind it, for next time.
  bool is_backed(uint64_t index) noexcept;
  // Of a ring: the one that has not been written for longest, full or left by a process that ended.
  // Null if there is none.
  ChunkHeader* recycle() noexcept;
  bool try_recycle(ChunkHeader& chunk) noexcept;
  bool try_recycle_of_ended(ChunkHeader& chunk) noexcept;

  const platform::NamedFile file_;
  const platform::SharedMapping mapping_;
  const platform::ProcessIdentity process_ = platform::own_identity();
  std::atomic<uint64_t> serial_{0};
  std::atomic<uint64_t> backed_{0};    // chunks that were found to be there
  std::atomic<uint64_t> retry_at_{0};  // the tick before which it makes no sense to ask for a chunk
};

// Both clocks now.
void renew(ClockPair& pair, uint64_t ticks) noexcept;

}  // namespace understudy
