// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/chunk_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace understudy::command {

namespace {

RecordedClock clock_of(const ClockPair& pair) {
  return {pair.ticks.load(std::memory_order_acquire),
          pair.nanoseconds.load(std::memory_order_relaxed)};
}

ChunkFacts facts_of(const ChunkHeader& header, uint64_t index) {
  ChunkFacts facts;
  facts.index = index;
  facts.state = header.state.load(std::memory_order_acquire);
  facts.kind = header.kind;
  facts.process = header.process;
  facts.thread = header.thread;
  facts.process_start = header.process_start;
  facts.process_namespace = header.process_namespace;
  facts.serial = header.serial;
  facts.clock = clock_of(header.clock);
  facts.open_function = header.open_function.load(std::memory_order_relaxed);
  facts.open_since = header.open_since.load(std::memory_order_relaxed);
  return facts;
}

// Words of the whole records at the front.
size_t whole_records(std::span<const uint64_t> words) {
  size_t end = 0;
  while (const size_t count = words_of_record(words.subspan(end))) end += count;
  return end;
}

Error no_recording(const std::string& path, const char* why) {
  return Error::format(ErrorCode::kInvalidFile, "%.200s is no recording: %s", path.c_str(), why);
}

}  // namespace

size_t words_of_record(std::span<const uint64_t> words) {
  if (words.empty() || words[0] == 0) return 0;
  const RecordHead head = RecordHead::unpack(words[0]);
  size_t count = head.words;
  if (head.kind == RecordKind::kDefinition) {
    if (words.size() < 2) return 0;
    const uint64_t text_words = words[1] / 8 + (words[1] % 8 == 0 ? 0 : 1);
    if (text_words > words.size() - 2) return 0;
    count = std::max<size_t>(count, 2 + text_words);
  }
  return count <= words.size() ? count : 0;
}

Result<ChunkFile> ChunkFile::open(const std::string& path) {
  // Links are followed here; those who read files of other users do not.
  std::error_code missing;
  const std::filesystem::path real = std::filesystem::canonical(path, missing);
  Result<platform::ReadOnlyFile> file =
      platform::ReadOnlyFile::open(missing ? path : real.string());
  if (!file.ok()) {
    const int number = file.error().system_number();
    if (number == 0) return file.error();
    return Error::system(ErrorCode::kInvalidFile, number, "%.200s cannot be read: %s", path.c_str(),
                         strerror(number));
  }
  struct stat status = {};
  if (fstat(file.value().descriptor(), &status) != 0 || status.st_size < 0) {
    return no_recording(path, "its size is not known");
  }
  if (status.st_size == 0) return no_recording(path, "the file is empty");
  ChunkFile opened(std::move(file.value()), static_cast<uint64_t>(status.st_size));
  US_TRY(opened.read_file_header(path));
  return opened;
}

Result<void> ChunkFile::read_file_header(const std::string& path) {
  const size_t words = read_chunk(0);
  if (words * sizeof(uint64_t) < sizeof(RecordingHeader)) {
    return no_recording(path, "the file is shorter than its header");
  }
  const auto& header = *reinterpret_cast<const RecordingHeader*>(buffer_.data());
  if (header.magic.load(std::memory_order_acquire) != kRecordingMagic) {
    return no_recording(path, "it does not begin like one");
  }
  if (header.version != kRecordingVersion) {
    return Error::format(ErrorCode::kInvalidFile,
                         "%.200s is a recording of version %u; this command reads version %u",
                         path.c_str(), header.version, kRecordingVersion);
  }
  if (header.chunk_bytes != kChunkBytes) {
    return Error::format(ErrorCode::kInvalidFile,
                         "%.200s has chunks of %llu bytes; this command reads chunks of %llu",
                         path.c_str(), static_cast<unsigned long long>(header.chunk_bytes),
                         static_cast<unsigned long long>(kChunkBytes));
  }
  facts_ = {.flags = header.flags,
            .chunks = std::min(header.chunks.load(std::memory_order_relaxed), header.most_chunks),
            .lost = header.lost.load(std::memory_order_relaxed),
            .wall_clock = header.wall_clock,
            .first = clock_of(header.first),
            .second = clock_of(header.second)};
  return {};
}

size_t ChunkFile::read_chunk(uint64_t index) {
  const uint64_t offset = index * kChunkBytes;
  if (offset >= bytes_) return 0;
  const uint64_t size = std::min(kChunkBytes, bytes_ - offset) / sizeof(uint64_t);
  const std::span<uint64_t> words(buffer_.data(), size);
  return file_.read_at(offset, std::as_writable_bytes(words)) ? size : 0;
}

bool ChunkFile::read_header(uint64_t index, ChunkFacts& facts) const {
  alignas(ChunkHeader) std::byte bytes[kChunkHeaderBytes];
  const uint64_t offset = index * kChunkBytes;
  if (offset + sizeof bytes > bytes_ || !file_.read_at(offset, bytes)) return false;
  facts = facts_of(*reinterpret_cast<const ChunkHeader*>(bytes), index);
  return facts.state != static_cast<uint32_t>(ChunkState::kFree);
}

std::span<const uint64_t> ChunkFile::read_records(ChunkFacts& facts) {
  constexpr size_t kHeaderWords = kChunkHeaderBytes / sizeof(uint64_t);
  size_t words = read_chunk(facts.index);
  if (words <= kHeaderWords) return {};
  size_t end = whole_records({buffer_.data() + kHeaderWords, words - kHeaderWords});
  // A head that is there was written last, but the words behind it may have been copied before it.
  // Copied again they are whole.
  if (facts.state == static_cast<uint32_t>(ChunkState::kOpen)) {
    words = read_chunk(facts.index);
    if (words <= kHeaderWords) return {};
  }
  ChunkFacts now;
  // Who writes a chunk anew changes the header first.
  if (!read_header(facts.index, now) || !now.is_same(facts)) return {};
  // A pair of clocks that was renewed meanwhile may be half of each.
  if (now.clock.ticks != facts.clock.ticks) now.clock = {};
  facts = now;
  end = std::min(end, whole_records({buffer_.data() + kHeaderWords, words - kHeaderWords}));
  return {buffer_.data() + kHeaderWords, end};
}

}  // namespace understudy::command
