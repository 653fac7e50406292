// SPDX-License-Identifier: Apache-2.0
//
// Sharing at the size of large models: tens of thousands of shared blocks under an ordinary limit
// of open files and with little memory for each, and what dead exporters leave behind.
// Covers: IPC-22, SHARE-06, SHARE-35, SHARE-38, SHARE-39.
#include <malloc.h>

#include <array>
#include <deque>
#include <iostream>
#include <vector>

#include "process/sharing_objects.h"
#include "stress/process_status.h"
#include "support/sanitizers.h"

namespace understudy_test::share {
namespace {

// ---- Many blocks ----

constexpr size_t kBlocks = 32'768;
constexpr size_t kWrittenEvery = 1024;  // the others cost no host memory
constexpr size_t kImportedEvery = 8;
constexpr size_t kImported = kBlocks / kImportedEvery;
constexpr size_t kBytesPerBlock = 300;
constexpr size_t kMostDescriptors = 1024;

size_t heap_bytes() {
  const struct mallinfo2 heap = mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

uint8_t seed_of_block(size_t number) { return static_cast<uint8_t>(1 + number / kWrittenEvery); }

using Tokens = std::array<uint64_t, 1024>;

// Maps what it imports side by side, looks, and keeps it until it is told to end.
US_PEER(ImportsThousandsOfBlocks) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  channel.send(own_id());
  std::vector<uint64_t> tokens;
  while (tokens.size() < kImported) {
    const auto some = channel.receive<Tokens>();
    tokens.insert(tokens.end(), some.begin(), some.end());
  }
  std::vector<aclrtDrvMemHandle> handles(kImported);
  const Reservation place(kImported * kGranule);
  for (size_t i = 0; i < kImported; ++i) {
    ASSERT_SUCCESS(aclrtMemImportFromShareableHandle(tokens[i], 0, &handles[i])) << i;
    ASSERT_SUCCESS(aclrtMapMem(place.at(i * kGranule), kGranule, 0, handles[i], 0)) << i;
  }
  for (size_t i = 0; i < kImported; i += kWrittenEvery / kImportedEvery) {
    EXPECT_TRUE(is_marked(place.at(i * kGranule), kGranule, seed_of_block(i * kImportedEvery)))
        << i;
    mark(place.at(i * kGranule), kGranule, static_cast<uint8_t>(200 - i / kWrittenEvery));
  }
  channel.send(true);
  channel.wait_for_end();
  for (size_t i = 0; i < kImported; ++i) {
    EXPECT_SUCCESS(aclrtUnmapMem(place.at(i * kGranule)));
    EXPECT_SUCCESS(aclrtFreePhysical(handles[i]));
  }
}

TEST(ShareLimits, SHARE_06_SHARE_35_AllBlocksOfALargeModelAreShared) {
  US_FRESH_PROCESS({"UNDERSTUDY_MEMORY", "80G"}, {"UNDERSTUDY_DEVICES", "1"});
  limit_process(RLIMIT_NOFILE, kMostDescriptors);  // the peer inherits it
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const size_t free_before = huge_bytes_free();
  Peer importer(ImportsThousandsOfBlocks);
  auto importer_id = importer.receive<int32_t>();

  std::vector<aclrtDrvMemHandle> handles(kBlocks);
  std::vector<uint64_t> tokens(kBlocks);
  const Reservation place(kBlocks * kGranule);
  const aclrtPhysicalMemProp property = block_property();
  const size_t heap_before = heap_bytes();
  for (size_t i = 0; i < kBlocks; ++i) {
    ASSERT_SUCCESS(aclrtMallocPhysical(&handles[i], kGranule, &property, 0)) << i;
    ASSERT_SUCCESS(aclrtMapMem(place.at(i * kGranule), kGranule, 0, handles[i], 0)) << i;
    // Every other of those that are imported has a whitelist.
    const uint64_t flags = kAccessRules[i / kImportedEvery % 2];
    ASSERT_SUCCESS(
        aclrtMemExportToShareableHandle(handles[i], ACL_MEM_HANDLE_TYPE_NONE, flags, &tokens[i]))
        << i;
    if (i % kImportedEvery == 0 && flags == kListed) {
      ASSERT_SUCCESS(aclrtMemSetPidToShareableHandle(tokens[i], &importer_id, 1));
    }
  }
  const size_t growth = (heap_bytes() - heap_before) / kBlocks;
  std::cout << growth << " bytes of heap per exported and mapped block\n";
  if (!kSanitized) {
    EXPECT_LT(growth, kBytesPerBlock);
  }
  EXPECT_EQ(huge_bytes_free(), free_before - kBlocks * kGranule);
  for (size_t i = 0; i < kBlocks; i += kWrittenEvery) {
    mark(place.at(i * kGranule), kGranule, seed_of_block(i));
  }

  for (size_t sent = 0; sent < kImported;) {
    Tokens some{};
    for (uint64_t& token : some) token = tokens[kImportedEvery * sent++];
    importer.send(some);
  }
  EXPECT_TRUE(importer.receive<bool>());
  for (size_t i = 0; i < kImported; i += kWrittenEvery / kImportedEvery) {
    EXPECT_TRUE(is_marked(place.at(i * kImportedEvery * kGranule), kGranule,
                          static_cast<uint8_t>(200 - i / kWrittenEvery)))
        << "what the other process wrote";
  }
  EXPECT_EQ(huge_bytes_free(), free_before - kBlocks * kGranule) << "charged once";

  for (size_t i = 0; i < kBlocks; ++i) {
    EXPECT_SUCCESS(aclrtUnmapMem(place.at(i * kGranule)));
    EXPECT_SUCCESS(aclrtFreePhysical(handles[i]));
  }
  EXPECT_EQ(huge_bytes_free(), free_before - kImported * kGranule) << "what the other holds";
  importer.finish();
  EXPECT_EQ(huge_bytes_free(), free_before);
}

// ---- What the dead leave behind ----

constexpr size_t kWritten = 64;
constexpr size_t kSlack = 8 * kMiB;  // for what the library has of its own

class ShareLeftovers : public VirtualMemoryTest {
 protected:
  static std::vector<Offer> write_much(Remote& exporter) {
    std::vector<Offer> offers;
    for (size_t i = 0; i < kWritten; ++i) {
      const auto seed = static_cast<uint8_t>(i + 1);
      offers.push_back(exporter.call(offer_block, kGranule, kEveryone, seed));
      exporter.call(write_between_marks, offers.back().view.start, kGranule);
    }
    return offers;
  }
  static bool shrinks_to(Remote& holder, size_t bytes) {
    return comes_true([&] { return holder.call(bytes_in_memory_files) <= bytes + kSlack; });
  }
};

TEST_F(ShareLeftovers, SHARE_38_SHARE_39_MemoryThatNobodyHoldsGoesBackToTheSystem) {
  Remote exporter;
  Remote holder;
  const std::vector<Offer> offers = write_much(exporter);
  const View first = holder.call(import_view, offers[20].token, kGranule, 0);
  const View second = holder.call(import_view, offers[40].token, kGranule, 0);
  EXPECT_GE(holder.call(bytes_in_memory_files), kWritten * kGranule) << "it sees all of it";
  exporter.kill();
  EXPECT_TRUE(shrinks_to(holder, 2 * kGranule))
      << holder.call(bytes_in_memory_files) << " bytes are left";
  EXPECT_TRUE(holder.call(is_marked, first.start, kGranule, uint8_t{21}));
  EXPECT_TRUE(holder.call(is_marked, second.start, kGranule, uint8_t{41}));
  const size_t before = holder.call(bytes_in_memory_files);
  holder.call(close_view, second);
  EXPECT_LE(holder.call(bytes_in_memory_files), before - kGranule / 2);
  EXPECT_TRUE(holder.call(is_marked, first.start, kGranule, uint8_t{21}));
  holder.call(close_view, first);
  EXPECT_LE(holder.call(bytes_in_memory_files), kSlack);
}

TEST_F(ShareLeftovers, SHARE_39_TwoHoldersOfOneDeadExporterKeepWhatIsTheirs) {
  Remote exporter;
  std::deque<Remote> holders(2);
  const std::vector<Offer> offers = write_much(exporter);
  std::array<View, 2> views{};
  for (size_t i = 0; i < 2; ++i) {
    views[i] = holders[i].call(import_view, offers[10 + i].token, kGranule, 0);
  }
  exporter.kill();
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(shrinks_to(holders[i], 2 * kGranule));
    EXPECT_TRUE(holders[i].call(is_marked, views[i].start, kGranule, static_cast<uint8_t>(11 + i)));
  }
  holders[0].kill();
  EXPECT_TRUE(shrinks_to(holders[1], kGranule));
  EXPECT_TRUE(holders[1].call(is_marked, views[1].start, kGranule, uint8_t{12}));
  holders[1].call(close_view, views[1]);
}

TEST_F(ShareLeftovers, IPC_22_AHeldSmallAllocationKeepsLittleElse) {
  constexpr size_t kSmall = 4 * kKiB;
  Remote exporter;
  Remote holder;
  (void)write_much(exporter);
  const KeyOffer large = exporter.call(offer_key, 16 * kMiB, uint8_t{8});
  const KeyOffer small = exporter.call(offer_key, kSmall, uint8_t{9});
  void* const start = holder.call(import_key, small.key);
  (void)holder.call(import_key, large.key);
  exporter.kill();
  EXPECT_TRUE(shrinks_to(holder, kGranule + 18 * kMiB));
  holder.call(close_key, large.key);
  EXPECT_TRUE(shrinks_to(holder, kGranule)) << holder.call(bytes_in_memory_files);
  EXPECT_TRUE(holder.call(is_marked, start, kSmall, uint8_t{9}));
  holder.call(close_key, small.key);
}

}  // namespace
}  // namespace understudy_test::share
