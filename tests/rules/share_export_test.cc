// SPDX-License-Identifier: Apache-2.0
//
// aclrtMemExportToShareableHandle and its V2 with the default type: which blocks can be offered to
// other processes, and what the offer is.
// Covers: SHARE-01, SHARE-02, SHARE-03, SHARE-04, SHARE-05, SHARE-06, SHARE-07, SHARE-08, SHARE-09,
// SHARE-10, SHARE-11, SHARE-12, SHARE-14.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "rules/share_objects.h"

namespace understudy_test::share {
namespace {

using ShareExport = VirtualMemoryTest;

// An output of V2, filled with bytes that no success leaves there.
struct Blob {
  static constexpr uint8_t kFill = 0x5A;
  Blob() { bytes.fill(kFill); }
  bool untouched_from(size_t first) const {
    return std::all_of(bytes.begin() + static_cast<ptrdiff_t>(first), bytes.end(),
                       [](uint8_t byte) { return byte == kFill; });
  }
  alignas(8) std::array<uint8_t, 256> bytes;
};

void expect_v1_refused(aclError code, aclrtDrvMemHandle handle, uint64_t flags,
                       aclrtMemHandleType type = ACL_MEM_HANDLE_TYPE_NONE) {
  const FiguresStay figures;
  uint64_t token = kUntouchedToken;
  EXPECT_FAILS(code, aclrtMemExportToShareableHandle(handle, type, flags, &token));
  EXPECT_EQ(token, kUntouchedToken);
}

void expect_v2_refused(aclError code, aclrtDrvMemHandle handle, uint64_t flags,
                       aclrtMemSharedHandleType type = ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT) {
  const FiguresStay figures;
  Blob blob;
  EXPECT_FAILS(code, aclrtMemExportToShareableHandleV2(handle, flags, type, blob.bytes.data()));
  EXPECT_TRUE(blob.untouched_from(0));
}

void expect_refused(aclError code, aclrtDrvMemHandle handle, uint64_t flags = kEveryone) {
  expect_v1_refused(code, handle, flags);
  expect_v2_refused(code, handle, flags);
}

// Refused attempts use up nothing: the block can still be offered, and taken.
void expect_shareable(aclrtDrvMemHandle handle) {
  Remote importer;
  EXPECT_EQ(importer.import(token_of(handle)), ACL_SUCCESS);
}

TEST_F(ShareExport, SHARE_01_NullIsRefused) {
  const Block block;
  const FiguresStay figures;
  expect_refused(ACL_ERROR_INVALID_PARAM, nullptr);
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtMemExportToShareableHandle(block.handle(), ACL_MEM_HANDLE_TYPE_NONE, kEveryone,
                                               nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtMemExportToShareableHandleV2(block.handle(), kEveryone,
                                                 ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT, nullptr));
  expect_shareable(block.handle());
}

TEST_F(ShareExport, SHARE_01_NullIsLookedForBeforeAnythingElse) {
  expect_refused(ACL_ERROR_INVALID_PARAM, nullptr, 2);
  expect_v2_refused(ACL_ERROR_INVALID_PARAM, nullptr, kEveryone,
                    enum_value<aclrtMemSharedHandleType>(0));
  expect_v2_refused(ACL_ERROR_INVALID_PARAM, nullptr, kEveryone, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC);
}

TEST_F(ShareExport, SHARE_02_OtherHandleTypesAreRefused) {
  const Block block;
  for (const int64_t type : {1, 2, 3, 99, -1}) {
    SCOPED_TRACE(type);
    const auto handle_type = enum_value<aclrtMemHandleType>(type);
    expect_v1_refused(ACL_ERROR_INVALID_PARAM, block.handle(), kEveryone, handle_type);
    expect_v1_refused(ACL_ERROR_INVALID_PARAM, block.handle(), 2, handle_type);
  }
  expect_shareable(block.handle());
}

TEST_F(ShareExport, SHARE_03_UnknownFlagsAreRefused) {
  const Block block;
  for (const uint64_t flags :
       {uint64_t{2}, uint64_t{3}, uint64_t{1} << 32, uint64_t{1} << 63, UINT64_MAX}) {
    SCOPED_TRACE(flags);
    expect_refused(ACL_ERROR_RT_PARAM_INVALID, block.handle(), flags);
    // An argument is looked at before what the product lacks.
    expect_v2_refused(ACL_ERROR_RT_PARAM_INVALID, block.handle(), flags,
                      ACL_MEM_SHARE_HANDLE_TYPE_FABRIC);
  }
  expect_shareable(block.handle());
}

TEST_F(ShareExport, SHARE_04_UnknownShareTypesAreRefused) {
  const Block block;
  for (const int64_t type : {0, 3, 4, 99, -1}) {
    SCOPED_TRACE(type);
    expect_v2_refused(ACL_ERROR_RT_PARAM_INVALID, block.handle(), kEveryone,
                      enum_value<aclrtMemSharedHandleType>(type));
  }
  expect_shareable(block.handle());
}

TEST_F(ShareExport, SHARE_05_DefaultTypeWritesEightBytes) {
  const Block block;
  Blob blob;
  ASSERT_SUCCESS(aclrtMemExportToShareableHandleV2(
      block.handle(), kEveryone, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT, blob.bytes.data()));
  EXPECT_TRUE(blob.untouched_from(sizeof(uint64_t)));
  uint64_t token = 0;
  memcpy(&token, blob.bytes.data(), sizeof token);
  EXPECT_NE(token, 0u);
  Remote importer;
  EXPECT_EQ(importer.import(token), ACL_SUCCESS);
}

// Several exports of a process, in a form that can be sent.
constexpr size_t kTokens = 16;
struct Tokens {
  std::array<aclrtDrvMemHandle, kTokens> handles;
  std::array<uint64_t, kTokens> tokens;
};
Tokens export_several(uint64_t flags) {
  Tokens result{};
  for (size_t i = 0; i < kTokens; ++i) {
    result.handles[i] = create_block(kGranule);
    result.tokens[i] = token_of(result.handles[i], flags, i % 2 == 0 ? Version::kV1 : Version::kV2);
  }
  return result;
}
void free_several(std::array<aclrtDrvMemHandle, kTokens> handles) {
  for (const aclrtDrvMemHandle handle : handles) EXPECT_SUCCESS(aclrtFreePhysical(handle));
}

TEST_F(ShareExport, SHARE_06_ValuesOfAllProcessesDiffer) {
  Remote first;
  Remote second;
  Remote importer;
  std::vector<uint64_t> all;
  const auto note = [&](const Tokens& several) {
    all.insert(all.end(), several.tokens.begin(), several.tokens.end());
  };
  const Tokens here = export_several(kEveryone);
  const Tokens of_first = first.call(export_several, kEveryone);
  const Tokens of_second = second.call(export_several, kListed);
  note(here);
  note(of_first);
  note(of_second);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
  EXPECT_EQ(std::count(all.begin(), all.end(), 0u), 0);

  // Each leads to its own exporter: of two processes, and with different rules.
  EXPECT_EQ(importer.import(here.tokens[3]), ACL_SUCCESS);
  EXPECT_EQ(importer.import(of_first.tokens[3]), ACL_SUCCESS);
  EXPECT_EQ(importer.import(of_second.tokens[3]), ACL_ERROR_RT_NO_PERMISSION);

  free_several(here.handles);
  first.call(free_several, of_first.handles);
  second.call(free_several, of_second.handles);
}

TEST_F(ShareExport, SHARE_06_EveryValueLeadsToItsOwnBlock) {
  Remote exporter;
  Remote importer;
  const Offer first = exporter.call(offer_block, kGranule, kEveryone, uint8_t{11});
  const Offer second = exporter.call(offer_block, kGranule, kEveryone, uint8_t{22});
  {
    RemoteView of_second(importer, second.token);
    RemoteView of_first(importer, first.token);
    EXPECT_TRUE(of_first.shows(11));
    EXPECT_TRUE(of_second.shows(22));
  }
  exporter.call(close_view, first.view);
  exporter.call(close_view, second.view);
}

TEST_F(ShareExport, SHARE_07_VersionsAreInterchangeable) {
  for (const Version version : kVersions) {
    SCOPED_TRACE(static_cast<int>(version));
    const Block block;
    const uint64_t token = token_of(block.handle(), kListed, version);
    Remote importer;
    EXPECT_EQ(importer.import(token, other(version)), ACL_ERROR_RT_NO_PERMISSION);
    EXPECT_EQ(list_with(other(version), token, {importer.id()}), ACL_SUCCESS);
    EXPECT_EQ(importer.import(token, other(version)), ACL_SUCCESS);
    EXPECT_EQ(importer.import(token, version), ACL_SUCCESS);
  }
}

TEST_F(ShareExport, SHARE_08_SecondExportIsRefusedAndTheFirstStaysValid) {
  for (const Version version : kVersions) {
    for (const uint64_t flags : kAccessRules) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(version) << " with flags " << flags);
      const MappedBlock scene;
      mark(scene.start(), kGranule, 8);
      const uint64_t token = token_of(scene.block.handle(), flags, version);
      expect_refused(ACL_ERROR_RT_PARAM_INVALID, scene.block.handle(), kListed);
      expect_refused(ACL_ERROR_RT_PARAM_INVALID, scene.block.handle(), kEveryone);

      Remote importer;
      Remote stranger;
      if (flags == kListed) list(token, {importer.id()});
      // A refused export must not have opened the first one to everybody, or closed it.
      EXPECT_EQ(stranger.import(token),
                flags == kListed ? ACL_ERROR_RT_NO_PERMISSION : ACL_SUCCESS);
      RemoteView view(importer, token);
      EXPECT_TRUE(view.shows(8));
    }
  }
}

