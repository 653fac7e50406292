// SPDX-License-Identifier: Apache-2.0
//
// How long a shared block lives, whom it is charged to, and what the end of a process does to it.
// Covers: SHARE-38, SHARE-39, SHARE-40, SHARE-41, SHARE-42, VGEN-10.
#include <algorithm>
#include <csignal>
#include <initializer_list>
#include <ostream>
#include <string>
#include <vector>

#include "rules/share_objects.h"

namespace understudy_test::share {
namespace {

constexpr size_t kSize = 10 * kGranule;

// The free bytes of the block's device, which all processes must see alike.
class ShareLifetime : public VirtualMemoryTest {
 protected:
  void SetUp() override {
    VirtualMemoryTest::SetUp();
    before_ = huge_bytes_free();
  }

  void expect_held(std::initializer_list<Remote*> others, size_t blocks = 1) const {
    expect_free(before_ - blocks * kSize, others);
  }
  void expect_returned(std::initializer_list<Remote*> others = {}) const {
    expect_free(before_, others);
    // What is reported as free can be had.
    const Block everything(before_ / kGranule * kGranule);
  }

 private:
  static void expect_free(size_t bytes, std::initializer_list<Remote*> others) {
    EXPECT_EQ(huge_bytes_free(), bytes);
    for (Remote* other : others) EXPECT_EQ(other->call(huge_bytes_free), bytes);
  }

