// SPDX-License-Identifier: Apache-2.0
//
// Memory is freed, unmapped or unregistered while streams copy to and from it. Each copy is made as
// a whole or fails with 507013 and writes nothing; memory that was not freed keeps its bytes, and
// so does memory that others were given meanwhile.
#include <atomic>
#include <cstdint>
#include <vector>

#include "rules/host_objects.h"
#include "stress/stream_fleet.h"
#include "stress/threads.h"
#include "stress/victims.h"
#include "support/rule_test.h"
#include "support/sanitizers.h"

namespace understudy_test {
namespace {

const int kRounds = kSanitized ? 10 : 80;
constexpr size_t kPieces = 8;
constexpr size_t kPiece = kVictimSize / kPieces;

constexpr uint8_t kVictimByte = 0x11;
constexpr uint8_t kSteadyByte = 0x22;
constexpr uint8_t kUntouched = 0x33;

using FreeDuringCopies = DeviceTest;

// ---- Copies ----

// Memory that stays, on the other side of the copies of one thread. Copies to the victim come from
// a source; each copy from it has a piece of its own.
class SteadyMemory {
 public:
  SteadyMemory() {
    EXPECT_SUCCESS(aclrtMemset(source_.data(), kPiece, kSteadyByte, kPiece));
    reset();
  }
  void reset() {
    EXPECT_SUCCESS(aclrtMemset(targets_.data(), targets_.size(), kUntouched, targets_.size()));
    EXPECT_SUCCESS(aclrtMemset(neighbour_.data(), kPiece, 0, kPiece));
  }
  void* source() const { return source_.data(); }
  void* target(size_t piece) const { return targets_.at(piece * kPiece); }
  void* neighbour() const { return neighbour_.data(); }

  // Each piece was copied as a whole or not at all, and from memory as the victim had it.
  void expect_whole_pieces() const {
    for (size_t piece = 0; piece < kPieces; ++piece) {
      const std::vector<uint8_t> bytes = copy_out(target(piece), kPiece);
      EXPECT_TRUE(bytes[0] == kUntouched || bytes[0] == kVictimByte) << +bytes[0];
      EXPECT_TRUE(is_all(bytes.data(), kPiece, bytes[0])) << "half a copy in piece " << piece;
    }
  }
  // Copies that have nothing to do with the victim are made, whatever failed before them.
  void expect_neighbour_copied() const {
    EXPECT_TRUE(is_all(copy_out(neighbour(), kPiece).data(), kPiece, kSteadyByte));
  }

