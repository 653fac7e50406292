// SPDX-License-Identifier: Apache-2.0
#include "platform/memory_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "platform/address_window.h"
#include "platform/loaded_library.h"
#include "unit/expect_result.h"

namespace understudy::platform {
namespace {

TEST(MemoryMap, ShowsTheFileThatCodeIsFrom) {
  static const char in_this_program = 0;
  const std::vector<MapEntry> map = memory_map();
  const auto own = std::find_if(map.begin(), map.end(), [](const MapEntry& entry) {
    return entry.range.contains(to_address(&in_this_program));
  });
  ASSERT_NE(own, map.end());
  EXPECT_TRUE(own->path.ends_with("/unit_tests")) << own->path;
  EXPECT_NE(own->file_identity, "00:00 0");
}

TEST(MemoryMap, ShowsMemoryWithoutAFile) {
  const VirtualRange range = value_of(occupy_anywhere(kHugePage, kHugePage));
  const std::vector<MapEntry> map = memory_map();
  const auto mine = std::find_if(
      map.begin(), map.end(), [&](const MapEntry& entry) { return entry.range.contains(range); });
  ASSERT_NE(mine, map.end());
  EXPECT_EQ(mine->path, "");
  EXPECT_EQ(mine->file_identity, "00:00 0");
  EXPECT_TRUE(vacate(range));
}

TEST(MemoryMap, ShowsThePathWithItsSpaces) {
  const MemoryFile file =
      value_of(MemoryFile::create(FileKind::kShared, "a name with spaces", kHugePage));
  const VirtualRange range = value_of(map_whole_file(file, kHugePage));
  bool found = false;
  for (const MapEntry& entry : memory_map()) {
    if (entry.range == range) found = entry.path.find("a name with spaces") != std::string::npos;
  }
  EXPECT_TRUE(found);
  EXPECT_TRUE(vacate(range));
}

TEST(MemoryMap, AnythingMappedIsSeenUpToTheLastByte) {
  const VirtualRange outer = value_of(occupy_anywhere(3 * kHugePage, kHugePage));
  const VirtualRange hole{outer.base + kHugePage, kHugePage};
  ASSERT_TRUE(vacate(hole));
  EXPECT_FALSE(is_anything_mapped(hole));
  EXPECT_TRUE(is_anything_mapped({hole.base, kHugePage + kNormalPage}));
  EXPECT_TRUE(is_anything_mapped({hole.base - kNormalPage, kHugePage}));
  EXPECT_TRUE(is_anything_mapped(outer));
  EXPECT_FALSE(is_anything_mapped({0, kNormalPage}));
  EXPECT_TRUE(vacate(outer));
}

TEST(LoadedLibrary, ProgramThatLinksTheLayersHasNoSecondCopy) {
  EXPECT_FALSE(second_copy_of_this_library());
}

}  // namespace
}  // namespace understudy::platform
