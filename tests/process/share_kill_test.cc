// SPDX-License-Identifier: Apache-2.0
//
// Processes that share memory and are killed or stopped, at any instant: the others keep their
// bytes, all memory comes back, and nobody waits for a silent process without end.
// Covers: SHARE-28, SHARE-31, SHARE-32, SHARE-34, SHARE-38, SHARE-39, SHARE-40, SHARE-42.
#include <array>
#include <csignal>
#include <deque>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "process/stopped_process.h"
#include "rules/share_objects.h"

namespace understudy_test::share {
namespace {

constexpr size_t kSize = 2 * kGranule;
constexpr int kRounds = 32;

using ShareKill = VirtualMemoryTest;  // compares the memory figures at the end of every test

// What a healthy process does until the next kill comes: it looks at the figures, which never show
// more memory than there was.
void look_at_figures(std::mt19937& random, size_t most) {
  for (auto looks = random() % 500; looks > 0; --looks) ASSERT_LE(huge_bytes_free(), most);
}

// ---- Who goes first ----

TEST_F(ShareKill, SHARE_39_SHARE_40_WhoIsLeftKeepsTheBytes) {
  const size_t before = huge_bytes_free();
  for (const bool exporter_first : {true, false}) {
    SCOPED_TRACE(exporter_first ? "the exporter is killed first" : "the importer is killed first");
    Remote exporter;
    Remote importer;
    const Offer offer = exporter.call(offer_block, kSize, kEveryone, uint8_t{1});
    const View view = importer.call(import_view, offer.token, kSize, 0);
    importer.call(mark, view.start, kSize, uint8_t{2});
    Remote& left = exporter_first ? importer : exporter;
    void* const bytes_left = exporter_first ? view.start : offer.view.start;
    (exporter_first ? exporter : importer).kill();
    EXPECT_TRUE(left.call(is_marked, bytes_left, kSize, uint8_t{2}));
    Remote next;
    EXPECT_EQ(next.import(offer.token), exporter_first ? ACL_ERROR_RT_INVALID_HANDLE : ACL_SUCCESS);
    EXPECT_EQ(huge_bytes_free(), before - kSize);
    left.kill();
    EXPECT_EQ(huge_bytes_free(), before);
  }
}

TEST_F(ShareKill, SHARE_38_BothAreKilledAtOnce) {
  const size_t before = huge_bytes_free();
  for (int round = 0; round < 8; ++round) {
    Remote exporter;
    Remote importer;
    const Offer offer = exporter.call(offer_block, kSize, kEveryone, uint8_t{1});
    (void)importer.call(import_view, offer.token, kSize, 0);
    exporter.peer().signal(SIGKILL);
    importer.peer().signal(SIGKILL);
    importer.kill();
    exporter.kill();
    EXPECT_EQ(huge_bytes_free(), before);
  }
}

// ---- In the middle of a call ----

enum class Work : uint8_t { kExport, kImport, kMap, kCopy, kEverything };

struct Assignment {
  Work work;
  std::array<uint64_t, 2> tokens;
};

// Always the same bytes: a copy that is cut short leaves them as they are.
constexpr uint8_t kBytes = 77;

// Bare calls, so that a kill is likely to hit one of them.
void export_once() {
  const Block block(kSize);
  uint64_t token = 0;
  int32_t self = own_id();
  EXPECT_SUCCESS(
      aclrtMemExportToShareableHandle(block.handle(), ACL_MEM_HANDLE_TYPE_NONE, kListed, &token));
  EXPECT_SUCCESS(aclrtMemSetPidToShareableHandle(token, &self, 1));
}
void import_once(uint64_t token) {
  aclrtDrvMemHandle handle = nullptr;
  EXPECT_SUCCESS(aclrtMemImportFromShareableHandle(token, 0, &handle));
  EXPECT_SUCCESS(aclrtFreePhysical(handle));
}

// Imports one block for good, and does one kind of work until it is killed.
US_PEER(WorksOnSharedBlocksUntilKilled) {
  const auto [work, tokens] = channel.receive<Assignment>();
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const View held = import_view(tokens[0], kSize, 0);
  const std::vector<uint8_t> bytes = pattern(kSize, kBytes);
  const bool all = work == Work::kEverything;
  for (bool first = true;; first = false) {
    if (all || work == Work::kExport) export_once();
    if (all || work == Work::kImport) import_once(tokens[1]);
    if (all || work == Work::kMap) {
      void* const start = map_anew(held.handle, kSize);
      EXPECT_SUCCESS(aclrtUnmapMem(start));
      EXPECT_SUCCESS(aclrtReleaseMemAddress(start));
    }
    if (all || work == Work::kCopy) copy_in(held.start, bytes);
    // Whoever is killed reports nothing, so that all works is reported before.
    if (first) channel.send(!testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed());
  }
}

std::string name_of_work(const testing::TestParamInfo<Work>& info) {
  constexpr std::array kNames = {"Export", "Import", "Map", "Copy", "Everything"};
  return kNames[static_cast<size_t>(info.param)];
}

class ShareKillAtWork : public ShareKill, public testing::WithParamInterface<Work> {};
INSTANTIATE_TEST_SUITE_P(, ShareKillAtWork,
                         testing::Values(Work::kExport, Work::kImport, Work::kMap, Work::kCopy,
                                         Work::kEverything),
                         name_of_work);

TEST_P(ShareKillAtWork, SHARE_40_TheOthersNoticeNothing) {
  std::mt19937 random(40 + static_cast<unsigned>(GetParam()));
  const MappedBlock first(kSize);
  const MappedBlock second(kSize);
  const std::vector<uint8_t> bytes = pattern(kSize, kBytes);
  copy_in(first.start(), bytes);
  mark(second.start(), kSize, 2);
  const Assignment assignment{
      GetParam(),
      {token_of(first.block.handle(), kListed), token_of(second.block.handle(), kListed)}};
  const MemoryFigures before = memory_figures();
  const size_t most = huge_bytes_free();
  Remote healthy;
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    Peer victim(WorksOnSharedBlocksUntilKilled);
    for (const uint64_t token : assignment.tokens) list(token, {victim.pid(), healthy.id()});
    victim.send(assignment);
    ASSERT_TRUE(victim.receive<bool>());
    look_at_figures(random, most);
    victim.kill();
    ASSERT_TRUE(memory_figures() == before);
    ASSERT_TRUE(copy_out(first.start(), kSize) == bytes);
    RemoteView view(healthy, assignment.tokens[1], kSize);
    ASSERT_TRUE(view.shows(2));
  }
}

// ---- An exporter that dies while others import ----

// The code of the import that failed.
aclError import_until_refused(uint64_t token) {
  while (true) {
    aclrtDrvMemHandle handle = nullptr;
    const aclError code = aclrtMemImportFromShareableHandle(token, 0, &handle);
    if (code != ACL_SUCCESS) return code;
    void* const start = map_anew(handle, kSize);
    EXPECT_TRUE(is_marked(start, kSize, 1));
    close_view({handle, start, kSize});
  }
}

TEST_F(ShareKill, SHARE_28_SHARE_39_AnExporterThatDiesDuringImportsEndsTheOffer) {
  std::mt19937 random(28);
  const MemoryFigures before = memory_figures();
  const size_t most = huge_bytes_free();
  Remote importer;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t flags = kAccessRules[round % 2];
    SCOPED_TRACE(testing::Message() << "round " << round << ", flags " << flags);
    Remote exporter;
    const Offer offer = exporter.call(offer_block, kSize, flags, uint8_t{1});
    if (flags == kListed) exporter.call(list, offer.token, Ids{importer.id()});
    importer.start(import_until_refused, offer.token);
    look_at_figures(random, most);
    exporter.kill();
    ASSERT_EQ(importer.result<aclError>(), ACL_ERROR_RT_INVALID_HANDLE);
    ASSERT_TRUE(memory_figures() == before);
  }
}

