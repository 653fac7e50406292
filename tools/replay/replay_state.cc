// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/replay_state.h"

#include <sys/mman.h>

#include <cerrno>
#include <chrono>

#include "base/size_text.h"
#include "platform/futex.h"

namespace understudy::command {

namespace {

// Parts of one range of memory.
class Parts {
 public:
  template <typename T>
  void add(T*& part, size_t count) {
    const size_t begin = (size_ + alignof(T) - 1) / alignof(T) * alignof(T);
    size_ = begin + count * sizeof(T);
    if (memory_ != nullptr) part = reinterpret_cast<T*>(memory_ + begin);
  }
  size_t size() const { return size_; }
  void place_at(void* memory) {
    memory_ = static_cast<char*>(memory);
    size_ = 0;
  }

 private:
  char* memory_ = nullptr;
  size_t size_ = 0;
};

}  // namespace

void Signal::raise() {
  word_.fetch_add(1);
  platform::wake_all_processes(word_);
}

void Signal::wait(uint32_t value) const {
  if (word_.load() != value) return;
  platform::sleep_on_shared(word_, value, deadline_after(std::chrono::milliseconds(100)));
}

Result<ReplayState> ReplayState::make(const Recording& recording, const ReplayPlan& plan) {
  ReplayState state;
  state.calls_ = static_cast<uint32_t>(plan.calls.size());
  state.words_ = static_cast<uint32_t>(recording.threads.size()) + kOtherThreads;
  Parts parts;
  const auto lay_out = [&] {
    parts.add(state.header_, 1);
    parts.add(state.results_, plan.calls.size());
    parts.add(state.things_, plan.things.size());
    parts.add(state.bytes_, plan.things.size());
    parts.add(state.threads_, recording.threads.size());
    parts.add(state.processes_, recording.processes.size());
    parts.add(state.differences_, kKeptDifferences);
    parts.add(state.ended_, plan.calls.size());
    parts.add(state.waiting_, state.words_);
  };
  lay_out();
  const size_t size = parts.size();
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return Error::system(ErrorCode::kOutOfResources, errno,
                         "the host cannot map %s for the replay (errno %d)", SizeText(size).c_str(),
                         errno);
  }
  parts.place_at(memory);
  lay_out();
  return state;
}

}  // namespace understudy::command
