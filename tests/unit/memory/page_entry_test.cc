// SPDX-License-Identifier: Apache-2.0
#include "memory/page_entry.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace understudy {
namespace {

constexpr VirtualAddress kMaxHost = (VirtualAddress{1} << 48) - kGranule;
constexpr uint32_t kMaxMapping = (uint32_t{1} << kPoolIndexBits) - 1;

TEST(PageEntry, FieldsComeBackAsTheyWere) {
  for (const VirtualAddress host : {VirtualAddress{0}, kGranule, 127 * kTiB, kMaxHost}) {
    for (const uint32_t mapping : {uint32_t{0}, uint32_t{1}, kMaxMapping}) {
      for (const unsigned owner : {0u, 31u, PageEntry::kHostOwner}) {
        for (const bool access : {false, true}) {
          const PageEntry entry = PageEntry::make(host, mapping, owner, access);
          EXPECT_TRUE(entry.present());
          EXPECT_FALSE(entry.commit());
          EXPECT_EQ(entry.host(), host);
          EXPECT_EQ(entry.mapping(), mapping);
          EXPECT_EQ(entry.owner(), owner);
          EXPECT_EQ(entry.owner_access(), access);
          EXPECT_EQ(entry.on_host(), owner == PageEntry::kHostOwner);
          EXPECT_EQ(PageEntry(entry.word()), entry);
        }
      }
    }
  }
}

TEST(PageEntry, FieldsDoNotOverlap) {
  const uint64_t present = PageEntry::make(0, 0, 0, false).word();
  const uint64_t fields[] = {
      present,
      PageEntry::make(kMaxHost, 0, 0, false).word() & ~present,
      PageEntry::make(0, kMaxMapping, 0, false).word() & ~present,
      PageEntry::make(0, 0, PageEntry::kHostOwner, false).word() & ~present,
      PageEntry().with_owner_access().word(),
      PageEntry().with_committed().word(),
  };
  uint64_t seen = 0;
  for (const uint64_t field : fields) {
    EXPECT_NE(field, 0u);
    EXPECT_EQ(seen & field, 0u) << std::hex << field;
    seen |= field;
  }
}

TEST(PageEntry, EmptyEntryIsNotPresent) {
  EXPECT_FALSE(PageEntry().present());
  EXPECT_EQ(PageEntry().word(), 0u);
}

TEST(PageEntry, CommittedAndAccessAreAddedWithoutChangingTheRest) {
  const PageEntry entry = PageEntry::make(42 * kGranule, 7, 3, false);
  const PageEntry changed = entry.with_committed().with_owner_access();
  EXPECT_TRUE(changed.commit());
  EXPECT_TRUE(changed.owner_access());
  EXPECT_EQ(changed.host(), entry.host());
  EXPECT_EQ(changed.mapping(), entry.mapping());
  EXPECT_EQ(changed.owner(), entry.owner());
  EXPECT_EQ(changed.with_committed(), changed);
}

TEST(PageEntry, AdvancedEntryIsAnotherGranuleOfTheSameMapping) {
  const PageEntry entry = PageEntry::make(42 * kGranule, kMaxMapping, 31, true);
  const PageEntry third = entry.advanced(511);
  EXPECT_EQ(third.host(), (42 + 511) * kGranule);
  EXPECT_EQ(third.mapping(), kMaxMapping);
  EXPECT_EQ(third.owner(), 31u);
  EXPECT_TRUE(third.owner_access());
}

TEST(PageEntry, BytesWithinAGranuleAreNotPartOfIt) {
  EXPECT_EQ(PageEntry::make(kGranule + 12345, 0, 0, false).host(), kGranule);
}

}  // namespace
}  // namespace understudy
