// SPDX-License-Identifier: Apache-2.0
//
// An importer is stopped while it commits host memory for a shared block. The exporter's write to
// the same memory answers within 5 s, with 507022 or because it has taken the commit over; and when
// the importer goes on, no byte is lost.
//
// From outside one cannot see what a process is stopped at, so that many are stopped at random
// moments of a write to memory that was never touched, most of which is spent on its commit.
// Covers: SHARE-40.
#include <vector>

#include "process/stopped_process.h"
#include "rules/share_objects.h"

namespace understudy_test::share {
namespace {

constexpr size_t kGranules = 16;
constexpr size_t kSize = kGranules * kGranule;
constexpr int kRounds = 24;
constexpr uint8_t kByExporter = 0x11;
constexpr uint8_t kByImporter = 0x22;

aclError set_all(void* start, uint8_t byte) { return aclrtMemset(start, kSize, byte, kSize); }

// Whether every byte was written, and by whom: words, since bytes one by one take long.
struct Written {
  bool by_any;
  bool by_exporter;
};
Written look(void* start) {
  const auto word_of = [](uint8_t byte) { return uint64_t{0x0101010101010101} * byte; };
  std::vector<uint64_t> words(kSize / sizeof(uint64_t));
  EXPECT_SUCCESS(aclrtMemcpy(words.data(), kSize, start, kSize, ACL_MEMCPY_DEVICE_TO_HOST));
  Written seen{true, true};
  for (const uint64_t word : words) {
    const bool by_exporter = word == word_of(kByExporter);
    seen.by_exporter &= by_exporter;
    seen.by_any &= by_exporter || word == word_of(kByImporter);
  }
  return seen;
}

Offer offer_untouched() {
  const aclrtDrvMemHandle handle = create_block(kSize);
  return {{handle, map_anew(handle, kSize), kSize}, token_of(handle)};
}

using StoppedCommit = VirtualMemoryTest;  // compares the memory figures at the end of every test

TEST_F(StoppedCommit, SHARE_40_TheExportersWriteAnswersInTime) {
  std::mt19937 random(7);
  std::chrono::steady_clock::duration whole{};
  bool was_refused = false;
  for (int round = -1; round < kRounds && !was_refused && !HasFailure(); ++round) {
    SCOPED_TRACE(round);
    Remote exporter;  // a new one, so that nothing of its memory was ever committed
    Remote importer;
    const Offer offer = exporter.call(offer_untouched);
    const View view = importer.call(import_view, offer.token, kSize, 0);
    aclError written = ACL_SUCCESS;
    if (round < 0) {  // how long it takes
      const Stopwatch watch;
      ASSERT_EQ(importer.call(set_all, view.start, kByImporter), ACL_SUCCESS);
      whole = watch.time();
    } else {
      importer.start(set_all, view.start, kByImporter);
      spend_part_of(whole, random);
      {
        const Stopped stopped(importer);
        exporter.start(set_all, offer.view.start, kByExporter);
        EXPECT_TRUE(exporter.peer().channel().becomes_readable(kLongestCall))
            << "the exporter's write waits for a stopped process";
      }
      written = exporter.result<aclError>();
      EXPECT_TRUE(written == ACL_SUCCESS || written == ACL_ERROR_RT_IPC_ERROR) << written;
      was_refused = written != ACL_SUCCESS;
      EXPECT_EQ(importer.result<aclError>(), ACL_SUCCESS);
      // Both wrote, in some order; what one of them wrote is there.
      for (Remote* const who : {&exporter, &importer}) {
        EXPECT_TRUE(who->call(look, who == &exporter ? offer.view.start : view.start).by_any);
      }
      // Nothing is left in the way of the next write.
      EXPECT_EQ(exporter.call(set_all, offer.view.start, kByExporter), ACL_SUCCESS);
      EXPECT_TRUE(importer.call(look, view.start).by_exporter);
    }
    importer.call(close_view, view);
    exporter.call(close_view, offer.view);
  }
}

// One that is killed in the middle leaves the commit to the others, at once.
TEST_F(StoppedCommit, SHARE_40_AKilledImporterLeavesTheCommitToTheExporter) {
  std::mt19937 random(70);
  for (int round = 0; round < kRounds / 2; ++round) {
    SCOPED_TRACE(round);
    Remote exporter;
    const Offer offer = exporter.call(offer_untouched);
    {
      Remote importer;
      const View view = importer.call(import_view, offer.token, kSize, 0);
      importer.start(set_all, view.start, kByImporter);
      spend_part_of(std::chrono::milliseconds(10), random);
      importer.kill();
    }
    const Stopwatch watch;
    ASSERT_EQ(exporter.call(set_all, offer.view.start, kByExporter), ACL_SUCCESS);
    EXPECT_LT(watch.time(), kLongestCall);
    EXPECT_TRUE(exporter.call(look, offer.view.start).by_exporter);
    exporter.call(close_view, offer.view);
  }
}

}  // namespace
}  // namespace understudy_test::share
