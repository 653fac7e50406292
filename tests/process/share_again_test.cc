// SPDX-License-Identifier: Apache-2.0
//
// What is used a second time: a key closed and given out anew with another size, an event recorded
// over and over, memory that came back from other processes. And an import shows its process no
// more than what was shared.
// Covers: IPC-14, IPC-20, IPC-22, SHARE-38, XPROC-02.
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "process/sharing_objects.h"
#include "rules/stream_objects.h"
#include "rules/xproc_objects.h"

namespace understudy_test::share {
namespace {

constexpr size_t kGranules = 4;
constexpr size_t kLarge = kGranules * kGranule;

uint8_t seed_of(size_t granule) { return static_cast<uint8_t>(1 + granule); }

void mark_granules(void* start) {
  for (size_t i = 0; i < kGranules; ++i) mark(at(start, i * kGranule), kGranule, seed_of(i));
}
bool are_granules_marked(void* start) {
  for (size_t i = 0; i < kGranules; ++i) {
    if (!is_marked(at(start, i * kGranule), kGranule, seed_of(i))) return false;
  }
  return true;
}

void* allocate(size_t size) {
  void* start = nullptr;
  EXPECT_SUCCESS(aclrtMalloc(&start, size, ACL_MEM_MALLOC_HUGE_ONLY));
  return start;
}
void free_allocation(void* start) { EXPECT_SUCCESS(aclrtFree(start)); }

ipc::Key export_everywhere(void* start, size_t size) { return ipc::export_key(start, size); }

// ---- A key that is closed and given out anew ----

using ShareAgain = VirtualMemoryTest;

TEST_F(ShareAgain, IPC_14_IPC_20_AnAllocationIsExportedAgainWithALargerSize) {
  Remote importer;
  void* const start = allocate(kLarge);
  mark_granules(start);
  const ipc::Key small = ipc::export_key(start, kGranule);
  (void)importer.call(import_key, small);
  EXPECT_SUCCESS(aclrtIpcMemClose(small.get()));
  const ipc::Key large = ipc::export_key(start, kLarge);
  void* const imported = importer.call(import_key, large);

  void* const own = importer.call(allocate, kGranule);
  EXPECT_FALSE(number(own) + kGranule > number(imported) && number(own) < number(imported) + kLarge)
      << "an allocation of the importer lies in what it imported";
  importer.call(mark, own, kGranule, uint8_t{99});
  EXPECT_TRUE(importer.call(are_granules_marked, imported));
  const size_t last = kLarge - kGranule;
  importer.call(mark, at(imported, last), kGranule, uint8_t{50});
  EXPECT_TRUE(is_marked(at(start, last), kGranule, 50));
  EXPECT_TRUE(importer.call(is_marked, own, kGranule, uint8_t{99}));

  importer.call(free_allocation, own);
  importer.call(close_key, large);
  importer.call(close_key, small);
  EXPECT_SUCCESS(aclrtIpcMemClose(large.get()));
  free_allocation(start);
}

TEST_F(ShareAgain, IPC_22_AnImporterKeepsAllOfItWhenASmallerExportDiesWithItsProcess) {
  Remote exporter;
  Remote holder;
  void* const start = exporter.call(allocate, kLarge);
  exporter.call(mark_granules, start);
  // Nobody keeps this one: when it is gone, the holder has cleared away what the dead one left.
  const Offer other = exporter.call(offer_block, 16 * kMiB, kEveryone, uint8_t{70});
  exporter.call(write_between_marks, other.view.start, 16 * kMiB);
  const ipc::Key large = exporter.call(export_everywhere, start, kLarge);
  void* const imported = holder.call(import_key, large);
  exporter.call(close_key, large);
  (void)exporter.call(export_everywhere, start, kGranule);
  EXPECT_TRUE(holder.call(are_granules_marked, imported));

  const size_t before = holder.call(bytes_in_memory_files);
  exporter.kill();
  EXPECT_TRUE(comes_true([&] { return holder.call(bytes_in_memory_files) < before; }));
  EXPECT_TRUE(holder.call(are_granules_marked, imported));
  holder.call(close_key, large);
}

// ---- An event that is recorded over and over ----

US_PEER(ShareAgainEventSide) { xproc::serve_event(channel); }

TEST_F(ShareAgain, XPROC_02_ManyLaterRecordsDoNotEndAWaitForAnEarlierOne) {
  xproc::EventSide waiter(ShareAgainEventSide);
  const TestEvent event(EventFamily::kEx, ACL_EVENT_IPC);
  aclrtIpcEventHandle handle{};
  ASSERT_SUCCESS(aclrtIpcGetEventHandle(event.get(), &handle));
  ASSERT_EQ(waiter.open(handle), ACL_SUCCESS);
  const TestStream slow;
  const TestStream fast;
  std::optional<Gate> gate(slow.get());
  ASSERT_SUCCESS(aclrtRecordEvent(event.get(), slow.get()));
  waiter.wait();
  // More than the library remembers: it may refuse one, but must not forget the first.
  int recorded = 0;
  for (int i = 0; i < 200; ++i) {
    const aclError code = aclrtRecordEvent(event.get(), fast.get());
    if (code == ACL_SUCCESS) {
      ++recorded;
      continue;
    }
    EXPECT_EQ(code, ACL_ERROR_RT_NO_EVENT_RESOURCE) << recent_error();
  }
  EXPECT_GE(recorded, 31);
  EXPECT_SUCCESS(aclrtSynchronizeStream(fast.get()));
  EXPECT_TRUE(waiter.is_held()) << "the stream of the first record has not reached it";
  gate.reset();
  EXPECT_EQ(waiter.drain(), ACL_SUCCESS);
  EXPECT_SUCCESS(aclrtSynchronizeStream(slow.get()));
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), fast.get())) << "there is room again";
  EXPECT_SUCCESS(aclrtSynchronizeStream(fast.get()));
}