// ---- Stopped processes ----

TEST_F(ShareKill, SHARE_31_AStoppedExporterFailsImportsInTime) {
  Remote exporter;
  Remote other_exporter;
  const Offer offer = exporter.call(offer_block, kSize, kListed, uint8_t{1});
  const Offer held_offer = exporter.call(offer_block, kSize, kListed, uint8_t{2});
  const Offer other_offer = other_exporter.call(offer_block, kSize, kListed, uint8_t{3});
  for (const Offer& own : {offer, held_offer}) exporter.call(list, own.token, Ids{own_id()});
  other_exporter.call(list, other_offer.token, Ids{own_id()});
  const View held = import_view(held_offer.token, kSize, 0);

  {
    const Stopped stopped(exporter);
    const Stopwatch watch;
    EXPECT_EQ(try_import(Version::kV1, offer.token, 0), ACL_ERROR_RT_IPC_ERROR);
    EXPECT_LT(watch.time(), kLongestCall);
    // What needs no answer from it goes on.
    EXPECT_TRUE(is_marked(held.start, kSize, 2));
    mark(held.start, kSize, 4);
    EXPECT_EQ(try_import(Version::kV1, other_offer.token, 0), ACL_SUCCESS);
  }

  EXPECT_TRUE(exporter.call(is_marked, held_offer.view.start, kSize, uint8_t{4}));
  // The import that was given up left no reference behind, here or there.
  const View view = import_view(offer.token, kSize, 0);
  EXPECT_TRUE(is_marked(view.start, kSize, 1));
  close_view(view);
  close_view(held);
  for (const Offer& own : {offer, held_offer}) exporter.call(close_view, own.view);
  other_exporter.call(close_view, other_offer.view);
}

