// SPDX-License-Identifier: Apache-2.0
//
// What the numbers in a process's records stand for. Each is defined the first time it is used, in
// chunks of definitions. Looking one up takes no lock; any thread may call anything, with any
// locks.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "base/mutex.h"
#include "observe/recorder.h"
#include "observe/recording_file.h"
#include "platform/call_stack.h"

namespace understudy {

class RecordingDefinitions {
 public:
  explicit RecordingDefinitions(RecordingFile& file) : file_(file) {}

  // 0 if it could not be defined.
  uint32_t function(const CallShape& shape) noexcept;
  uint32_t stack(const platform::CallStack* stack) noexcept;
  uint32_t text(std::string_view text) noexcept;
  void define(DefinitionKind kind, uint32_t number, std::string_view text) noexcept;

 private:
  // Pointers that are never freed, to numbers from 1 on. Any thread may look; one adds at a time.
  class Numbers {
   public:
    // 0: not known yet.
    uint32_t find(const void* key) const noexcept;
    // Never quite full: a look-up ends at an empty slot.
    bool is_full() const noexcept { return last_.load(std::memory_order_relaxed) == kSlots / 2; }
    // REQUIRES: it is not known, and there is room.
    uint32_t add(const void* key) noexcept;

   private:
    static constexpr size_t kSlots = 16384;
    struct Slot {
      std::atomic<const void*> key{nullptr};
      std::atomic<uint32_t> number{0};
    };
    static size_t place_of(const void* key) noexcept;

    std::array<Slot, kSlots> slots_{};
    std::atomic<uint32_t> last_{0};
  };

  // The number is the caller's to define if `is_new`; 0: there is no room.
  uint32_t add(Numbers& numbers, const void* key, bool& is_new) noexcept US_EXCLUDES(mutex_);
  bool write_locked(DefinitionKind kind, uint32_t number, std::string_view text)
      US_REQUIRES(mutex_);

  RecordingFile& file_;
  Numbers functions_;
  Numbers stacks_;
  Numbers texts_;
  Mutex mutex_{LockRank::kRecording};
  uint64_t* next_ US_GUARDED_BY(mutex_) = nullptr;
  uint64_t* end_ US_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace understudy
