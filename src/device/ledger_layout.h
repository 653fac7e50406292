// SPDX-License-Identifier: Apache-2.0
//
// The ledger as it lies in its file, mapped by every process of a server. Numbers of memory are
// pages of 4 KiB. A change of this layout is a new kLedgerVersion.
//
// Who may change what: a process its own slot, at any time; everything else under the mutex. Each
// change leaves every entry whole at every instant, because a process may be killed at any: what
// follows from the entries (totals, lists of free ones) is computed anew when the mutex is taken
// from a dead process.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "device/ledger_mutex.h"
#include "device/settings.h"

namespace understudy {

inline constexpr uint64_t kLedgerMagic = 0x2e6c74736e646e55;
inline constexpr uint32_t kLedgerVersion = 1;
inline constexpr unsigned kProcessSlots = 512;
inline constexpr uint32_t kMostShares = 1U << 20;
inline constexpr uint32_t kMostSharedEvents = 1U << 16;
inline constexpr unsigned kPools = 2;  // normal, huge

// What all processes of a server must agree on.
struct ServerShape {
  std::array<char, 24> product{};
  uint32_t devices = 0;
  uint32_t reserved = 0;
  uint64_t memory = 0;         // per device
  uint64_t normal_memory = 0;  // the part of it in normal pages

  friend bool operator==(const ServerShape&, const ServerShape&) = default;
};

// The use of one pool by one process in one word, so that it is never seen half changed.
class PoolWord {
 public:
  static constexpr unsigned kUsedBits = 33;
  // Set by others: who asks is stopped or dead, and what is asked for does not count.
  static constexpr uint64_t kVoid = uint64_t{1} << 63;

  constexpr explicit PoolWord(uint64_t word) : word_(word) {}
  constexpr uint64_t used() const { return word_ & ((uint64_t{1} << kUsedBits) - 1); }
  constexpr bool is_void() const { return (word_ & kVoid) != 0; }
  // What is asked for and may be taken in a moment.
  constexpr uint64_t asked() const { return is_void() ? 0 : word_ >> kUsedBits; }
  constexpr bool has_asks() const { return (word_ & ~kVoid) >> kUsedBits != 0; }

  static constexpr uint64_t asking(uint64_t pages) { return pages << kUsedBits; }

 private:
  uint64_t word_;
};

struct alignas(64) PoolWords {
  std::array<std::atomic<uint64_t>, kPools> words;
};

// Where other processes find a store of this one.
struct StoreRecord {
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
  static constexpr unsigned kStores = 28;

  std::atomic<uint32_t> taken{0};
  int32_t process = 0;
  std::atomic<uint64_t> generation{0};  // of those who had the slot
  uint32_t holds = 0;                   // shares and events; under the mutex
  uint32_t exports = 0;                 // shares and events that it ever made; under the mutex
  uint64_t birth = 0;
  std::atomic<uint32_t> returned{0};  // shares that came back from others; under the mutex
  std::atomic<uint32_t> stores{0};    // how many of them are there
  std::array<PoolWords, kMaxDevices> devices;
  std::array<StoreRecord, kStores> store;
};
static_assert(sizeof(ProcessSlot) == 4096);

// Bit per process slot.
struct SlotSet {
  std::array<std::atomic<uint64_t>, kProcessSlots / 64> words;

  void add(unsigned slot) { words[slot / 64].fetch_or(uint64_t{1} << (slot % 64)); }
  void remove(unsigned slot) { words[slot / 64].fetch_and(~(uint64_t{1} << (slot % 64))); }
  bool has(unsigned slot) const { return (words[slot / 64].load() >> (slot % 64) & 1) != 0; }
  void clear() {
    for (auto& word : words) word.store(0);
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
  std::atomic<uint64_t> secret{0};  // random bits of the token; 0: nobody new may come in
  uint64_t owner_tag = 0;           // who exported it, also when that process is gone
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
  uint16_t store = 0;        // of the exporter
  uint64_t offset = 0;       // in the store; all three in bytes, of any alignment
  uint64_t size = 0;
  uint64_t usable = 0;  // what importers may use of it
  SlotSet holders;

  static constexpr uint16_t kNoSlot = 0xFFFF;
};
static_assert(sizeof(ShareEntry) == 128);

// An event that processes share. Records are numbered; which of the latest ones were reached is in
// `records`, at the place of their number.
struct alignas(64) SharedEvent {
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

// A table of entries that are taken and given back under the mutex.
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
  std::array<uint64_t, 2> server;  // random, tells servers apart
  uint64_t check;                  // over all of the above

  alignas(64) LedgerMutex mutex;
  alignas(64) std::atomic<uint64_t> changes;  // odd while entries and totals may disagree
  std::atomic<uint32_t> slots;                // one past the highest slot that was ever taken
  TableHead shares;
  TableHead events;
  alignas(64) std::array<PoolWords, kMaxDevices> shared;     // pages of all shares
  alignas(64) std::array<PoolWords, kMaxDevices> held_back;  // for a charge under the mutex
};

inline constexpr uint64_t kSlotsOffset = uint64_t{16} << 10;
inline constexpr uint64_t kSharesOffset = uint64_t{4} << 20;
inline constexpr uint64_t kEventsOffset = kSharesOffset + kMostShares * sizeof(ShareEntry);
inline constexpr uint64_t kLedgerBytes = kEventsOffset + kMostSharedEvents * sizeof(SharedEvent);
static_assert(sizeof(LedgerHeader) <= kSlotsOffset);
static_assert(kSlotsOffset + kProcessSlots * sizeof(ProcessSlot) <= kSharesOffset);

}  // namespace understudy
