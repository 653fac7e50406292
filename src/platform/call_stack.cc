// SPDX-License-Identifier: Apache-2.0
#include "platform/call_stack.h"

#include <link.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <new>
#include <utility>

#include "base/virtual_range.h"

namespace understudy::platform {

namespace {

// With those of this library, which are not kept.
constexpr size_t kMostUnwound = CallStack::kMostFrames + 16;

struct UnwoundFrame {
  uintptr_t address;  // where its caller goes on
  uintptr_t place;    // where that address stands on the stack
};
struct UnwoundStack {
  std::array<UnwoundFrame, kMostUnwound> frames;
  size_t count = 0;
  bool is_inside = true;
};

// Where a return address stands is known from the end of the frame only if every call pushes it.
#if defined(__x86_64__)
constexpr bool kPlacesAreKnown = true;
#else
constexpr bool kPlacesAreKnown = false;
#endif

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* argument) {
  auto& stack = *static_cast<UnwoundStack*>(argument);
  // The first frame is that of the function which unwinds.
  if (std::exchange(stack.is_inside, false)) return _URC_NO_REASON;
  if (stack.count == stack.frames.size()) return _URC_END_OF_STACK;
  const uintptr_t address = _Unwind_GetIP(context);
  if (address == 0) return _URC_END_OF_STACK;
  stack.frames[stack.count++] = {address, _Unwind_GetCFA(context) - sizeof(uintptr_t)};
  return _URC_NO_REASON;
}

// The code of this library, unless it is part of the program.
struct CodeRange {
  uintptr_t begin = 0;
  uintptr_t end = 0;
};

int find_own_code(dl_phdr_info* object, size_t, void* argument) {
  const auto here = reinterpret_cast<uintptr_t>(&find_own_code);
  for (size_t i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    const uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || here < begin || here >= begin + segment.p_memsz) continue;
    const bool is_program = object->dlpi_name == nullptr || *object->dlpi_name == '\0';
    if (!is_program) *static_cast<CodeRange*>(argument) = {begin, begin + segment.p_memsz};
    return 1;
  }
  return 0;
}

// Looked for when the library is loaded: a static variable of a function would have a lock, which a
// fork child might find taken.
const CodeRange own_code = [] {
  CodeRange range;
  dl_iterate_phdr(find_own_code, &range);
  return range;
}();

uint64_t hash_of(std::span<const uintptr_t> frames) {
  uint64_t hash = frames.size();
  for (const uintptr_t frame : frames) hash = (hash ^ frame) * 0x9e3779b97f4a7c15;
  return hash ^ (hash >> 32);
}

}  // namespace

// All stacks, in lists that only grow.
class StackDepot {
 public:
  static const CallStack* keep(std::span<const uintptr_t> frames) noexcept {
    std::atomic<const CallStack*>& bucket = buckets_[hash_of(frames) % buckets_.size()];
    const auto is_it = [&](const CallStack& stack) {
      return stack.named().empty() && std::ranges::equal(stack.frames(), frames);
    };
    if (const CallStack* const known = find(bucket.load(std::memory_order_acquire), is_it)) {
      return known;
    }
    auto fresh = std::unique_ptr<CallStack>(new (std::nothrow) CallStack);
    if (fresh == nullptr) return nullptr;
    std::ranges::copy(frames, fresh->frames_);
    fresh->count_ = static_cast<uint32_t>(frames.size());
    return add(bucket, std::move(fresh), is_it);
  }
  // May throw std::bad_alloc.
  static const CallStack* keep(std::string_view place) {
    std::atomic<const CallStack*>& bucket =
        buckets_[std::hash<std::string_view>()(place) % buckets_.size()];
    const auto is_it = [&](const CallStack& stack) { return stack.named() == place; };
    if (const CallStack* const known = find(bucket.load(std::memory_order_acquire), is_it)) {
      return known;
    }
    auto fresh = std::unique_ptr<CallStack>(new CallStack);
    fresh->named_ = place;
    return add(bucket, std::move(fresh), is_it);
  }

 private:
  template <typename IsIt>
  static const CallStack* find(const CallStack* stack, IsIt is_it) {
    while (stack != nullptr && !is_it(*stack)) stack = stack->next_;
    return stack;
  }
  template <typename IsIt>
  static const CallStack* add(std::atomic<const CallStack*>& bucket,
                              std::unique_ptr<CallStack> fresh, IsIt is_it) {
    const CallStack* first = bucket.load(std::memory_order_acquire);
    do {
      // Another thread may have been faster.
      if (const CallStack* const known = find(first, is_it)) return known;
      fresh->next_ = first;
    } while (!bucket.compare_exchange_weak(first, fresh.get(), std::memory_order_acq_rel));
    return fresh.release();
  }