 private:
  MallocedMemory source_{kPiece};
  MallocedMemory targets_{kVictimSize};
  MallocedMemory neighbour_{kPiece};
};

void queue_copy(void* to, const void* from, aclrtStream stream) {
  EXPECT_SUCCESS(aclrtMemcpyAsync(to, kPiece, from, kPiece, ACL_MEMCPY_DEFAULT, stream));
}

// Copies every other piece of the victim away on one stream and over the others on another one.
void queue_copies(void* victim, const SteadyMemory& steady, aclrtStream from, aclrtStream to) {
  for (size_t piece = 0; piece < kPieces; piece += 2) {
    queue_copy(steady.target(piece), at(victim, piece * kPiece), from);
    queue_copy(at(victim, (piece + 1) * kPiece), steady.source(), to);
  }
  queue_copy(steady.neighbour(), steady.source(), from);
}

void expect_done_or_failed(aclrtStream stream) {
  const aclError code = synchronize_within_limit(stream);
  EXPECT_TRUE(code == ACL_SUCCESS || code == ACL_ERROR_RT_SYS_DMA) << code;
}

// Whether copies that run late may meet a victim of another thread at the same address.
enum class Address : bool { kOwn, kShared };

// What one thread does, over and over: the copies run while the memory goes.
void take_away_during_copies(Victim& victim, Address address) {
  const StreamFleet streams(2);
  SteadyMemory steady;
  for (int round = 0; round < kRounds && !testing::Test::HasFailure(); ++round) {
    steady.reset();
    void* const memory = victim.take();
    EXPECT_SUCCESS(aclrtMemset(memory, kVictimSize, kVictimByte, kVictimSize));
    queue_copies(memory, steady, streams[0], streams[1]);
    // Now and then some of the copies come first.
    if (round % 3 == 0) {
      EXPECT_TRUE(comes_true([&] { return copy_out(steady.target(0), 1)[0] != kUntouched; }));
    }
    victim.give_back();
    victim.take_heir();
    expect_done_or_failed(streams[0]);
    expect_done_or_failed(streams[1]);
    victim.expect_heir_unchanged();
    if (address == Address::kOwn) steady.expect_whole_pieces();
    steady.expect_neighbour_copied();
  }
}

template <typename Kind>
void take_away_on_threads(int threads, Address address) {
  const MemoryFigures before = memory_figures();
  run_on_threads(threads, [&](int) {
    Kind victim;
    take_away_during_copies(victim, address);
  });
  EXPECT_EQ(memory_figures(), before);
}

TEST_F(FreeDuringCopies, Free) { take_away_on_threads<MallocedVictim>(1, Address::kOwn); }
TEST_F(FreeDuringCopies, FreeOnThreads) {
  take_away_on_threads<MallocedVictim>(3, Address::kShared);
}
TEST_F(FreeDuringCopies, Unmap) { take_away_on_threads<MappedVictim>(1, Address::kOwn); }
TEST_F(FreeDuringCopies, UnmapOnThreads) { take_away_on_threads<MappedVictim>(3, Address::kOwn); }
TEST_F(FreeDuringCopies, FreeHost) { take_away_on_threads<HostVictim>(1, Address::kOwn); }
TEST_F(FreeDuringCopies, FreeHostOnThreads) {
  take_away_on_threads<HostVictim>(3, Address::kShared);
}
TEST_F(FreeDuringCopies, Unregister) { take_away_on_threads<RegisteredVictim>(1, Address::kOwn); }
TEST_F(FreeDuringCopies, UnregisterOnThreads) {
  take_away_on_threads<RegisteredVictim>(3, Address::kOwn);
}

// ---- Submitted while it is freed ----

// Copies to and from an address where memory comes and goes. Only device memory: a copy that names
// host memory which is gone is a copy of the program's own memory.
aclError copy_both_ways(void* victim, const SteadyMemory& steady, aclrtStream stream) {
  const aclError to =
      aclrtMemcpyAsync(victim, kPiece, steady.source(), kPiece, ACL_MEMCPY_DEFAULT, stream);
  const aclError from =
      aclrtMemcpyAsync(steady.target(0), kPiece, victim, kPiece, ACL_MEMCPY_DEFAULT, stream);
  return to != ACL_SUCCESS ? to : from;
}

// The calls answer 107000 where the memory is not there, after they drained the stream (ACOPY-07);
// the streams, and calls that drain them, 507013 where it was.
template <typename Kind>
void submit_while_memory_comes_and_goes() {
  const Bystander bystander;
  Kind victim;
  std::atomic<void*> address = victim.take();
  std::atomic<bool> ended{false};
  std::atomic<int> submitted{0};
  run_on_threads(3, [&](int me) {
    if (me == 0) {
      for (int round = 0; round < 4 * kRounds; ++round) {
        const int seen = submitted;
        EXPECT_TRUE(comes_true([&] { return submitted > seen; }));
        victim.give_back();
        address = victim.take();
      }
      ended = true;
      return;
    }
    const TestStream stream;
    const SteadyMemory steady;
    for (; !ended; ++submitted) {
      const aclError code = copy_both_ways(address, steady, stream.get());
      EXPECT_TRUE(code == ACL_SUCCESS || code == ACL_ERROR_RT_PARAM_INVALID ||
                  code == ACL_ERROR_RT_SYS_DMA)
          << code;
      expect_done_or_failed(stream.get());
    }
  });
  victim.give_back();
  bystander.expect_bytes_unchanged();
}

TEST_F(FreeDuringCopies, SubmitWhileMemoryIsFreed) {
  submit_while_memory_comes_and_goes<MallocedVictim>();
}
TEST_F(FreeDuringCopies, SubmitWhileMemoryIsUnmapped) {
  submit_while_memory_comes_and_goes<MappedVictim>();
}

// ---- Dropped before it is freed ----

// After an abort no copy is under way: memory may be freed and used again at the same address.
template <typename Kind>
void abort_and_use_again() {
  const StreamFleet streams(2);
  SteadyMemory steady;
  Kind victim;
  for (int round = 0; round < kRounds && !testing::Test::HasFailure(); ++round) {
    void* const memory = victim.take();
    queue_copies(memory, steady, streams[0], streams[1]);
    EXPECT_SUCCESS(aclrtStreamAbort(streams[0]));
    EXPECT_SUCCESS(aclrtStreamAbort(streams[1]));
    victim.give_back();
    victim.take_heir();
    victim.expect_heir_unchanged();
    void* const again = victim.take();
    EXPECT_SUCCESS(aclrtMemset(again, kVictimSize, kHeirByte, kVictimSize));
    for (size_t i = 0; i < streams.size(); ++i) {
      EXPECT_SUCCESS(synchronize_within_limit(streams[i]));
    }
    std::vector<uint8_t> bytes(kVictimSize);
    EXPECT_SUCCESS(aclrtMemcpy(bytes.data(), kVictimSize, again, kVictimSize, ACL_MEMCPY_DEFAULT));
    EXPECT_TRUE(is_all(bytes.data(), kVictimSize, kHeirByte));
    victim.give_back();
    victim.take_heir();
    victim.expect_heir_unchanged();
  }
}

TEST_F(FreeDuringCopies, AbortThenFree) { abort_and_use_again<MallocedVictim>(); }
TEST_F(FreeDuringCopies, AbortThenUnmap) { abort_and_use_again<MappedVictim>(); }
TEST_F(FreeDuringCopies, AbortThenFreeHost) { abort_and_use_again<HostVictim>(); }
TEST_F(FreeDuringCopies, AbortThenUnregister) { abort_and_use_again<RegisteredVictim>(); }

}  // namespace
}  // namespace understudy_test
