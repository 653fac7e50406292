// SPDX-License-Identifier: Apache-2.0
//
// The ledger as it lies in its file, mapped by every process of a server. Numbers of memory are
// pages of 4 KiB. A change of this layout is a new kLedgerVersion.
//
// A process changes its own slot and uses at any time; everything else under the ledger's lock, and
// leases of others as page_account.h tells. Each change leaves every entry whole at every instant,
// because a process may be killed at any: what follows from the entries (totals, lists of free
// ones) is computed anew when the lock is taken from a dead process.
//
// Nothing outside src/server reaches this memory: LedgerFile owns the mapping, and each table the
// part of it that it is named after.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "base/sizes.h"
#include "base/thread_shard.h"
#include "device/settings.h"
#include "server/host_headroom.h"
#include "server/ledger_mutex.h"

namespace understudy {

inline constexpr uint64_t kLedgerMagic = 0x2e6c74736e646e55;
inline constexpr uint32_t kLedgerVersion = 7;
inline constexpr unsigned kProcessSlots = 512;
inline constexpr uint32_t kMostShares = 1U << 20;
inline constexpr uint32_t kMostEvents = 1U << 16;
inline constexpr uint32_t kMostNotifies = 1U << 17;
inline constexpr unsigned kPools = 2;  // normal, huge
// Where the ledger counts memory of the host for copies between devices: behind the devices, as one
// more of them with one pool.
inline constexpr unsigned kHostWindow = kMaxDevices;
inline constexpr unsigned kCounted = kMaxDevices + 1;

// What all processes of a server must agree on.
struct ServerShape {
  std::array<char, 24> product{};
  uint32_t devices = 0;
  uint32_t reserved = 0;
  uint64_t memory = 0;                // per device
  uint64_t normal_memory = 0;         // the part of it in normal pages
  IdleUsage idle_usage;               // the part of it that no process can have
  uint64_t host_window = kUnlimited;  // memory of the host for copies between devices

  static constexpr uint64_t kUnlimited = UINT64_MAX;

  // Pages of a pool, and those of them that processes can have.
  uint64_t pages(unsigned pool) const {
    return (pool == 0 ? normal_memory : memory - normal_memory) / kNormalPage;
  }
  uint64_t usable_pages(unsigned pool) const {
    return pages(pool) - (pool == 0 ? idle_usage.normal : idle_usage.huge) / kNormalPage;
  }

  friend bool operator==(const ServerShape&, const ServerShape&) = default;
};

// Pages of the pools of one device.
struct alignas(64) PoolWords {
  std::array<std::atomic<uint64_t>, kPools> words;
};

// The use of one device by one process.
struct alignas(64) DeviceUse {
  std::array<std::atomic<uint64_t>, kPools> words;    // as PoolWord
  std::array<std::atomic<uint64_t>, kPools> pending;  // pages that it may be granted in a moment
  std::atomic<uint64_t> peak;                         // most pages of both pools; for people
};
static_assert(sizeof(DeviceUse) == 64);

// The uses of all devices by a group of processes. What the processes use of one device lies
// together, a cache line each, so that a sum over them reads a few pages in one go, and processes
// that charge at the same time do not disturb each other.
struct alignas(4096) UseGroup {
  static constexpr unsigned kSlots = 64;

  std::array<std::array<DeviceUse, kSlots>, kCounted> devices;
};
static_assert(sizeof(UseGroup) == kCounted * 4096);
inline constexpr unsigned kUseGroups = kProcessSlots / UseGroup::kSlots;

// Where other processes find a backing file of this one.
struct BackingFileRecord {
  uint64_t size = 0;
  uint64_t file_system = 0;
  uint64_t inode = 0;
  uint64_t states_file_system = 0;
  uint64_t states_inode = 0;
  int32_t descriptor = -1;
  int32_t states_descriptor = -1;
  uint8_t file_kind = 0;
  uint8_t fresh_byte = 0;  // what cold memory reads as
};

struct alignas(4096) ProcessSlot {
  static constexpr unsigned kBackingFiles = 28;