TEST_F(ShareExport, SHARE_08_RetainedHandleIsTheSameHandle) {
  const MappedBlock scene;
  (void)token_of(scene.block.handle());
  aclrtDrvMemHandle retained = nullptr;
  ASSERT_SUCCESS(aclrtMemRetainAllocationHandle(scene.start(), &retained));
  expect_refused(ACL_ERROR_RT_PARAM_INVALID, retained);
  EXPECT_SUCCESS(aclrtFreePhysical(retained));
}

aclError try_export(Version version, aclrtDrvMemHandle handle, uint64_t flags) {
  return export_with(version, handle, flags).code;
}

TEST_F(ShareExport, SHARE_09_ImportedHandleCannotBeExported) {
  const MappedBlock scene;
  const uint64_t token = token_of(scene.block.handle());
  Remote importer;
  RemoteView view(importer, token);
  for (const Version version : kVersions) {
    for (const uint64_t flags : kAccessRules) {
      EXPECT_EQ(importer.call(try_export, version, view.handle(), flags),
                ACL_ERROR_RT_PARAM_INVALID);
    }
  }
  view.write(9);
  EXPECT_TRUE(is_marked(scene.start(), kGranule, 9));
}

TEST_F(ShareExport, SHARE_10_InventedHandlesAreRefused) {
  const Block live;
  int on_stack = 0;
  const uint64_t handle = number(live.handle());
  for (const uint64_t value : {uint64_t{1}, uint64_t{0xdeadbeef}, uint64_t{1} << 47, UINT64_MAX,
                               handle + 1, handle ^ (uint64_t{1} << 62), number(&on_stack)}) {
    SCOPED_TRACE(value);
    expect_refused(ACL_ERROR_RT_PARAM_INVALID, address(value));
  }
  expect_shareable(live.handle());
}