  static std::array<std::atomic<const CallStack*>, 4096> buckets_;
};

constinit std::array<std::atomic<const CallStack*>, 4096> StackDepot::buckets_{};

namespace {

// The stacks that a thread has seen, by the depth at which it saw them.
class SeenStacks {
 public:
  // Null if the stack is another one than the last time at this depth.
  const CallStack* find(uintptr_t anchor) const {
    const Seen& seen = seen_[index_of(anchor)];
    return seen.anchor == anchor && holds(seen.unwound) ? seen.stack : nullptr;
  }
  void remember(uintptr_t anchor, const UnwoundStack& unwound, const CallStack* stack) {
    seen_[index_of(anchor)] = {anchor, stack, unwound};
  }

 private:
  struct Seen {
    uintptr_t anchor = 0;
    const CallStack* stack = nullptr;
    UnwoundStack unwound;
  };

  static size_t index_of(uintptr_t anchor) { return anchor / 16 % kSeen; }

  // From the inside out: as long as the addresses are the same, so are the frames, and the next
  // place is on the stack as well. No sanitizer's affair: no variable of any function is there.
  __attribute__((no_sanitize("address", "thread"))) static bool holds(const UnwoundStack& unwound) {
    for (size_t i = 0; i < unwound.count; ++i) {
      const auto* const place = static_cast<const uintptr_t*>(to_pointer(unwound.frames[i].place));
      if (*place != unwound.frames[i].address) return false;
    }
    return true;
  }

  static constexpr size_t kSeen = 64;
  std::array<Seen, kSeen> seen_;
};

// Of this thread, if it is named.
constinit thread_local const CallStack* named_place = nullptr;

// Of this thread; made by its first capture, and gone before its last destructors.
constinit thread_local SeenStacks* seen_stacks = nullptr;
constinit thread_local bool is_ending = false;
struct SeenStacksEnd {
  ~SeenStacksEnd() {
    delete seen_stacks;
    seen_stacks = nullptr;
    is_ending = true;
  }
};

SeenStacks* own_seen_stacks() noexcept {
  if (seen_stacks != nullptr || is_ending) return seen_stacks;
  static thread_local SeenStacksEnd end;
  (void)end;
  seen_stacks = new (std::nothrow) SeenStacks;
  return seen_stacks;
}

std::span<const uintptr_t> program_frames(const UnwoundStack& unwound,
                                          std::array<uintptr_t, kMostUnwound>& room) {
  const auto is_own = [](const UnwoundFrame& frame) {
    return frame.address >= own_code.begin && frame.address < own_code.end;
  };
  size_t first = 0;
  while (first < unwound.count && is_own(unwound.frames[first])) ++first;
  const size_t count = std::min(unwound.count - first, CallStack::kMostFrames);
  for (size_t i = 0; i < count; ++i) room[i] = unwound.frames[first + i].address;
  return {room.data(), count};
}

}  // namespace

[[gnu::noinline]] const CallStack* capture_stack() noexcept {
  if (named_place != nullptr) return named_place;
  const auto anchor = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  SeenStacks* const seen = kPlacesAreKnown ? own_seen_stacks() : nullptr;
  if (seen != nullptr) {
    if (const CallStack* const known = seen->find(anchor)) return known;
  }
  UnwoundStack unwound;
  _Unwind_Backtrace(add_frame, &unwound);
  std::array<uintptr_t, kMostUnwound> room;
  const CallStack* const stack = StackDepot::keep(program_frames(unwound, room));
  if (seen != nullptr && stack != nullptr) seen->remember(anchor, unwound, stack);
  return stack;
}

[[gnu::noinline]] const CallStack* capture_interrupted_stack(uintptr_t instruction) noexcept {
  if (named_place != nullptr) return named_place;
  UnwoundStack unwound;
  _Unwind_Backtrace(add_frame, &unwound);
  size_t first = 0;
  while (first < unwound.count && unwound.frames[first].address != instruction) ++first;
  std::array<uintptr_t, CallStack::kMostFrames> room;
  room[0] = instruction + 1;  // as if it were a call that has to return
  size_t count = 1;
  for (size_t i = first + 1; i < unwound.count && count < room.size(); ++i) {
    room[count++] = unwound.frames[i].address;
  }
  return StackDepot::keep({room.data(), count});
}

void name_place(std::string_view place) {
  named_place = place.empty() ? nullptr : StackDepot::keep(place);
}

}  // namespace understudy::platform
