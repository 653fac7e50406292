// SPDX-License-Identifier: Apache-2.0
//
// A recording's file, made record by record in memory (observe/recording_format.h).
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "observe/recording_format.h"

namespace understudy {

// The process that writes a chunk.
struct BuiltProcess {
  uint32_t pid = 100;
  uint64_t start = 7;
};

class RecordingBuilder {
 public:
  static constexpr uint64_t kFirstTick = 1'000'000'000'000'000;
  static constexpr uint64_t kWallClock = 1'700'000'000'000'000'000;

  RecordingBuilder() : words_(kChunkWords) {
    RecordingHeader& header = this->header();
    header.magic = kRecordingMagic;
    header.version = kRecordingVersion;
    header.chunk_bytes = kChunkBytes;
    header.most_chunks = 1000;
    header.chunks = 1;
    header.wall_clock = kWallClock;
    set(header.first, 0);
    set(header.second, 50'000);
  }

  // The tick of a nanosecond: there are two of them in each.
  static uint64_t tick(uint64_t nanoseconds) { return kFirstTick + 2 * nanoseconds; }
  static void set(ClockPair& pair, uint64_t nanoseconds) {
    pair.ticks = tick(nanoseconds);
    pair.nanoseconds = 5'000 + nanoseconds;
  }

  RecordingHeader& header() { return *reinterpret_cast<RecordingHeader*>(words_.data()); }
  // Records are added to the last chunk. The first has number 1.
  ChunkHeader& chunk() {
    return *reinterpret_cast<ChunkHeader*>(words_.data() + (chunks() - 1) * kChunkWords);
  }
  uint64_t chunks() const { return words_.size() / kChunkWords; }

  ChunkHeader& begin_chunk(ChunkKind kind, BuiltProcess process, uint32_t thread = 0) {
    words_.resize(words_.size() + kChunkWords);
    header().chunks = chunks();
    ChunkHeader& begun = chunk();
    begun.state = static_cast<uint32_t>(ChunkState::kClosed);
    begun.kind = static_cast<uint32_t>(kind);
    begun.process = process.pid;
    begun.process_start = process.start;
    begun.thread = thread == 0 ? process.pid : thread;
    begun.serial = chunks();
    set(begun.clock, 60'000 + chunks());
    end_ = words_.size() - kChunkWords + kChunkHeaderBytes / sizeof(uint64_t);
    return begun;
  }

  void add(RecordHead head, std::initializer_list<uint64_t> words) {
    head.words = static_cast<uint8_t>(1 + words.size());
    words_.at(end_++) = head.packed();
    for (const uint64_t word : words) words_.at(end_++) = word;
  }
  void add_thread(uint32_t number) {
    add({RecordKind::kThread, 0, 0, static_cast<int32_t>(number)}, {});
  }
  void define(DefinitionKind kind, int32_t number, std::string_view text) {
    add({RecordKind::kDefinition, 0, static_cast<uint16_t>(kind), number}, {text.size()});
    words_.at(end_ - 2) &= ~uint64_t{0xff00};  // as long as its text needs
    std::memcpy(&words_.at(end_), text.data(), text.size());
    end_ += (text.size() + 7) / 8;
  }

  // The word behind the last record.
  uint64_t end() const { return end_ * sizeof(uint64_t); }
  std::string bytes() const {
    return {reinterpret_cast<const char*>(words_.data()), words_.size() * sizeof(uint64_t)};
  }

 private:
  static constexpr size_t kChunkWords = kChunkBytes / sizeof(uint64_t);

  std::vector<uint64_t> words_;
  size_t end_ = 0;
};

}  // namespace understudy
