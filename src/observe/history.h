// SPDX-License-Identifier: Apache-2.0
//
// The lives of the objects that the program has and had, for checks that explain and for leaks.
// The owner of an object says when it begins and when it ends; where no check is chosen, each of
// these is one test of a word.
//
//   History::begin({ObjectKind::kBlock, handle, size, device});   // before the program knows it
//
//   const ObjectEnd end(ObjectKind::kBlock, handle);   // before it may become another one's number
//   ... end the block ...
//   end.confirm();                                     // it has ended
//
// Of each kind and number the last life is kept. Lives that ended are forgotten, the oldest first,
// when there are very many. A fork child begins with none. Any thread may call anything, also with
// locks: the locks here are below all others, and nothing but heap memory is waited for.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "observe/check.h"
#include "observe/object_life.h"

namespace understudy {

struct NewObject {
  ObjectKind kind = ObjectKind::kAllocation;
  uint64_t number = 0;
  uint64_t size = 0;
  int32_t device = kNoDevice;
  uint64_t part_of = 0;
  PageUse pages{};
  bool is_imported = false;  // of another process
  // Bytes of memory, where that is neither what `pages` says nor the size.
  std::optional<uint64_t> taken{};
};

class History {
 public:
  History() = delete;

  static void begin(NewObject object) noexcept {
    if (is_observed()) [[unlikely]]
      note_begin(object);
  }
  // The program has one more handle of it.
  static void add_handle(ObjectKind kind, uint64_t number) noexcept {
    if (is_observed()) [[unlikely]]
      note_handle(kind, number);
  }
  // All objects of a kind end that are on a device, or part of something.
  static void end_on(ObjectKind kind, int32_t device, const char* cause) noexcept {
    if (is_observed()) [[unlikely]]
      note_ends(kind, device, 0, cause);
  }
  static void end_parts_of(ObjectKind kind, uint64_t part_of, const char* cause) noexcept {
    if (is_observed()) [[unlikely]]
      note_ends(kind, kNoDevice, part_of, cause);
  }

  // The life that a number, a handle or an address, is of: the object itself, or the one that an
  // address is or was inside of. Of several the most telling: what lives, then what ended last.
  static std::optional<ObjectLife> explain(uint64_t number) noexcept;
  // The same; of an address that nothing is around, what ends a little before it.
  static std::optional<ObjectLife> explain_near(uint64_t address) noexcept;
  // Those that have not ended, in the order of their beginning. May throw std::bad_alloc.
  static std::vector<ObjectLife> live();
  // The life of an object that has not ended.
  static std::optional<ObjectLife> find_live(ObjectKind kind, uint64_t number) noexcept;
  // How many lives have begun.
  static uint64_t count_begun() noexcept;
  // They are not told as leaks again.
  static void set_told(const std::vector<ObjectLife>& lives) noexcept;

  // The calling thread begins and ends a public function, whose name lives as long as the process.
  // A function inside another one, from a callback, hides that from then on.
  static void enter_function(const char* function) noexcept;
  static void leave_function() noexcept;
  // Where the calling thread is in the program.
  static ProgramPlace here() noexcept;
  // See platform/call_stack.h.
  static void name_place(std::string_view place) { platform::name_place(place); }

 private:
  friend class ObjectEnd;
  struct Key;
  class Shard;
  struct State;

  static State* state() noexcept;
  static void note_begin(NewObject object) noexcept;
  static void note_handle(ObjectKind kind, uint64_t number) noexcept;
  static void note_ends(ObjectKind kind, int32_t device, uint64_t part_of,
                        const char* cause) noexcept;
  // 0 if there is none that lives; a number that is none's where ends are only recorded.
  static uint64_t order_of_ending(ObjectKind kind, uint64_t number) noexcept;
  static void note_end(ObjectKind kind, uint64_t number, uint64_t order) noexcept;
  static void forget_in_fork_child();

  static std::atomic<State*> state_;
  static const bool registered_;
};

// An object that may be about to end.
class ObjectEnd {
 public:
  ObjectEnd(ObjectKind kind, uint64_t number) noexcept : kind_(kind), number_(number) {
    if (is_observed()) [[unlikely]]
      order_ = History::order_of_ending(kind, number);
  }
  // It has; or one handle of several.
  void confirm() const noexcept {
    if (order_ != 0) [[unlikely]]
      History::note_end(kind_, number_, order_);
  }

 private:
  const ObjectKind kind_;
  const uint64_t number_;
  uint64_t order_ = 0;  // 0: its end is of no interest
};

}  // namespace understudy