  size_t before_ = 0;
};

// What a process holds of a block, taken apart piece by piece. The block must outlive all but the
// last piece, whichever that is.
enum class Piece : uint8_t { kOwnHandle, kOwnMapping, kTheirHandle, kTheirMapping };

TEST_F(ShareLifetime, SHARE_38_SHARE_41_EveryPieceHoldsTheBlock) {
  Remote importer;
  Remote witness;
  std::vector<Piece> order = {Piece::kOwnHandle, Piece::kOwnMapping, Piece::kTheirHandle,
                              Piece::kTheirMapping};
  do {
    std::string trace;
    const Offer offer = offer_block(kSize, kEveryone, 38);
    const View view = importer.call(import_view, offer.token, kSize, 0);
    for (const Piece piece : order) {
      SCOPED_TRACE(trace += std::to_string(static_cast<int>(piece)));
      expect_held({&importer, &witness});
      switch (piece) {
        case Piece::kOwnHandle:
          EXPECT_SUCCESS(aclrtFreePhysical(offer.view.handle));
          break;
        case Piece::kOwnMapping:
          EXPECT_TRUE(is_marked(offer.view.start, kSize, 38));
          EXPECT_SUCCESS(aclrtUnmapMem(offer.view.start));
          break;
        case Piece::kTheirHandle:
          EXPECT_EQ(importer.call(free_handle, view.handle), ACL_SUCCESS);
          break;
        case Piece::kTheirMapping:
          EXPECT_TRUE(importer.call(is_marked, view.start, kSize, uint8_t{38}));
          EXPECT_EQ(importer.call(unmap, view.start), ACL_SUCCESS);
          break;
      }
    }
    expect_returned({&importer, &witness});
    EXPECT_SUCCESS(aclrtReleaseMemAddress(offer.view.start));
    EXPECT_EQ(importer.call(release, view.start), ACL_SUCCESS);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(ShareLifetime, SHARE_38_SHARE_41_EveryImporterHoldsTheBlock) {
  Remote first;
  Remote second;
  const Offer offer = offer_block(kSize, kEveryone, 1);
  RemoteView of_first(first, offer.token, kSize);
  RemoteView of_second(second, offer.token, kSize);
  close_view(offer.view);
  expect_held({&first, &second});
  of_first.close();
  expect_held({&first, &second});
  EXPECT_TRUE(of_second.shows(1));
  of_second.close();
  expect_returned({&first, &second});
}

TEST_F(ShareLifetime, SHARE_38_AnExportWithoutImporterHoldsNothing) {
  for (const uint64_t flags : kAccessRules) {
    Block block(kSize);
    (void)token_of(block.handle(), flags);
    expect_held({});
    block.free();
    expect_returned();
  }
}

TEST_F(ShareLifetime, SHARE_38_ReturnedMemoryIsNotTheNextOwnersSecret) {
  // What an importer let go of must be out of its reach: the next block there is another one.
  Remote importer;
  const Offer offer = offer_block(kSize, kEveryone, 5);
  const View view = importer.call(import_view, offer.token, kSize, 0);
  close_view(offer.view);
  const MappedBlock next(kSize);
  mark(next.start(), kSize, 6);
  EXPECT_TRUE(importer.call(is_marked, view.start, kSize, uint8_t{5}));
  importer.call(mark, view.start, kSize, uint8_t{7});
  EXPECT_TRUE(is_marked(next.start(), kSize, 6)) << "memory that is held was given out again";
  importer.call(close_view, view);
  EXPECT_TRUE(is_marked(next.start(), kSize, 6)) << "memory of another block was given back";
}

TEST_F(ShareLifetime, SHARE_39_ImportersGoOnAfterTheExporterFreed) {
  Remote first;
  Remote second;
  Remote late;
  const Offer offer = offer_block(kSize, kEveryone, 2);
  RemoteView of_first(first, offer.token, kSize);
  // This one maps only later.
  const Imported of_second = second.call(import_with, Version::kV1, offer.token, 0);
  ASSERT_EQ(of_second.code, ACL_SUCCESS);
  close_view(offer.view);

  EXPECT_EQ(late.import(offer.token), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_TRUE(of_first.shows(2));
  of_first.write(3);
  void* const start = second.call(map_anew, of_second.handle, kSize);
  EXPECT_TRUE(second.call(is_marked, start, kSize, uint8_t{3}));
  second.call(mark, start, kSize, uint8_t{4});
  EXPECT_TRUE(of_first.shows(4));
  second.call(close_view, View{of_second.handle, start, kSize});
  of_first.close();
  expect_returned({&first, &second, &late});
}

// ---- Ends of processes ----

struct Ending {
  const char* name;
  int signal;  // 0: the process ends by itself
};
void PrintTo(const Ending& ending, std::ostream* out) { *out << ending.name; }

class ShareLifetimeEnds : public ShareLifetime, public testing::WithParamInterface<Ending> {
 protected:
  static void end(Remote& process) {
    if (GetParam().signal == 0) {
      process.finish();
    } else {
      process.peer().kill(GetParam().signal);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Ways, ShareLifetimeEnds,
                         testing::Values(Ending{"exit", 0}, Ending{"SIGTERM", SIGTERM},
                                         Ending{"SIGKILL", SIGKILL}),
                         [](const auto& item) { return std::string(item.param.name); });

TEST_P(ShareLifetimeEnds, SHARE_39_VGEN_10_ImportersGoOnAfterTheExportersEnd) {
  Remote exporter;
  Remote importer;
  Remote late;
  const Offer offer = exporter.call(offer_block, kSize, kEveryone, uint8_t{7});
  const Offer unshared = exporter.call(offer_block, kSize, kEveryone, uint8_t{8});
  const View here = import_view(offer.token, kSize, 0);
  RemoteView there(importer, offer.token, kSize);
  expect_held({&importer, &late}, 2);

  end(exporter);
  expect_held({&importer, &late}, 1);
  EXPECT_EQ(late.import(offer.token), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(late.import(unshared.token), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_TRUE(is_marked(here.start, kSize, 7));
  EXPECT_TRUE(there.shows(7));
  there.write(9);
  EXPECT_TRUE(is_marked(here.start, kSize, 9));
  // A second mapping and a new block do not disturb what a dead process left behind.
  void* const again = map_anew(here.handle, kSize);
  const MappedBlock fresh(kSize);
  mark(fresh.start(), kSize, 10);
  EXPECT_TRUE(is_marked(again, kSize, 9));
  EXPECT_SUCCESS(aclrtUnmapMem(again));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(again));

  close_view(here);
  expect_held({&importer, &late}, 2);
  EXPECT_TRUE(there.shows(9));
  there.close();
  expect_held({&importer, &late}, 1);
  EXPECT_TRUE(is_marked(fresh.start(), kSize, 10));
}

TEST_P(ShareLifetimeEnds, SHARE_40_VGEN_10_ImportersEndIsNoticedByNobody) {
  Remote dying;
  Remote other;
  const Offer offer = offer_block(kSize, kListed, 1);
  list(offer.token, {dying.id(), other.id()});
  RemoteView of_dying(dying, offer.token, kSize);
  RemoteView of_other(other, offer.token, kSize);
  of_dying.write(2);
  (void)of_dying.give_up();
  end(dying);

  expect_held({&other});
  EXPECT_TRUE(is_marked(offer.view.start, kSize, 2));
  EXPECT_TRUE(of_other.shows(2));
  of_other.write(3);
  EXPECT_TRUE(is_marked(offer.view.start, kSize, 3));
  Remote next;
  list(offer.token, {next.id()});
  EXPECT_EQ(next.import(offer.token), ACL_SUCCESS);

  of_other.close();
  expect_held({&other, &next});
  close_view(offer.view);
  expect_returned({&other, &next});
}

TEST_P(ShareLifetimeEnds, SHARE_38_SHARE_40_VGEN_10_TheLastHoldersEndReturnsTheBlock) {
  Remote exporter;
  Remote importer;
  const Offer offer = exporter.call(offer_block, kSize, kEveryone, uint8_t{1});
  (void)importer.call(import_view, offer.token, kSize, 0);
  end(exporter);
  expect_held({&importer});
  end(importer);
  expect_returned();
}

TEST_F(ShareLifetime, SHARE_42_ABlockIsChargedOnce) {
  Remote same_device(0);
  Remote other_device(1);
  const size_t free_there = other_device.call(huge_bytes_free);
  const Offer offer = offer_block(kSize, kEveryone, 4);
  expect_held({&same_device});
  {
    RemoteView first(same_device, offer.token, kSize);
    RemoteView second(other_device, offer.token, kSize, 1);
    void* const twice = same_device.call(map_anew, first.handle(), kSize);
    expect_held({&same_device});
    EXPECT_EQ(other_device.call(huge_bytes_free), free_there);
    EXPECT_EQ(same_device.call(unmap, twice), ACL_SUCCESS);
    EXPECT_EQ(same_device.call(release, twice), ACL_SUCCESS);
  }
  // Only the importers are gone: what was charged once is given back once.
  expect_held({&same_device});
  EXPECT_EQ(other_device.call(huge_bytes_free), free_there);
  close_view(offer.view);
  expect_returned({&same_device});
  EXPECT_EQ(other_device.call(huge_bytes_free), free_there);
}

}  // namespace
}  // namespace understudy_test::share
