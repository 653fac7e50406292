// SPDX-License-Identifier: Apache-2.0
//
// Sharing with the FABRIC type, whose handles are blobs of 128 bytes: the product A3 alone has it.
// Covers: MAP-17, RESVN-08, SHARE-03, SHARE-05, SHARE-08, SHARE-10, SHARE-12, SHARE-13, SHARE-16,
// SHARE-18, SHARE-19, SHARE-20, SHARE-21, SHARE-25, SHARE-27, SHARE-28, SHARE-29, SHARE-30,
// SHARE-31, SHARE-32, SHARE-35.
#include <algorithm>
#include <array>
#include <cstring>

#include "rules/share_objects.h"

namespace understudy_test::share {
namespace {

// Every test here runs its body on an A3, in a process of its own.
#define US_ON_A3() US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"})

constexpr auto kFabric = ACL_MEM_SHARE_HANDLE_TYPE_FABRIC;
constexpr auto kDefault = ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT;

struct FabricExport {
  aclError code;
  aclrtMemFabricHandle blob;
};

bool is_filled_with(const void* bytes, size_t size, uint8_t value) {
  const auto* first = static_cast<const uint8_t*>(bytes);
  return std::all_of(first, first + size, [value](uint8_t byte) { return byte == value; });
}

FabricExport export_fabric(aclrtDrvMemHandle handle, uint64_t flags) {
  FabricExport result{};
  memset(&result.blob, 0x5A, sizeof result.blob);
  const CheckedCall call("aclrtMemExportToShareableHandleV2");
  result.code =
      call.returned(aclrtMemExportToShareableHandleV2(handle, flags, kFabric, &result.blob));
  EXPECT_EQ(is_filled_with(&result.blob, sizeof result.blob, 0x5A), result.code != ACL_SUCCESS);
  return result;
}
aclrtMemFabricHandle blob_of(const Block& block, uint64_t flags = kEveryone) {
  const FabricExport exported = export_fabric(block.handle(), flags);
  EXPECT_EQ(exported.code, ACL_SUCCESS);
  return exported.blob;
}

aclError list_as(aclrtMemSharedHandleType type, aclrtMemFabricHandle blob, Ids who) {
  const CheckedCall call("aclrtMemSetPidToShareableHandleV2");
  return call.returned(aclrtMemSetPidToShareableHandleV2(&blob, type, who.ids.data(), who.count));
}
Imported import_as(aclrtMemSharedHandleType type, aclrtMemFabricHandle blob) {
  aclrtDrvMemHandle handle = untouched();
  const CheckedCall call("aclrtMemImportFromShareableHandleV2");
  const aclError code = call.returned(aclrtMemImportFromShareableHandleV2(&blob, type, 0, &handle));
  EXPECT_EQ(handle == untouched(), code != ACL_SUCCESS);
  return {code, handle};
}
aclError try_import_as(aclrtMemSharedHandleType type, aclrtMemFabricHandle blob) {
  const Imported imported = import_as(type, blob);
  if (imported.code == ACL_SUCCESS) {
    EXPECT_SUCCESS(aclrtFreePhysical(imported.handle));
  }
  return imported.code;
}

// A number with whatever a caller has behind it.
aclrtMemFabricHandle in_a_blob(uint64_t token) {
  aclrtMemFabricHandle blob{};
  memcpy(&blob, &token, sizeof token);
  return blob;
}

TEST(ShareFabric, SHARE_05_FabricTypeWritesAllOf128BytesAndNoMore) {
  US_ON_A3();
  const DeviceScope device;
  // A byte that is left alone keeps every fill. One that is written does not, but by rare chance.
  constexpr std::array<uint8_t, 4> kFills = {0x5A, 0xA5, 0x3C, 0xC3};
  std::array<std::array<uint8_t, 256>, kFills.size()> rooms;
  const Block blocks[kFills.size()];
  for (size_t i = 0; i < kFills.size(); ++i) {
    rooms[i].fill(kFills[i]);
    ASSERT_SUCCESS(
        aclrtMemExportToShareableHandleV2(blocks[i].handle(), kEveryone, kFabric, rooms[i].data()));
    EXPECT_TRUE(is_filled_with(rooms[i].data() + 128, 128, kFills[i]));
  }
  for (size_t byte = 0; byte < 128; ++byte) {
    bool written = false;
    for (size_t i = 0; i < kFills.size(); ++i) written = written || rooms[i][byte] != kFills[i];
    EXPECT_TRUE(written) << byte << " was not written";
  }
}

TEST(ShareFabric, SHARE_05_SHARE_12_SHARE_35_BothProcessesSeeTheSameBytes) {
  US_ON_A3();
  const DeviceScope device;
  const MappedBlock scene(3 * kGranule);
  mark(scene.start(), scene.size(), 1);
  const aclrtMemFabricHandle blob = blob_of(scene.block);
  for (const int32_t their_device : {0, 1}) {
    SCOPED_TRACE(their_device);
    Remote importer(their_device);
    const Imported imported = importer.call(import_as, kFabric, blob);
    ASSERT_EQ(imported.code, ACL_SUCCESS);
    void* const start = importer.call(map_anew, imported.handle, scene.size());
    EXPECT_TRUE(
        importer.call(is_marked, start, scene.size(), static_cast<uint8_t>(1 + their_device)));
    importer.call(mark, start, scene.size(), static_cast<uint8_t>(2 + their_device));
    EXPECT_TRUE(is_marked(scene.start(), scene.size(), static_cast<uint8_t>(2 + their_device)));
    EXPECT_EQ(importer.call(try_import_as, kFabric, blob), ACL_ERROR_RT_INVALID_HANDLE);
    importer.call(close_view, View{imported.handle, start, scene.size()});
  }
}

TEST(ShareFabric, SHARE_08_SecondExportIsRefusedAcrossTypes) {
  US_ON_A3();
  const DeviceScope device;
  Remote importer;
  const Block fabric_first;
  const aclrtMemFabricHandle blob = blob_of(fabric_first);
  EXPECT_EQ(export_fabric(fabric_first.handle(), kEveryone).code, ACL_ERROR_RT_PARAM_INVALID);
  for (const Version version : kVersions) {
    EXPECT_EQ(export_with(version, fabric_first.handle(), kEveryone).code,
              ACL_ERROR_RT_PARAM_INVALID);
  }
  EXPECT_EQ(importer.call(try_import_as, kFabric, blob), ACL_SUCCESS);

  const Block number_first;
  const uint64_t token = token_of(number_first.handle());
  EXPECT_EQ(export_fabric(number_first.handle(), kEveryone).code, ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(importer.import(token), ACL_SUCCESS);
}

TEST(ShareFabric, SHARE_03_SHARE_10_BadExportsAreRefused) {
  US_ON_A3();
  const DeviceScope device;
  Block block;
  EXPECT_EQ(export_fabric(block.handle(), 2).code, ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(export_fabric(nullptr, kEveryone).code, ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(export_fabric(address(0xdeadbeef), kEveryone).code, ACL_ERROR_RT_PARAM_INVALID);
  block.free();
  EXPECT_EQ(export_fabric(block.handle(), kEveryone).code, ACL_ERROR_RT_PARAM_INVALID);
}

TEST(ShareFabric, SHARE_13_ExportNeedsAContext) {
  US_ON_A3();
  const DeviceScope device;
  const Block block;
  const Block numbered;
  on_bare_thread([&] {
    EXPECT_EQ(export_fabric(block.handle(), kEveryone).code, ACL_ERROR_RT_CONTEXT_NULL);
    EXPECT_EQ(export_fabric(address(0xdeadbeef), kEveryone).code, ACL_ERROR_RT_CONTEXT_NULL);
    (void)token_of(numbered.handle());  // the other type does without
  });
  Remote importer;
  EXPECT_EQ(importer.call(try_import_as, kFabric, blob_of(block)), ACL_SUCCESS);
}

TEST(ShareFabric, SHARE_19_SHARE_21_SHARE_30_SHARE_31_TheWhitelistDecides) {
  US_ON_A3();
  const DeviceScope device;
  const Block block;
  const aclrtMemFabricHandle blob = blob_of(block, kListed);
  Remote first;
  Remote second;
  EXPECT_EQ(first.call(try_import_as, kFabric, blob), ACL_ERROR_RT_NO_PERMISSION);
  EXPECT_EQ(first.call(list_as, kFabric, blob, Ids{first.id()}), ACL_ERROR_RT_NO_PERMISSION);
  EXPECT_EQ(first.call(try_import_as, kFabric, blob), ACL_ERROR_RT_NO_PERMISSION);
  EXPECT_EQ(list_as(kFabric, blob, {first.id()}), ACL_SUCCESS);
  EXPECT_EQ(first.call(try_import_as, kFabric, blob), ACL_SUCCESS);
  EXPECT_EQ(second.call(try_import_as, kFabric, blob), ACL_ERROR_RT_NO_PERMISSION);
  EXPECT_EQ(list_as(kFabric, blob, {second.id()}), ACL_SUCCESS);
  EXPECT_EQ(first.call(try_import_as, kFabric, blob), ACL_SUCCESS);
  EXPECT_EQ(second.call(try_import_as, kFabric, blob), ACL_SUCCESS);
}

TEST(ShareFabric, SHARE_20_SHARE_29_SHARE_32_WithoutWhitelistAllOthersGetIn) {
  US_ON_A3();
  const DeviceScope device;
  const Block block;
  const aclrtMemFabricHandle blob = blob_of(block, kEveryone);
  Remote importer;
  EXPECT_EQ(list_as(kFabric, blob, {importer.id()}), ACL_ERROR_RT_NO_PERMISSION);
  EXPECT_EQ(try_import_as(kFabric, blob), ACL_ERROR_RT_NO_PERMISSION);
  EXPECT_EQ(importer.call(try_import_as, kFabric, blob), ACL_SUCCESS);
}

TEST(ShareFabric, SHARE_29_TheExporterImportsForAnotherDevice_C18) {
  US_ON_A3();
  const DeviceScope device;
  for (const uint64_t flags : kAccessRules) {
    SCOPED_TRACE(flags);
    const MappedBlock scene;
    mark(scene.start(), kGranule, 29);
    const aclrtMemFabricHandle blob = blob_of(scene.block, flags);
    EXPECT_EQ(try_import_as(kFabric, blob), ACL_ERROR_RT_NO_PERMISSION);
    {
      const DeviceScope other(1);
      const Imported imported = import_as(kFabric, blob);
      ASSERT_EQ(imported.code, ACL_SUCCESS);
      void* const second = map_anew(imported.handle, kGranule);
      EXPECT_TRUE(is_marked(second, kGranule, 29));
      close_view({imported.handle, second, kGranule});
    }
    const MappedBlock on_host(kGranule, mapping::host_property());
    EXPECT_EQ(try_import_as(kFabric, blob_of(on_host.block, flags)), ACL_SUCCESS);
  }
}

// C16 and C18 together, as clients with one process for all devices use them.
TEST(ShareFabric, MAP_17_RESVN_08_OwnAndImportedBlocksShareANoUcRange_C16) {
  US_ON_A3();
  const DeviceScope device;
  const uint64_t start = vmm::find_free_no_uc_start(kGiB);
  US_SKIP_UNLESS_FOUND(start);
  Remote exporter(1);
  const Offer offer = exporter.call(offer_block, kGranule, kEveryone, uint8_t{17});
  const Imported foreign = import_with(Version::kV1, offer.token, 0);
  ASSERT_EQ(foreign.code, ACL_SUCCESS);
  void* range = nullptr;
  ASSERT_SUCCESS(aclrtReserveMemAddressNoUCMemory(&range, kGiB, 0, address(start), 0));
  {
    const Reservation scope(range, kGiB);
    const Block own;
    const Mapping first(scope.start(), own);
    EXPECT_SUCCESS(aclrtMapMem(scope.at(kGranule), kGranule, 0, foreign.handle, 0));
    const Mapping second(scope.at(kGranule));
    EXPECT_TRUE(is_marked(second.start(), kGranule, 17));
    const std::vector<uint8_t> bytes = pattern(2 * kGranule, 17);
    copy_in(scope.start(), bytes);
    EXPECT_TRUE(copy_out(scope.start(), bytes.size()) == bytes);
  }
  EXPECT_SUCCESS(aclrtFreePhysical(foreign.handle));
}

TEST(ShareFabric, SHARE_18_SHARE_28_DestroyedAndDamagedBlobsAreRefused) {
  US_ON_A3();
  const DeviceScope device;
  Remote importer;
  Block destroyed;
  const aclrtMemFabricHandle stale = blob_of(destroyed, kListed);
  EXPECT_EQ(list_as(kFabric, stale, {importer.id()}), ACL_SUCCESS);
  destroyed.free();
  EXPECT_EQ(list_as(kFabric, stale, {importer.id()}), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(importer.call(try_import_as, kFabric, stale), ACL_ERROR_RT_INVALID_HANDLE);

  const Block block;
  const aclrtMemFabricHandle blob = blob_of(block);
  for (size_t i = 0; i < sizeof blob.data; ++i) {
    SCOPED_TRACE(i);
    aclrtMemFabricHandle damaged = blob;
    damaged.data[i] ^= 0x10;
    const aclError code = importer.call(try_import_as, kFabric, damaged);
    // The byte may be the one that tells the type (SHARE-25).
    EXPECT_TRUE(code == ACL_ERROR_RT_INVALID_HANDLE || code == ACL_ERROR_RT_PARAM_INVALID) << code;
  }
  EXPECT_EQ(importer.call(try_import_as, kFabric, blob), ACL_SUCCESS);
}

TEST(ShareFabric, SHARE_16_SHARE_25_TheTypeMustBeThatOfTheExport) {
  US_ON_A3();
  const DeviceScope device;
  const Block fabric_block;
  const Block number_block;
  const aclrtMemFabricHandle blob = blob_of(fabric_block, kListed);
  const aclrtMemFabricHandle numbered = in_a_blob(token_of(number_block.handle(), kListed));
  Remote importer;
  ASSERT_EQ(list_as(kFabric, blob, {importer.id()}), ACL_SUCCESS);
  ASSERT_EQ(list_as(kDefault, numbered, {importer.id()}), ACL_SUCCESS);
  EXPECT_EQ(importer.call(try_import_as, kDefault, blob), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(importer.call(try_import_as, kFabric, numbered), ACL_ERROR_RT_PARAM_INVALID);
  for (const int64_t number : {0, 3, 99, -1}) {
    SCOPED_TRACE(number);
    const auto type = enum_value<aclrtMemSharedHandleType>(number);
    EXPECT_EQ(importer.call(try_import_as, type, blob), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_EQ(list_as(type, blob, {importer.id()}), ACL_ERROR_RT_PARAM_INVALID);
  }
  // Neither offer suffered.
  EXPECT_EQ(importer.call(try_import_as, kFabric, blob), ACL_SUCCESS);
  EXPECT_EQ(importer.call(try_import_as, kDefault, numbered), ACL_SUCCESS);
}

aclError try_import_fabric_without_context(aclrtMemFabricHandle blob) {
  aclError code = ACL_SUCCESS;
  on_bare_thread([&] { code = try_import_as(kFabric, blob); });
  return code;
}

TEST(ShareFabric, SHARE_27_ImportNeedsAContext) {
  US_ON_A3();
  const DeviceScope device;
  const Block block;
  const aclrtMemFabricHandle blob = blob_of(block);
  Remote importer;
  EXPECT_EQ(importer.call(try_import_fabric_without_context, blob), ACL_ERROR_RT_CONTEXT_NULL);
  EXPECT_EQ(importer.call(try_import_as, kFabric, blob), ACL_SUCCESS);
}

TEST(ShareFabric, SHARE_12_OtherProductsKnowNoFabricAtAll) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a2"});
  const DeviceScope device;
  const aclrtMemFabricHandle blob = in_a_blob(1);
  EXPECT_EQ(list_as(kFabric, blob, {own_id()}), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(try_import_as(kFabric, blob), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
}

}  // namespace
}  // namespace understudy_test::share