  std::atomic<uint32_t> taken{0};
  int32_t process = 0;
  std::atomic<uint64_t> generation{0};  // how many processes had the slot
  uint32_t holds = 0;                   // entries of all tables; under the lock
  uint32_t exports = 0;                 // entries that it ever made; under the lock
  // With the number of the process above: who has the slot, as platform::ProcessIdentity.
  uint64_t birth = 0;
  uint64_t pid_namespace = 0;
  std::atomic<uint32_t> returned{0};       // shares that came back from others; under the lock
  std::atomic<uint32_t> backing_files{0};  // how many of them are there
  std::array<BackingFileRecord, kBackingFiles> backing;
  // The only word of a slot that other processes change: they ring when something happened to what
  // the process holds.
  alignas(64) std::atomic<uint32_t> rings{0};
  std::atomic<uint32_t> listens{0};  // whether a thread of the process sleeps on it
};
static_assert(sizeof(ProcessSlot) == 4096);

// What host memory is made of that a process put behind blocks.
enum class BackingKind : uint8_t { kSmallPages, kCollapsed, kHugetlb };
inline constexpr unsigned kBackingKinds = 3;

// What a process tells people of itself, besides what its slot says: nothing follows from it. One
// per slot, written by the process of the slot and read by viewers alone, so that it lies apart
// from the slots, which every charge reads.
struct alignas(4096) ProcessFigures {
  // Streams with a higher number have no mark.
  static constexpr unsigned kStreamMarks = 2048;

  std::array<char, 24> soc{};
  std::array<std::atomic<uint64_t>, kBackingKinds> backing{};  // bytes
  std::atomic<uint64_t> page_locked{0};                        // bytes of host memory
  std::atomic<uint32_t> streams{0};
  // Charges that succeeded, by thread and device. A thread with a number below kShards has a row of
  // its own and needs no atomic addition; all others share the last one.
  alignas(64) std::array<std::array<std::atomic<uint64_t>, kMaxDevices>, kShards + 1> charges{};
  // Whether a stream has work: 1 from the moment it is ready until it is idle.
  alignas(64) std::array<std::atomic<uint8_t>, kStreamMarks> busy{};
};
static_assert(sizeof(ProcessFigures) == 8192);

// Bit per process slot.
struct SlotSet {
  std::array<std::atomic<uint64_t>, kProcessSlots / 64> words;

  void add(unsigned slot) { words[slot / 64].fetch_or(uint64_t{1} << (slot % 64)); }
  void remove(unsigned slot) { words[slot / 64].fetch_and(~(uint64_t{1} << (slot % 64))); }
  bool has(unsigned slot) const { return (words[slot / 64].load() >> (slot % 64) & 1) != 0; }
  void clear() {
    for (auto& word : words) word.store(0);
  }
  template <typename Visit>
  void for_each(Visit visit) const {
    for (unsigned i = 0; i < words.size(); ++i) {
      for (uint64_t left = words[i].load(); left != 0; left &= left - 1) {
        visit(i * 64 + static_cast<unsigned>(std::countr_zero(left)));
      }
    }
  }
  unsigned count() const {
    int count = 0;
    for (const auto& word : words) count += std::popcount(word.load());
    return static_cast<unsigned>(count);
  }
  bool empty() const {
    for (const auto& word : words) {
      if (word.load() != 0) return false;
    }
    return true;
  }
};

enum class ShareKind : uint8_t { kNumber, kFabric, kKey };

// Memory that processes share, charged once to its device until the last holder is gone.
struct alignas(128) ShareEntry {
  std::atomic<uint64_t> secret{0};  // random bits of the token; 0: no new holder may come in
  uint64_t owner_tag = 0;           // of the exporter, also when that process is gone
  std::atomic<uint32_t> live{0};
  uint32_t next_free = 0;  // number + 1
  uint32_t pages = 0;      // charged
  uint16_t owner = 0;      // the exporter's slot, kNoSlot if it is gone
  ShareKind kind = ShareKind::kNumber;
  uint8_t open_to_all = 0;
  uint8_t page_kind = 0;
  uint8_t attribute = 0;
  uint8_t location_kind = 0;
  uint8_t read_only = 0;
  uint16_t location_id = 0;  // number of the device on the server, or of the NUMA node
  uint16_t backing = 0;      // of the exporter
  uint64_t offset = 0;       // in the backing file; all three in bytes, of any alignment
  uint64_t size = 0;
  uint64_t usable = 0;  // what importers may use of it
  SlotSet holders;

