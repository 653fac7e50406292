// SPDX-License-Identifier: Apache-2.0
#include "observe/unwritten_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace understudy {
namespace {

constexpr VirtualAddress kBase = 5 * kGiB - 4 * kGranule;  // reaches across a GiB
constexpr uint64_t kLine = UnwrittenLines::kLine;

class UnwrittenLinesTest : public testing::Test {
 protected:
  UnwrittenLinesTest() { lines_.begin({kBase, 8 * kGranule}); }

  uint64_t unwritten(VirtualAddress base, uint64_t size) const {
    const auto part = lines_.find({base, size});
    return part ? part->bytes : 0;
  }

  UnwrittenLines lines_;
};

TEST_F(UnwrittenLinesTest, UnknownMemoryCountsAsWritten) {
  const UnwrittenLines none;
  EXPECT_FALSE(none.find({kBase, kGranule}));
  EXPECT_FALSE(lines_.find({kBase - kGranule, kGranule}));
  EXPECT_EQ(unwritten(kBase - kGranule, 2 * kGranule), kGranule);
}

TEST_F(UnwrittenLinesTest, NewMemoryIsUnwrittenToTheByte) {
  const auto part = lines_.find({kBase + 10, 8 * kGranule - 20});
  ASSERT_TRUE(part);
  EXPECT_EQ(part->first, (VirtualRange{kBase + 10, 8 * kGranule - 20}));
  EXPECT_EQ(part->bytes, 8 * kGranule - 20);
}

TEST_F(UnwrittenLinesTest, OneByteWritesItsLine) {
  lines_.write({kBase + 3 * kLine + 7, 1});
  EXPECT_EQ(unwritten(kBase + 3 * kLine, kLine), 0U);
  EXPECT_EQ(unwritten(kBase + 3 * kLine - 1, kLine + 2), 2U);
}

TEST_F(UnwrittenLinesTest, WriteThatTouchesTwoLinesWritesBoth) {
  lines_.write({kBase + kLine - 1, 2});
  EXPECT_EQ(unwritten(kBase, 2 * kLine), 0U);
  EXPECT_EQ(unwritten(kBase, 3 * kLine), kLine);
}

TEST_F(UnwrittenLinesTest, FirstPartAndSumAreToldOfSeveral) {
  lines_.write({kBase + 64 * kLine, kLine});
  lines_.write({kBase + 70 * kLine, kLine});
  const auto part = lines_.find({kBase + 60 * kLine, 20 * kLine});
  ASSERT_TRUE(part);
  EXPECT_EQ(part->first, (VirtualRange{kBase + 60 * kLine, 4 * kLine}));
  EXPECT_EQ(part->bytes, 18 * kLine);
}

TEST_F(UnwrittenLinesTest, FirstPartReachesAcrossWordsAndGranules) {
  lines_.write({kBase, kGranule - 100 * kLine});
  const auto part = lines_.find({kBase, 3 * kGranule});
  ASSERT_TRUE(part);
  EXPECT_EQ(part->first,
            (VirtualRange{kBase + kGranule - 100 * kLine, 2 * kGranule + 100 * kLine}));
  EXPECT_EQ(part->bytes, part->first.size);
}

TEST_F(UnwrittenLinesTest, GranuleThatIsWrittenInPartsIsWritten) {
  lines_.write({kBase, kGranule / 2});
  EXPECT_EQ(unwritten(kBase, kGranule), kGranule / 2);
  lines_.write({kBase + kGranule / 2, kGranule / 2});
  EXPECT_EQ(unwritten(kBase, kGranule), 0U);
  EXPECT_EQ(unwritten(kBase, 2 * kGranule), kGranule);
}

TEST_F(UnwrittenLinesTest, RenewedPartIsUnwrittenAndItsNeighboursAreNot) {
  lines_.write({kBase, 2 * kGranule});
  lines_.renew({kBase + kNormalPage, kNormalPage});
  const auto part = lines_.find({kBase, kGranule});
  ASSERT_TRUE(part);
  EXPECT_EQ(part->first, (VirtualRange{kBase + kNormalPage, kNormalPage}));
  EXPECT_EQ(part->bytes, kNormalPage);
  lines_.renew({kBase, 2 * kGranule});
  EXPECT_EQ(unwritten(kBase, 2 * kGranule), 2 * kGranule);
}

TEST_F(UnwrittenLinesTest, ForgottenMemoryCannotBeRenewed) {
  lines_.forget({kBase + kGranule, kGranule});
  EXPECT_EQ(unwritten(kBase, 3 * kGranule), 2 * kGranule);
  lines_.renew({kBase + kGranule, kGranule});
  lines_.renew({kBase + kGranule, kNormalPage});
  EXPECT_EQ(unwritten(kBase + kGranule, kGranule), 0U);
  lines_.begin({kBase + kGranule, kGranule});
  EXPECT_EQ(unwritten(kBase + kGranule, kGranule), kGranule);
}

// Against a byte per line.
TEST_F(UnwrittenLinesTest, RandomChangesAreAsInASimpleModel) {
  constexpr uint64_t kLines = 8 * kGranule / kLine;
  std::vector<bool> model(kLines, true);
  std::mt19937_64 random(7);
  const auto below = [&](uint64_t limit) { return random() % limit; };
  for (int i = 0; i < 3000; ++i) {
    const uint64_t most = below(4) == 0 ? 3 * kGranule : 300 * kLine;
    const uint64_t offset = below(8 * kGranule - 1);
    const uint64_t size = 1 + below(std::min(most, 8 * kGranule - offset));
    const uint64_t first = offset / kLine;
    const uint64_t end = (offset + size + kLine - 1) / kLine;
    const auto set_model = [&](bool unwritten) {
      for (uint64_t line = first; line < end; ++line) model[line] = unwritten;
    };
    switch (below(3)) {
      case 0:
        lines_.write({kBase + offset, size});
        set_model(false);
        break;
      case 1:
        lines_.renew({kBase + first * kLine, (end - first) * kLine});
        set_model(true);
        break;
      default: {
        uint64_t expected = 0;
        for (uint64_t line = first; line < end; ++line) {
          if (!model[line]) continue;
          expected += std::min((line + 1) * kLine, offset + size) - std::max(line * kLine, offset);
        }
        ASSERT_EQ(unwritten(kBase + offset, size), expected) << i;
      }
    }
  }
}

}  // namespace
}  // namespace understudy
