// SPDX-License-Identifier: Apache-2.0
//
// The file of a recording, read chunk by chunk by system calls: a program that is recorded still
// may write, recycle or remove it meanwhile, and no more is in memory at once than a chunk. Nothing
// of its content is believed: all that is handed out lies within what was read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "observe/recording_format.h"
#include "platform/read_only_file.h"

namespace understudy::command {

struct RecordedClock {
  uint64_t ticks = 0;  // 0: none
  uint64_t nanoseconds = 0;
};

// What the first chunk says.
struct FileFacts {
  uint32_t flags = 0;
  uint64_t chunks = 0;  // that were taken, as far as there is room for them
  uint64_t lost = 0;
  uint64_t wall_clock = 0;
  RecordedClock first;
  RecordedClock second;
};

// The header of a chunk.
struct ChunkFacts {
  uint64_t index = 0;  // in the file
  uint32_t state = 0;
  uint32_t kind = 0;
  uint32_t process = 0;
  uint32_t thread = 0;
  uint64_t process_start = 0;
  uint64_t process_namespace = 0;
  uint64_t serial = 0;
  RecordedClock clock;
  uint64_t open_function = 0;
  uint64_t open_since = 0;

  // Whether it holds what it held when `other` was read.
  bool is_same(const ChunkFacts& other) const {
    return kind == other.kind && process == other.process && serial == other.serial &&
           process_start == other.process_start;
  }
};

class ChunkFile {
 public:
  // Fails with a sentence if the file cannot be read or is no recording.
  static Result<ChunkFile> open(const std::string& path);

  const FileFacts& facts() const { return facts_; }
  // That the file has room for, with the first. The last may be cut short.
  uint64_t chunks() const { return (bytes_ + kChunkBytes - 1) / kChunkBytes; }
  uint64_t bytes() const { return bytes_; }

  // False if the file ends before it, or it was not begun.
  bool read_header(uint64_t index, ChunkFacts& facts) const;
  // The words of the records of a chunk, without what a writer has not finished. Empty if it was
  // written anew since its header was read. Valid until the next call; `facts` become newer.
  std::span<const uint64_t> read_records(ChunkFacts& facts);

 private:
  ChunkFile(platform::ReadOnlyFile file, uint64_t bytes)
      : file_(std::move(file)), bytes_(bytes), buffer_(kChunkBytes / sizeof(uint64_t)) {}

  Result<void> read_file_header(const std::string& path);
  // Words that the file has, of at most a chunk.
  size_t read_chunk(uint64_t index);

  platform::ReadOnlyFile file_;
  uint64_t bytes_;
  FileFacts facts_;
  std::vector<uint64_t> buffer_;
};

// How many words the record at the front has; 0 if they end there, or make no sense.
size_t words_of_record(std::span<const uint64_t> words);

}  // namespace understudy::command