TEST_F(ShareExport, SHARE_10_FreedHandlesAreRefused) {
  Block destroyed;
  destroyed.free();
  expect_refused(ACL_ERROR_RT_PARAM_INVALID, destroyed.handle());

  MappedBlock kept_by_its_mapping;
  kept_by_its_mapping.block.free();
  expect_refused(ACL_ERROR_RT_PARAM_INVALID, kept_by_its_mapping.block.handle());

  Block exported;
  (void)token_of(exported.handle());
  exported.free();
  expect_refused(ACL_ERROR_RT_PARAM_INVALID, exported.handle());
}

TEST_F(ShareExport, SHARE_11_ExportNeedsNoMappingAndDisturbsNone) {
  const Block block(3 * kGranule);
  const Reservation range(8 * kGranule);
  const Mapping before(range.start(), block);
  mark(before.start(), block.size(), 11);
  const uint64_t token = token_of(block.handle());
  EXPECT_TRUE(is_marked(before.start(), block.size(), 11));
  const Mapping after(range.at(4 * kGranule), block);
  EXPECT_TRUE(is_marked(after.start(), block.size(), 11));

  Remote importer;
  RemoteView view(importer, token, block.size());
  view.write(12);
  EXPECT_TRUE(is_marked(before.start(), block.size(), 12));
  EXPECT_TRUE(is_marked(after.start(), block.size(), 12));
}

class ShareExportProducts : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Products, ShareExportProducts,
                         testing::Values("a2", "inf", "trn", "200i", "950"),
                         [](const auto& item) { return vmm::test_name_on(item.param); });

TEST_P(ShareExportProducts, SHARE_12_FabricIsForA3) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()});
  const DeviceScope device;
  const Block block;
  for (const uint64_t flags : kAccessRules) {
    expect_v2_refused(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, block.handle(), flags,
                      ACL_MEM_SHARE_HANDLE_TYPE_FABRIC);
  }
  on_bare_thread([&] {  // the context is needed on A3 only
    uint64_t token = kUntouchedToken;
    EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                 aclrtMemExportToShareableHandleV2(block.handle(), kEveryone,
                                                   ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, &token));
  });
  expect_shareable(block.handle());
}

// The rules do not name the switch.
TEST(ShareExportVirtualInstance, SHARE_14_NothingIsSharedInAVirtualInstance) {
  US_FRESH_PROCESS({"UNDERSTUDY_FEATURES", "+virtual_instance"});
  const DeviceScope device;
  MappedBlock scene;
  expect_refused(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, scene.block.handle(), kListed);
  expect_refused(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, scene.block.handle(), kEveryone);
  expect_refused(ACL_ERROR_INVALID_PARAM, nullptr);
  mark(scene.start(), kGranule, 14);
  EXPECT_TRUE(is_marked(scene.start(), kGranule, 14));
}

}  // namespace
}  // namespace understudy_test::share
