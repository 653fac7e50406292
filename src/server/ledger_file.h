// SPDX-License-Identifier: Apache-2.0
//
// The file of a ledger as this process has it: mapped, with a descriptor for what a mapping cannot
// do, and the locks of its bytes by which processes see each other. A program may close descriptors
// that are not its own, or all of them: then the file is opened again. A server of one process has
// no file, only memory. Any thread may call anything. Used by the parts of the server alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "base/deadline.h"
#include "base/result.h"
#include "platform/byte_lock.h"
#include "platform/memory_file.h"
#include "platform/private_directory.h"
#include "platform/shared_mapping.h"
#include "server/ledger_layout.h"
#include "server/ledger_mutex.h"

namespace understudy {

// What the first bytes of a file say it is.
enum class HeaderKind : uint8_t { kOwnVersion, kOtherVersion, kForeign };
HeaderKind kind_of(const LedgerHeader& header);

class LedgerFile {
 public:
  static Result<LedgerFile> open(platform::PrivateDirectory directory);
  // Memory of this process alone.
  static Result<LedgerFile> make_private();
  LedgerFile(LedgerFile&& other) noexcept;
  LedgerFile& operator=(LedgerFile&&) = delete;
  ~LedgerFile();

  // Null for a server of this process alone.
  const platform::PrivateDirectory* directory() const {
    return directory_ ? &*directory_ : nullptr;
  }
  std::string path() const;

  LedgerHeader& header() const { return at<LedgerHeader>(0); }
  ProcessSlot& slot(unsigned number) const { return (&at<ProcessSlot>(kSlotsOffset))[number]; }
  // The uses of a device by all processes of a group.
  DeviceUse* uses(unsigned group, unsigned device) const {
    return (&at<UseGroup>(kUsesOffset))[group].devices[device].data();
  }
  DeviceUse& use(unsigned slot, unsigned device) const {
    return uses(slot / UseGroup::kSlots, device)[slot % UseGroup::kSlots];
  }
  ProcessFigures& figures(unsigned slot) const {
    return (&at<ProcessFigures>(kFiguresOffset))[slot];
  }
  ShareEntry* shares() const { return &at<ShareEntry>(kSharesOffset); }
  EventEntry* events() const { return &at<EventEntry>(kEventsOffset); }
  NotifyEntry* notifies() const { return &at<NotifyEntry>(kNotifiesOffset); }

  // Whether it was removed from its directory, so that no other process will find it.
  bool is_removed() const { return directory_ && platform::is_removed(descriptor()); }
  // Whether this version of the library can read it: header, and memory for the slots in it.
  bool is_valid() const;
  // Begins a server: nothing is left of an earlier one.
  Result<void> begin(const ServerShape& shape);
  // Makes sure that a range can be touched.
  Result<void> back(uint64_t offset, uint64_t size);
  // The same for all that a slot has.
  Result<void> back_slot(unsigned slot);

  // Whether another process, or another copy of this library in this one, has the lock of a byte of
  // the range. Also where it cannot be told.
  bool is_locked(uint64_t byte, uint64_t count = 1) const;
  // While this lives, the byte is locked. Nothing if that did not happen until the deadline.
  class ByteGuard {
   public:
    ByteGuard(const LedgerFile& file, uint64_t byte) : file_(&file), byte_(byte) {}
    ByteGuard(ByteGuard&& other) noexcept
        : file_(std::exchange(other.file_, nullptr)), byte_(other.byte_) {}
    ByteGuard& operator=(ByteGuard&&) = delete;
    ~ByteGuard();

   private:
    const LedgerFile* file_;
    uint64_t byte_;
  };
  std::optional<ByteGuard> lock(uint64_t byte, Deadline deadline) const;
  // A lock that lasts as long as this process; nothing if another has it.
  Result<std::optional<platform::LifeLock>> take_for_life(uint64_t byte) const;

 private:
  explicit LedgerFile(platform::SharedMapping mapping) : mapping_(std::move(mapping)) {}
  LedgerFile(platform::PrivateDirectory directory, platform::UnsharedFd file,
             platform::SharedMapping mapping);

  template <typename T>
  T& at(uint64_t offset) const {
    return *reinterpret_cast<T*>(mapping_.data() + offset);
  }
  uint64_t size() const;

  static Result<platform::UnsharedFd> open_in(const platform::PrivateDirectory& directory);
  // A descriptor that is the ledger's at this moment; -1 if there is none.
  int descriptor() const;
  int reopen(int lost) const;

  std::optional<platform::PrivateDirectory> directory_;
  platform::FileIdentity identity_;
  platform::SharedMapping mapping_;
  // Kept from fork children. The number of one that the program closed is the program's.
  mutable std::atomic<int> descriptor_{-1};
};

// While this lives, entries and totals may disagree: readers of the totals try again.
class LedgerChange {
 public:
  explicit LedgerChange(const LedgerFile& file) US_REQUIRES(ledger_held)
      : changes_(file.header().changes) {
    changes_.fetch_add(1);
  }
  ~LedgerChange() { changes_.fetch_add(1); }
  LedgerChange(const LedgerChange&) = delete;
  LedgerChange& operator=(const LedgerChange&) = delete;

 private:
  std::atomic<uint64_t>& changes_;
};

}  // namespace understudy