  static constexpr uint16_t kNoSlot = 0xFFFF;
};
static_assert(sizeof(ShareEntry) == 128);

// An event that processes share. Records are numbered; which of the latest ones were reached is in
// `records`, at the place of their number.
struct alignas(64) EventEntry {
  static constexpr unsigned kRecords = 32;
  struct Record {
    std::atomic<uint64_t> word;  // number * 2 + whether it was reached
    std::atomic<uint64_t> process;
    std::atomic<uint64_t> stream;  // of that process
    std::atomic<uint64_t> over;    // records here up to this number were reached
  };

  std::atomic<uint64_t> secret{0};
  std::atomic<uint32_t> live{0};
  uint32_t next_free = 0;
  uint16_t owner = 0;
  std::atomic<uint32_t> changes{0};  // to sleep on
  std::atomic<uint64_t> latest{0};   // number of the latest record
  std::array<Record, kRecords> records;
  SlotSet holders;
};

// A notify that processes share.
struct alignas(64) NotifyEntry {
  std::atomic<uint64_t> secret{0};
  std::atomic<uint32_t> live{0};
  uint32_t next_free = 0;
  uint16_t owner = 0;
  uint16_t device = 0;  // its number on the server
  uint8_t open_to_all = 0;
  std::atomic<uint32_t> is_set{0};
  SlotSet holders;
};
static_assert(sizeof(NotifyEntry) == 128);

// A table of entries that are taken and given back under the lock.
struct TableHead {
  std::atomic<uint32_t> high;    // one past the highest entry that was ever taken
  uint32_t first_free;           // number + 1
  std::atomic<uint32_t> backed;  // entries that have memory
};

struct LedgerHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t header_bytes;
  ServerShape shape;
  // Of the shape, for every charge to be measured by: the pools of each device, the host window.
  std::array<uint64_t, kPools + 1> usable_pages;
  std::array<uint64_t, 2> server;  // random, tells servers apart
  uint64_t check;                  // over all of the above

  alignas(64) LedgerMutexWord mutex;
  alignas(64) std::atomic<uint64_t> changes;  // odd while entries and totals may disagree
  std::atomic<uint32_t> slots;                // one past the highest slot that was ever taken
  TableHead shares;
  TableHead events;
  TableHead notifies;
  alignas(64) std::array<PoolWords, kCounted> shared;     // pages of all shares
  alignas(64) std::array<PoolWords, kCounted> held_back;  // for a charge under the lock
  HostHeadroomWords host_headroom;
  // How the ends of processes are noticed (process_slots.h). Of the slots that are taken, those
  // whose ends the segment counts, and those that each look must ask for.
  alignas(64) SlotSet counted;
  SlotSet uncounted;
  int32_t segment;                        // a platform::Attachment's
  std::atomic<uint32_t> counts_too_many;  // it has attachments of what is no process of the server
};
static_assert(HostHeadroomWords::kSlots == kProcessSlots);

inline constexpr uint64_t kSlotsOffset = uint64_t{16} << 10;
inline constexpr uint64_t kUsesOffset = kSlotsOffset + kProcessSlots * sizeof(ProcessSlot);
inline constexpr uint64_t kFiguresOffset = kUsesOffset + kUseGroups * sizeof(UseGroup);
inline constexpr uint64_t kSharesOffset = uint64_t{8} << 20;
inline constexpr uint64_t kEventsOffset = kSharesOffset + kMostShares * sizeof(ShareEntry);
inline constexpr uint64_t kNotifiesOffset = kEventsOffset + kMostEvents * sizeof(EventEntry);
inline constexpr uint64_t kLedgerBytes = kNotifiesOffset + kMostNotifies * sizeof(NotifyEntry);
static_assert(sizeof(LedgerHeader) <= kSlotsOffset);
static_assert(kFiguresOffset + kProcessSlots * sizeof(ProcessFigures) <= kSharesOffset);

// Locks of bytes far behind the end of the file: one for the process that joins, one per slot.
inline constexpr uint64_t kJoinByte = uint64_t{1} << 40;
inline constexpr uint64_t kSlotBytes = kJoinByte + 1;
static_assert(kLedgerBytes < kJoinByte);

}  // namespace understudy
