// SPDX-License-Identifier: Apache-2.0
//
// What a thread writes into its chunk.
#include <algorithm>
#include <array>
#include <cstring>

#include "observe/history.h"
#include "observe/recorder.h"
#include "observe/recorder_state.h"
#include "platform/readable_memory.h"

namespace understudy {

namespace {

constexpr uint64_t kClockTicks = 1 << 20;  // between two readings of the machine's clock

}  // namespace

// What a thread does to its part. A signal handler's calls meanwhile are lost.
class Recorder::Writing {
 public:
  explicit Writing(ThreadPart& part) noexcept : part_(part) {
    part_.is_writing = true;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~Writing() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    part_.is_writing = false;
  }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;

 private:
  ThreadPart& part_;
};

// The head is stored last: what a killed process leaves is whole.
template <size_t kWords>
void Recorder::put(State& state, RecordHead head, const uint64_t (&words)[kWords],
                   std::span<const uint64_t> more) noexcept {
  ThreadPart& part = ThreadPart::own;
  const size_t count = 1 + kWords + more.size();
  if (part.is_writing) [[unlikely]]
    return state.file().note_lost(1);
  const Writing writing(part);
  if (part.next == nullptr || part.next + count > part.end) [[unlikely]] {
    if (!state.change_chunk(part)) return state.file().note_lost(1);
  }
  uint64_t* const place = part.next;
  for (size_t i = 0; i < kWords; ++i) place[1 + i] = words[i];
  for (size_t i = 0; i < more.size(); ++i) place[1 + kWords + i] = more[i];
  head.words = static_cast<uint8_t>(count);
  std::atomic_ref(*place).store(head.packed(), std::memory_order_release);
  part.next = place + count;
  if (part.has_ended) [[unlikely]]
    state.leave(part);
}

void Recorder::begin_call(const CallShape& shape, OpenCall& call) noexcept {
  const Use state;
  if (!state) return;
  ThreadPart& part = ThreadPart::own;
  if (part.is_writing) [[unlikely]] {
    return state->file().note_lost(1);
  }
  const Writing writing(part);
  call.outer_moment = part.moment;
  call.outer_stack = part.stack;
  if (state->file().records_stacks()) {
    part.stack = state->definitions().stack(platform::capture_stack());
  }
  call.stack = part.stack;
  // Without one, the record of the call is what is lost.
  if (part.chunk == nullptr) (void)state->change_chunk(part);
  call.function = state->definitions().function(shape);
  call.begun = platform::tick();
  part.moment = call.begun;
  part.object_begun = 0;
  if (ChunkHeader* const chunk = part.chunk) {
    call.outer_function = chunk->open_function.load(std::memory_order_relaxed);
    call.outer_since = chunk->open_since.load(std::memory_order_relaxed);
    chunk->open_since.store(call.begun, std::memory_order_relaxed);
    chunk->open_function.store(call.function, std::memory_order_release);
  }
}

void Recorder::end_call(const OpenCall& call, int32_t code,
                        std::span<const uint64_t> arguments) noexcept {
  const Use state;
  if (!state || !state->has_seen_begin(call.begun)) return;
  ThreadPart& part = ThreadPart::own;
  // An object begins at the end of the call that makes it: one look at the clock is enough.
  const uint64_t ended = part.object_begun != 0 ? part.object_begun : platform::tick();
  const uint64_t duration = std::min(ended - call.begun, kDurationMask);
  put(*state, {RecordKind::kCall, 0, static_cast<uint16_t>(call.function), code},
      {call.begun, duration | uint64_t{call.stack} << kStackShift}, arguments);
  if (ChunkHeader* const chunk = part.chunk) {
    chunk->open_since.store(call.outer_since, std::memory_order_relaxed);
    chunk->open_function.store(call.outer_function, std::memory_order_release);
    if (ended > part.clock_due) [[unlikely]] {
      renew(chunk->clock, platform::tick());
      part.clock_due = ended + kClockTicks;
    }
  }
  part.moment = call.outer_moment;
  part.stack = call.outer_stack;
  part.object_begun = 0;
}

void Recorder::note_pointed(const OpenCall& call, unsigned parameter, const void* from,
                            size_t size) noexcept {
  std::array<uint64_t, 128> words;
  const Use state;
  if (!state || from == nullptr || size > kMostPointed) return;
  for (size_t done = 0; done < size;) {
    const size_t part = std::min(size - done, sizeof words);
    words.at((part - 1) / sizeof(uint64_t)) = 0;  // behind the end of the last part
    if (!try_read(static_cast<const char*>(from) + done, words.data(), part)) return;
    put(*state,
        {RecordKind::kPointed, 0, static_cast<uint16_t>(parameter), static_cast<int32_t>(part)},
        {call.begun}, std::span(words).first((part + sizeof(uint64_t) - 1) / sizeof(uint64_t)));
    done += part;
  }
}

namespace {

// How much of a text that may be nowhere can be read.
size_t readable_text(const char* text, std::span<char> buffer) noexcept {
  constexpr uintptr_t kPage = 4096;  // what can be read begins and ends with one
  size_t size = 0;
  while (size < buffer.size()) {
    const char* const from = text + size;
    const size_t part =
        std::min<size_t>(buffer.size() - size, kPage - reinterpret_cast<uintptr_t>(from) % kPage);
    if (!platform::try_read(from, buffer.data() + size, part)) return size;
    const size_t length = strnlen(buffer.data() + size, part);
    size += length;
    if (length < part) return size;
  }
  return size;
}

}  // namespace

uint64_t Recorder::define_text(const char* text, bool is_good) noexcept {
  constexpr size_t kMostBytes = 256;
  const Use state;
  if (!state || text == nullptr) return 0;
  ThreadPart& part = ThreadPart::own;
  if (part.is_writing) return 0;
  const Writing writing(part);
  if (is_good) return state->definitions().text({text, strnlen(text, kMostBytes)});
  std::array<char, kMostBytes> buffer;
  return state->definitions().text({buffer.data(), readable_text(text, buffer)});
}

bool Recorder::try_read(const void* from, void* to, size_t size) noexcept {
  return platform::try_read(from, to, size);
}

uint64_t Recorder::moment(const State& state) noexcept {
  const uint64_t begun = ThreadPart::own.moment;
  return begun != 0 && state.has_seen_begin(begun) ? begun : platform::tick();
}

void Recorder::begin_object(const NewObject& object) noexcept {
  const Use state;
  if (!state) return;
  const bool has_memory = object.kind == ObjectKind::kAllocation ||
                          object.kind == ObjectKind::kBlock ||
                          object.kind == ObjectKind::kHostBlock;
  const uint64_t taken =
      object.taken.value_or(object.pages.taken != 0 ? object.pages.taken : object.size);
  ThreadPart& part = ThreadPart::own;
  part.object_begun = platform::tick();
  // If the call has to end it again, that is later.
  if (part.moment != 0) part.moment = part.object_begun;
  put(*state, {RecordKind::kObjectBegin, 0, static_cast<uint16_t>(object.kind), object.device},
      {part.object_begun, object.number, object.size, has_memory && !object.is_imported ? taken : 0,
       object.part_of, part.stack});
}

void Recorder::add_handle(ObjectKind kind, uint64_t number) noexcept {
  const Use state;
  if (!state) return;
  put(*state, {RecordKind::kObjectHandle, 0, static_cast<uint16_t>(kind), 0},
      {moment(*state), number});
}

// Of the moment when the call began: another thread may have the number before this is written, and
// notes a later moment then.
void Recorder::end_object(ObjectKind kind, uint64_t number) noexcept {
  const Use state;
  if (!state) return;
  put(*state, {RecordKind::kObjectEnd, 0, static_cast<uint16_t>(kind), 0},
      {moment(*state), number});
}

void Recorder::end_objects(ObjectKind kind, int32_t device, uint64_t part_of) noexcept {
  const Use state;
  if (!state) return;
  put(*state, {RecordKind::kObjectsEnd, 0, static_cast<uint16_t>(kind), device},
      {moment(*state), part_of});
}

void Recorder::note_queued(uint16_t kind, uint32_t device, uint64_t stream,
                           uint64_t position) noexcept {
  const Use state;
  if (!state) return;
  put(*state, {RecordKind::kQueued, 0, kind, static_cast<int32_t>(device)},
      {moment(*state), stream, position});
}

void Recorder::end_task(const RecordedTaskRun& task) noexcept {
  const Use state;
  if (!state || !state->has_seen_begin(task.begun)) return;
  put(*state, {RecordKind::kTask, 0, task.kind, task.code},
      {task.begun, platform::tick() - task.begun, task.stream, task.position, task.bytes,
       task.awaited_stream, task.awaited_position});
}

uint64_t Recorder::begin_task(uint64_t& outer_moment) noexcept {
  ThreadPart& part = ThreadPart::own;
  outer_moment = part.moment;
  part.moment = platform::tick();
  return part.moment;
}

void Recorder::leave_task(uint64_t outer_moment) noexcept { ThreadPart::own.moment = outer_moment; }

}  // namespace understudy
