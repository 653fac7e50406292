// SPDX-License-Identifier: Apache-2.0
//
// What this process holds of the server's shares, by the number of the share, and the queue of
// holds that it needs no more. The ledger knows one hold per process and share; here is which side
// of the process needs it (a process may import what it has exported), and what was exported.
//
// Frees never wait. Who ends the last need of a hold puts it on the queue; release_some() takes a
// batch from it with one attempt at the ledger's lock. The nodes of the queue are there from the
// start, one for every number, so that nothing is allocated either.
//
// | needed | held | queued | the process                                                        |
// | no     | no   | no     | has nothing to do with the share, or has left what it exported to  |
// |        |      |        | others (exported() tells)                                          |
// | yes    | no   | any    | is importing it                                                    |
// | yes    | yes  | no     | has exported or imported it                                        |
// | no     | yes  | yes    | waits for the ledger's lock to give it up                          |
// | yes    | yes  | yes    | has imported it again meanwhile: it is passed over                 |
//
// The ledger gives a number to another share as soon as the hold is dropped. That happens under
// this lock, and a thread that gets a number enters it here before anything else: no thread
// finds what the share before it has left. Any thread may call anything.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/mutex.h"
#include "base/zeroed_array.h"
#include "server/share_table.h"
#include "sharing/exported_memory.h"

namespace understudy {

// The side of a process that needs a hold.
enum class HoldUser : uint8_t { kExporter = 1, kImporter = 2 };

// A hold that was given up.
struct ReleasedHold {
  uint32_t number = 0;
  AfterDrop after = AfterDrop::kHeld;
  bool is_export = false;   // of a share that this process has exported
  ExportedMemory exported;  // which is this process's alone again, if anything
};

class ReleaseQueue {
 public:
  explicit ReleaseQueue(ShareTable& table) : table_(table), holds_(kMostShares) {}

  // Enters what this process has exported and holds.
  void enter_export(uint32_t number, ExportedMemory memory);
  // It is exported in another way from now on.
  void change_export(uint32_t number, ExportedMemory memory);
  ExportedMemory exported(uint32_t number) const;

  // The importer is about to hold a share. True: its hold was on the queue, and stays. A number of
  // an export of this process has become that after the importer looked the share up: its hold
  // stays while the importer finds that out.
  bool need_for_import(uint32_t number);
  // The ledger says that this process holds it. REQUIRES: it is needed.
  void note_held(uint32_t number);
  // True: no side needs it now, and it is on the queue.
  bool end_need(uint32_t number, HoldUser user) noexcept;

  bool is_empty() const { return queued_.load() == 0; }
  // Gives up as many holds as there is room for, and says how many. Nothing if the ledger's lock
  // could not be had at the first attempt.
  std::optional<size_t> release_some(std::span<ReleasedHold> room) noexcept;
  // Takes as much of what this process has left to others, and they have given back, as there is
  // room for. The same attempt.
  size_t take_returned(std::span<ExportedMemory> room) noexcept;

  static constexpr size_t kBatch = 32;  // room that is enough for a batch

 private:
  struct Hold {
    ExportedMemory exported;
    uint32_t next;  // in the queue, number + 1
    uint8_t needs;
    bool held;
    bool queued;
  };
  static_assert(sizeof(Hold) == 16);

  void push_back_locked(uint32_t number) US_REQUIRES(mutex_);
  void push_front_locked(uint32_t number) US_REQUIRES(mutex_);
  uint32_t pop_locked() US_REQUIRES(mutex_);

  ShareTable& table_;
  mutable Mutex mutex_{LockRank::kReleaseQueue};
  ZeroedArray<Hold> holds_ US_GUARDED_BY(mutex_);
  uint32_t first_ US_GUARDED_BY(mutex_) = 0;  // number + 1
  uint32_t last_ US_GUARDED_BY(mutex_) = 0;
  std::atomic<uint32_t> queued_{0};  // changed under the lock
};

}  // namespace understudy