// ---- Memory that came back from others ----

constexpr size_t kBlockSize = 16 * kMiB;
using Handles = std::array<aclrtDrvMemHandle, 4>;

struct Written {
  Handles handles;
  std::array<uint64_t, std::tuple_size_v<Handles>> tokens;
};

// Blocks full of bytes, so that the host has memory for all of each.
Written write_blocks(const Reservation& place) {
  Written written{};
  for (size_t i = 0; i < written.handles.size(); ++i) {
    written.handles[i] = create_block(kBlockSize);
    EXPECT_SUCCESS(aclrtMapMem(place.start(), kBlockSize, 0, written.handles[i], 0));
    EXPECT_SUCCESS(aclrtMemset(place.start(), kBlockSize, 7, kBlockSize));
    EXPECT_SUCCESS(aclrtUnmapMem(place.start()));
    written.tokens[i] = token_of(written.handles[i]);
  }
  return written;
}

TEST_F(ShareAgain, SHARE_38_MemoryThatImportersGaveBackIsUsedAgain) {
  Remote importer;
  const Reservation place(kBlockSize);
  size_t first = 0;
  for (int round = 0; round < 3; ++round) {
    const Written written = write_blocks(place);
    Handles imported{};
    for (size_t i = 0; i < imported.size(); ++i) {
      const Imported answer = importer.call(import_with, Version::kV1, written.tokens[i], 0);
      EXPECT_EQ(answer.code, ACL_SUCCESS);
      imported[i] = answer.handle;
    }
    // The importer has it last.
    for (const aclrtDrvMemHandle handle : written.handles) {
      EXPECT_SUCCESS(aclrtFreePhysical(handle));
    }
    for (const aclrtDrvMemHandle handle : imported) {
      EXPECT_EQ(importer.call(free_handle, handle), ACL_SUCCESS);
    }
    const size_t bytes = bytes_in_memory_files();
    if (round == 0) first = bytes;
    EXPECT_LE(bytes, first + kGranule) << "round " << round;
  }
}

// ---- What an import shows ----

TEST(ShareWindow, IPC_14_AnImportShowsNoNeighbourOfASmallAllocation) {
  US_FRESH_PROCESS({"UNDERSTUDY_HOST_ACCESS", "allow"});  // the CPU sees all that is mapped
  constexpr size_t kSize = 4 * kKiB;
  const DeviceScope device;
  Remote importer;
  std::vector<void*> neighbours(16);
  for (void*& start : neighbours) {
    ASSERT_SUCCESS(aclrtMalloc(&start, kSize, ACL_MEM_MALLOC_NORMAL_ONLY));
    copy_in(start, pattern(kSize, 60));
  }
  void* const shared = neighbours[neighbours.size() / 2];
  const ipc::Key key = ipc::export_key(shared, kSize);
  void* const imported = importer.call(import_key, key);
  EXPECT_TRUE(importer.call(cpu_can_read, imported));
  EXPECT_TRUE(importer.call(cpu_can_write, imported));
  for (void* const start : neighbours) {
    if (start == shared) continue;
    void* const seen = address(number(imported) + (number(start) - number(shared)));
    EXPECT_FALSE(importer.call(cpu_can_read, seen)) << seen << " next to " << imported;
    EXPECT_FALSE(importer.call(cpu_can_write, seen)) << seen << " next to " << imported;
    EXPECT_FALSE(importer.call(ipc::is_in_reach, seen, size_t{1})) << seen;
  }
  importer.call(close_key, key);
  EXPECT_SUCCESS(aclrtIpcMemClose(key.get()));
  for (void* const start : neighbours) {
    EXPECT_TRUE(copy_out(start, kSize) == pattern(kSize, 60));
    EXPECT_SUCCESS(aclrtFree(start));
  }
}

}  // namespace
}  // namespace understudy_test::share