TEST_F(ShareKill, SHARE_32_AStoppedExporterWithoutWhitelistDoesNoHarm) {
  Remote exporter;
  const Offer offer = exporter.call(offer_block, kSize, kEveryone, uint8_t{1});
  {
    const Stopped stopped(exporter);
    const aclError code = try_import(Version::kV1, offer.token, 0);
    EXPECT_TRUE(code == ACL_SUCCESS || code == ACL_ERROR_RT_IPC_ERROR) << code;
  }
  const View view = import_view(offer.token, kSize, 0);
  EXPECT_TRUE(is_marked(view.start, kSize, 1));
  close_view(view);
  exporter.call(close_view, offer.view);
}

TEST_F(ShareKill, SHARE_31_AStoppedExporterThatIsKilledEndsTheOffer) {
  Remote exporter;
  Remote importer;
  const Offer offer = exporter.call(offer_block, kSize, kListed, uint8_t{1});
  exporter.call(list, offer.token, Ids{importer.id()});
  const Stopped stopped(exporter);
  importer.start(import_until_refused, offer.token);
  exporter.kill();
  // It may have asked before the end or after it; in neither case is it left waiting.
  EXPECT_EQ(importer.result<aclError>(), ACL_ERROR_RT_INVALID_HANDLE);
}

TEST_F(ShareKill, SHARE_38_AStoppedImporterHoldsUpNobody) {
  Remote importer;
  Remote other;
  const Offer offer = offer_block(kSize, kEveryone, 1);
  RemoteView view(importer, offer.token, kSize);
  {
    const Stopped stopped(importer);
    EXPECT_EQ(other.import(offer.token), ACL_SUCCESS);
    close_view(offer.view);
    EXPECT_EQ(other.import(offer.token), ACL_ERROR_RT_INVALID_HANDLE);
  }
  EXPECT_TRUE(view.shows(1));
}

// ---- Many blocks, several importers ----

constexpr size_t kMany = 1000;
constexpr size_t kSampled = 50;  // every so many blocks have bytes: the rest costs no host memory
using ManyTokens = std::array<uint64_t, kMany>;

uint8_t seed_of(size_t index) { return static_cast<uint8_t>(1 + index / kSampled); }

US_PEER(ImportsAThousandBlocks) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  channel.send(true);
  const auto tokens = channel.receive<ManyTokens>();
  std::vector<aclrtDrvMemHandle> handles(kMany);
  for (size_t i = 0; i < kMany; ++i) {
    ASSERT_SUCCESS(aclrtMemImportFromShareableHandle(tokens[i], 0, &handles[i]));
  }
  for (size_t i = 0; i < kMany; i += kSampled) {
    void* const start = map_anew(handles[i], kGranule);
    EXPECT_TRUE(is_marked(start, kGranule, seed_of(i))) << i;
    EXPECT_SUCCESS(aclrtUnmapMem(start));
    EXPECT_SUCCESS(aclrtReleaseMemAddress(start));
  }
  channel.send(true);
  channel.wait_for_end();
  for (const aclrtDrvMemHandle handle : handles) EXPECT_SUCCESS(aclrtFreePhysical(handle));
  EXPECT_SUCCESS(aclrtResetDeviceForce(0));
}

TEST_F(ShareKill, SHARE_34_SHARE_42_AThousandBlocksAreImportedByFourProcessesAtOnce) {
  const size_t before = huge_bytes_free();
  std::deque<Peer> importers;
  for (int i = 0; i < 4; ++i) importers.emplace_back(ImportsAThousandBlocks);
  Ids ids;
  for (Peer& importer : importers) {
    ASSERT_TRUE(importer.receive<bool>());
    ids.ids[ids.count++] = importer.pid();
  }
  std::vector<aclrtDrvMemHandle> handles(kMany);
  ManyTokens tokens{};
  for (size_t i = 0; i < kMany; ++i) {
    handles[i] = create_block(kGranule);
    tokens[i] = token_of(handles[i], kAccessRules[i % 2]);
    if (i % 2 == 0) list(tokens[i], ids);
    if (i % kSampled != 0) continue;
    const Reservation range(kGranule);
    ASSERT_SUCCESS(aclrtMapMem(range.start(), kGranule, 0, handles[i], 0));
    const Mapping mapping(range.start());
    mark(range.start(), kGranule, seed_of(i));
  }
  for (Peer& importer : importers) importer.send(tokens);
  for (Peer& importer : importers) EXPECT_TRUE(importer.receive<bool>());
  EXPECT_EQ(huge_bytes_free(), before - kMany * kGranule);

  importers[0].kill();
  for (const aclrtDrvMemHandle handle : handles) EXPECT_SUCCESS(aclrtFreePhysical(handle));
  EXPECT_EQ(huge_bytes_free(), before - kMany * kGranule);
  for (size_t i = 1; i < importers.size(); ++i) importers[i].finish();
  EXPECT_EQ(huge_bytes_free(), before);
}

}  // namespace
}  // namespace understudy_test::share
