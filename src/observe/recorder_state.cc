// SPDX-License-Identifier: Apache-2.0
#include "observe/recorder_state.h"

#include "observe/history.h"
#include "platform/kept_errno.h"
#include "platform/thread.h"

namespace understudy {

thread_local constinit Recorder::ThreadPart Recorder::ThreadPart::own
    [[gnu::tls_model("initial-exec")]]{};

constinit std::span<const char* const> Recorder::State::task_kinds;
constinit std::atomic<uint64_t> Recorder::State::generations_{0};

std::unique_ptr<Recorder::State> Recorder::State::for_child() const {
  const platform::KeptErrno kept_errno;
  Result<std::unique_ptr<RecordingFile>> file = file_->open_in_child();
  if (!file.ok()) return nullptr;
  auto child = std::make_unique<State>(choice_, facts_, std::move(file.value()));
  child->describe_process(process_);
  return child;
}

void Recorder::State::describe_process(int32_t parent) {
  std::string text = facts_;
  if (parent != 0) text += "fork_of=" + std::to_string(parent) + "\n";
  definitions_.define(DefinitionKind::kProcess, 0, text);
  for (unsigned kind = 0; kind < kObjectKinds; ++kind) {
    definitions_.define(DefinitionKind::kObjectKind, kind,
                        words_of(static_cast<ObjectKind>(kind)).noun);
  }
  uint32_t number = 0;
  for (const char* const name : task_kinds) {
    definitions_.define(DefinitionKind::kTaskKind, number++, name);
  }
}

void Recorder::State::leave(ThreadPart& part) noexcept {
  // A thread that ends in a call is in none behind that.
  part.chunk->open_function.store(0, std::memory_order_relaxed);
  {
    const MutexLock lock(mutex_);
    if (spare_count_ < spare_.size() && part.end - part.next >= kUsefulWords) {
      spare_.at(spare_count_++) = {part.chunk, part.next, part.end};
    } else {
      close(part.chunk);
    }
  }
  part.chunk = nullptr;
  part.next = nullptr;
  part.end = nullptr;
}

bool Recorder::State::take_spare(ThreadPart& part) noexcept {
  const MutexLock lock(mutex_);
  if (spare_count_ == 0) return false;
  const Spare& spare = spare_.at(--spare_count_);
  part.chunk = spare.chunk;
  part.next = spare.next;
  part.end = spare.end;
  return true;
}

bool Recorder::State::change_chunk(ThreadPart& part) noexcept {
  const platform::KeptErrno kept_errno;
  ChunkHeader* const before = part.chunk;
  const bool is_new = before == nullptr;
  part.chunk = nullptr;
  part.next = nullptr;
  part.end = nullptr;
  if (!part.has_ended) {
    thread_local ThreadPart::Returner returner;
    (void)&returner;
  }
  if (is_new && take_spare(part)) {
    const RecordHead head{RecordKind::kThread, 1, 0,
                          static_cast<int32_t>(platform::kernel_thread_id())};
    std::atomic_ref(*part.next).store(head.packed(), std::memory_order_release);
    ++part.next;
    return true;
  }
  part.chunk = file_->take_chunk(ChunkKind::kRecords);
  if (!is_new) {
    if (part.chunk != nullptr) move_open_call(*before, *part.chunk);
    close(before);
  }
  if (part.chunk == nullptr) return false;
  auto* const bytes = reinterpret_cast<char*>(part.chunk);
  part.next = reinterpret_cast<uint64_t*>(bytes + kChunkHeaderBytes);
  part.end = reinterpret_cast<uint64_t*>(bytes + kChunkBytes);
  return true;
}

}  // namespace understudy
