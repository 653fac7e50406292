// SPDX-License-Identifier: Apache-2.0
#include "observe/recording_file.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "platform/thread.h"
#include "platform/tick_clock.h"

namespace understudy {

namespace {

// Enough ticks to tell how long one is, to a part in a thousand.
constexpr uint64_t kCalibration = 50'000;  // nanoseconds

void initialize(RecordingHeader& header, const RecordingChoice& choice) {
  header.version = kRecordingVersion;
  header.flags = (choice.is_ring ? kRingRecording : 0U) |
                 (choice.records_stacks ? kRecordsStacks : 0U) |
                 (choice.is_of_program ? kBegunByProgram : 0U);
  header.chunk_bytes = kChunkBytes;
  header.most_chunks = std::max<uint64_t>(choice.limit / kChunkBytes, 4);
  header.chunks.store(1);
  renew(header.first, platform::tick());
  header.wall_clock = platform::wall_clock_time();
  const uint64_t end = platform::machine_time() + kCalibration;
  while (platform::machine_time() < end) {
  }
  renew(header.second, platform::tick());
  header.magic.store(kRecordingMagic, std::memory_order_release);
}

ChunkState state_of(const ChunkHeader& chunk) {
  return static_cast<ChunkState>(chunk.state.load(std::memory_order_acquire));
}

bool change_state(ChunkHeader& chunk, ChunkState from, ChunkState to) {
  auto expected = static_cast<uint32_t>(from);
  return chunk.state.compare_exchange_strong(expected, static_cast<uint32_t>(to));
}

// Fields of a chunk that another thread may write anew meanwhile.
template <typename Field>
Field get(Field& field) {
  return std::atomic_ref(field).load(std::memory_order_relaxed);
}
template <typename Field>
void set(Field& field, uint64_t value) {
  std::atomic_ref(field).store(static_cast<Field>(value), std::memory_order_relaxed);
}

ChunkKind kind_of(ChunkHeader& chunk) { return static_cast<ChunkKind>(get(chunk.kind)); }

platform::ProcessIdentity process_of(ChunkHeader& chunk) {
  return {static_cast<int32_t>(get(chunk.process)), get(chunk.process_start),
          get(chunk.process_namespace)};
}

Error no_recording(const std::string& path) {
  return Error::format(ErrorCode::kInvalidArgument,
                       "trace: %.160s is there and is no recording; it was left as it is",
                       path.c_str());
}

Result<void> check(const RecordingHeader& header, uint64_t size, const std::string& path) {
  // A limit beyond this is not of any writer.
  constexpr uint64_t kMostChunks = (uint64_t{1} << 44) / kChunkBytes;
  if (header.version != kRecordingVersion || header.chunk_bytes != kChunkBytes ||
      header.most_chunks < 2 || header.most_chunks > kMostChunks) {
    return Error::format(ErrorCode::kInvalidArgument,
                         "trace: %.160s is a recording of another version, and is not continued",
                         path.c_str());
  }
  const uint64_t chunks = std::min(header.chunks.load(), header.most_chunks);
  if (chunks == 0 || chunks * kChunkBytes > size) {
    return Error::format(ErrorCode::kInvalidArgument,
                         "trace: %.160s is a recording that is cut short, and is not continued",
                         path.c_str());
  }
  return {};
}

// The first chunk of a file that is no other thing.
Result<platform::SharedMapping> map_first(int descriptor, const std::string& path) {
  if (platform::file_size(descriptor) < kChunkBytes) return no_recording(path);
  US_TRY_ASSIGN(platform::SharedMapping first,
                platform::SharedMapping::of_file(descriptor, kChunkBytes));
  const auto& header = *reinterpret_cast<const RecordingHeader*>(first.data());
  if (header.magic.load(std::memory_order_acquire) != kRecordingMagic) return no_recording(path);
  return first;
}

// Whether there is nothing in it: a process may have been killed while it wrote the header.
Result<bool> is_blank(int descriptor) {
  const uint64_t size = platform::file_size(descriptor);
  if (size != kChunkBytes) return size == 0;
  US_TRY_ASSIGN(const platform::SharedMapping first,
                platform::SharedMapping::of_file(descriptor, size));
  const auto& header = *reinterpret_cast<const RecordingHeader*>(first.data());
  if (header.magic.load(std::memory_order_acquire) != 0) return false;
  const std::string_view behind(first.data() + sizeof header, size - sizeof header);
  return (header.version == 0 || header.version == kRecordingVersion) &&
         behind.find_first_not_of('\0') == std::string_view::npos;
}

// Holds the file against others until `turn` is closed; it has a header then.
Result<platform::NamedFile> open_file(const RecordingChoice& choice, platform::FileTurn& turn) {
  US_TRY_ASSIGN(platform::NamedFile file, platform::NamedFile::open(choice.file, turn));
  US_TRY_ASSIGN(bool is_new, is_blank(turn.file()));
  if (choice.is_of_program && !is_new) {
    US_TRY(map_first(turn.file(), choice.file));
    US_TRY(file.remove());
    US_TRY_ASSIGN(file, platform::NamedFile::open(choice.file, turn));
    US_TRY_ASSIGN(is_new, is_blank(turn.file()));
  }
  if (is_new) {
    US_TRY(platform::back_file(turn.file(), 0, kChunkBytes));
    US_TRY_ASSIGN(const platform::SharedMapping first,
                  platform::SharedMapping::of_file(turn.file(), kChunkBytes));
    initialize(*reinterpret_cast<RecordingHeader*>(first.data()), choice);
  }
  return file;
}

}  // namespace

void renew(ClockPair& pair, uint64_t ticks) noexcept {
  // A reader that meets this sees ticks of 0, and takes another pair.
  pair.ticks.store(0, std::memory_order_relaxed);
  pair.nanoseconds.store(platform::machine_time(), std::memory_order_release);
  pair.ticks.store(ticks, std::memory_order_release);
}

Result<std::unique_ptr<RecordingFile>> RecordingFile::open(const RecordingChoice& choice) {
  platform::FileTurn turn;
  US_TRY_ASSIGN(platform::NamedFile file, open_file(choice, turn));
  return map(std::move(file), turn.file());
}

Result<std::unique_ptr<RecordingFile>> RecordingFile::open_in_child() const {
  US_TRY_ASSIGN(const platform::UniqueFd again, file_.open_again());
  return map(file_, again.get());
}

Result<std::unique_ptr<RecordingFile>> RecordingFile::map(platform::NamedFile file,
                                                          int descriptor) {
  uint64_t chunks = 0;
  {
    US_TRY_ASSIGN(const platform::SharedMapping first, map_first(descriptor, file.path()));
    const auto& header = *reinterpret_cast<const RecordingHeader*>(first.data());
    US_TRY(check(header, platform::file_size(descriptor), file.path()));
    chunks = header.most_chunks;
  }
  US_TRY_ASSIGN(platform::SharedMapping mapping,
                platform::SharedMapping::of_file(descriptor, chunks * kChunkBytes));
  return std::unique_ptr<RecordingFile>(new RecordingFile(std::move(file), std::move(mapping)));
}

bool RecordingFile::is_backed(uint64_t index) noexcept {
  // In one piece: a file system that makes a file longer page by page takes twice the time.
  constexpr uint64_t kAtOnce = 16;
  if (index < backed_.load(std::memory_order_relaxed)) return true;
  uint64_t end = std::min(index + kAtOnce, header().most_chunks);
  if (!file_.back(index * kChunkBytes, (end - index) * kChunkBytes).ok()) {
    end = index + 1;
    if (!file_.back(index * kChunkBytes, kChunkBytes).ok()) return false;
  }
  backed_.store(end, std::memory_order_relaxed);
  return true;
}

// Counted when it is there, and not before: who looks through the chunks may touch them all.
ChunkHeader* RecordingFile::append() noexcept {
  RecordingHeader& header = this->header();
  uint64_t index = header.chunks.load(std::memory_order_relaxed);
  do {
    if (index >= header.most_chunks || !is_backed(index)) return nullptr;
  } while (!header.chunks.compare_exchange_weak(index, index + 1));
  ChunkHeader* const taken = chunk(index);
  platform::populate_for_writing(taken, kChunkBytes);
  return taken;
}

bool RecordingFile::try_recycle(ChunkHeader& chunk) noexcept {
  const ChunkState state = state_of(chunk);
  if (state == ChunkState::kOpen) return try_recycle_of_ended(chunk);
  return state == ChunkState::kClosed && change_state(chunk, state, ChunkState::kFree);
}

bool RecordingFile::try_recycle_of_ended(ChunkHeader& chunk) noexcept {
  const platform::ProcessIdentity process = process_of(chunk);
  if (process == process_ || platform::presence_of(process) != platform::Presence::kGone) {
    return false;
  }
  const ChunkKind kind = kind_of(chunk);
  if (!change_state(chunk, ChunkState::kOpen, ChunkState::kFree)) return false;
  // Between the two another thread may have written it anew: then it is open for that one.
  if (process_of(chunk) != process) {
    (void)change_state(chunk, ChunkState::kFree, ChunkState::kOpen);
    return false;
  }
  if (kind == ChunkKind::kRecords) return true;
  // Records of the process may be left. They are gone when it is this chunk's turn again.
  (void)change_state(chunk, ChunkState::kFree, ChunkState::kClosed);
  return false;
}

ChunkHeader* RecordingFile::recycle() noexcept {
  const uint64_t count = chunks() - 1;
  // Twice, for what is only closed the first time.
  for (uint64_t looked = 0; looked < 2 * count; ++looked) {
    const uint64_t turn = header().next_recycled.fetch_add(1, std::memory_order_relaxed);
    ChunkHeader* const found = chunk(1 + turn % count);
    if (!try_recycle(*found)) continue;
    // A reader that meets zeros among its records finds another serial behind them.
    set(found->serial, 0);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    auto* const bytes = reinterpret_cast<char*>(found);
    std::memset(bytes + kChunkHeaderBytes, 0, kChunkBytes - kChunkHeaderBytes);
    header().recycled.fetch_add(1, std::memory_order_relaxed);
    return found;
  }
  return nullptr;
}

void RecordingFile::close_chunks() noexcept {
  const uint64_t end = chunks();
  for (uint64_t index = 1; index < end; ++index) {
    ChunkHeader* const each = chunk(index);
    if (state_of(*each) != ChunkState::kOpen || kind_of(*each) != ChunkKind::kRecords ||
        !(process_of(*each) == process_) ||
        each->open_function.load(std::memory_order_relaxed) != 0) {
      continue;
    }
    each->state.store(static_cast<uint32_t>(ChunkState::kClosed), std::memory_order_release);
  }
}

ChunkHeader* RecordingFile::take_chunk(ChunkKind kind) noexcept {
  constexpr uint64_t kPause = 1 << 22;  // ticks; about a millisecond
  if (platform::tick() < retry_at_.load(std::memory_order_relaxed)) return nullptr;
  ChunkHeader* taken = append();
  if (taken == nullptr && (header().flags & kRingRecording) != 0) taken = recycle();
  if (taken == nullptr) {
    // Else each record that is lost would cost as much as a chunk.
    retry_at_.store(platform::tick() + kPause, std::memory_order_relaxed);
    return nullptr;
  }
  set(taken->kind, static_cast<uint64_t>(kind));
  set(taken->process, static_cast<uint64_t>(process_.id));
  set(taken->process_start, process_.birth);
  set(taken->process_namespace, process_.pid_namespace);
  set(taken->thread, platform::kernel_thread_id());
  set(taken->serial, serial_.fetch_add(1, std::memory_order_relaxed) + 1);
  taken->open_function.store(0, std::memory_order_relaxed);
  taken->open_since.store(0, std::memory_order_relaxed);
  renew(taken->clock, platform::tick());
  taken->state.store(static_cast<uint32_t>(ChunkState::kOpen), std::memory_order_release);
  return taken;
}

}  // namespace understudy
