// SPDX-License-Identifier: Apache-2.0
//
// aclrtMemImportFromShareableHandle and its V2 with the default type: who gets in, and what the
// imported handle can do.
// Covers: MAP-17, SHARE-24, SHARE-25, SHARE-26, SHARE-27, SHARE-28, SHARE-29, SHARE-30, SHARE-31,
// SHARE-32, SHARE-33, SHARE-34, SHARE-35, SHARE-38, SHARE-39, SHARE-43.
#include <climits>
#include <cstring>
#include <vector>

#include "rules/share_objects.h"

namespace understudy_test::share {
namespace {

using ShareImport = VirtualMemoryTest;

// An import with arguments that try_import cannot have.
aclError import_into_nothing(Version version, uint64_t token) {
  const bool v1 = version == Version::kV1;
  const CheckedCall call("aclrtMemImportFromShareableHandle");
  return call.returned(v1 ? aclrtMemImportFromShareableHandle(token, 0, nullptr)
                          : aclrtMemImportFromShareableHandleV2(
                                &token, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT, 0, nullptr));
}
aclError import_v2(uint64_t token, int64_t type, uint64_t flags) {
  aclrtMemFabricHandle room{};  // whoever reads a larger handle must find it
  memcpy(&room, &token, sizeof token);
  aclrtDrvMemHandle handle = untouched();
  const CheckedCall call("aclrtMemImportFromShareableHandleV2");
  const aclError code = call.returned(aclrtMemImportFromShareableHandleV2(
      &room, enum_value<aclrtMemSharedHandleType>(type), flags, &handle));
  EXPECT_EQ(handle, untouched());
  return code;
}
aclError import_from_nothing(int64_t type) {
  aclrtDrvMemHandle handle = untouched();
  const CheckedCall call("aclrtMemImportFromShareableHandleV2");
  const aclError code = call.returned(aclrtMemImportFromShareableHandleV2(
      nullptr, enum_value<aclrtMemSharedHandleType>(type), 0, &handle));
  EXPECT_EQ(handle, untouched());
  return code;
}

TEST_F(ShareImport, SHARE_24_MissingArgumentsAndFlagsAreRefused) {
  const Block block;
  const uint64_t token = token_of(block.handle());
  Remote bound;
  Remote unbound(kNoDevice);  // these checks come before the one for a context
  for (Remote* importer : {&bound, &unbound}) {
    for (const Version version : kVersions) {
      EXPECT_EQ(importer->call(import_into_nothing, version, token), ACL_ERROR_INVALID_PARAM);
      EXPECT_EQ(importer->call(import_into_nothing, version, uint64_t{1}), ACL_ERROR_INVALID_PARAM);
    }
    for (const int64_t type : {1, 0}) {
      EXPECT_EQ(importer->call(import_from_nothing, type), ACL_ERROR_INVALID_PARAM);
      for (const uint64_t flags : {uint64_t{1}, uint64_t{2}, uint64_t{1} << 63, UINT64_MAX}) {
        EXPECT_EQ(importer->call(import_v2, token, type, flags), ACL_ERROR_INVALID_PARAM);
      }
    }
  }
  EXPECT_EQ(bound.import(token), ACL_SUCCESS);
}

TEST_F(ShareImport, SHARE_25_UnknownShareTypesAreRefused) {
  const Block block;
  const uint64_t token = token_of(block.handle());
  Remote importer;
  for (const int64_t type : {0, 3, 4, 99, -1}) {
    SCOPED_TRACE(type);
    EXPECT_EQ(importer.call(import_v2, token, type, uint64_t{0}), ACL_ERROR_RT_PARAM_INVALID);
  }
  EXPECT_EQ(importer.import(token, Version::kV2), ACL_SUCCESS);
}

TEST_F(ShareImport, SHARE_26_UnknownDevicesAreRefused) {
  const Block block;
  const uint64_t token = token_of(block.handle());
  Remote importer;
  const auto count = static_cast<int32_t>(vmm::device_count());
  for (const int32_t device : {-1, INT_MIN, count, count + 1, INT_MAX}) {
    SCOPED_TRACE(device);
    EXPECT_EQ(importer.import(token, Version::kV1, device), ACL_ERROR_RT_INVALID_DEVICEID);
    // An argument is looked at before the state of the handle.
    EXPECT_EQ(importer.import(1, Version::kV1, device), ACL_ERROR_RT_INVALID_DEVICEID);
  }
  EXPECT_EQ(importer.import(token, Version::kV1, count - 1), ACL_SUCCESS);
}

TEST_F(ShareImport, SHARE_27_ACurrentContextIsNeeded) {
  const Block block;
  const uint64_t token = token_of(block.handle());
  Remote bound;
  Remote unbound(kNoDevice);
  for (const Version version : kVersions) {
    SCOPED_TRACE(static_cast<int>(version));
    for (const uint64_t value : {token, uint64_t{1}}) {
      EXPECT_EQ(bound.call(try_import_without_context, version, value, 0),
                ACL_ERROR_RT_CONTEXT_NULL);
      EXPECT_EQ(unbound.import(value, version), ACL_ERROR_RT_CONTEXT_NULL);
    }
    EXPECT_EQ(bound.import(token, version), ACL_SUCCESS);
  }
  unbound.call(bind, 0);
  EXPECT_EQ(unbound.import(token), ACL_SUCCESS);
}

TEST_F(ShareImport, SHARE_28_ValuesNeverIssuedAreRefused) {
  const Block block;
  const uint64_t token = token_of(block.handle());
  Remote importer;
  for (const Version version : kVersions) {
    for (const uint64_t value :
         {uint64_t{0}, uint64_t{1}, uint64_t{0x1000}, uint64_t{1} << 32, uint64_t{1} << 63,
          UINT64_MAX, token + 1, token - 1, ~token, number(block.handle())}) {
      if (value == token) continue;
      SCOPED_TRACE(value);
      EXPECT_EQ(importer.import(value, version), ACL_ERROR_RT_INVALID_HANDLE);
      EXPECT_EQ(try_import(version, value, 0), ACL_ERROR_RT_INVALID_HANDLE);
    }
  }
  EXPECT_EQ(importer.import(token), ACL_SUCCESS);
}

TEST_F(ShareImport, SHARE_28_WhatTheExporterFreedIsGone) {
  for (const uint64_t flags : kAccessRules) {
    SCOPED_TRACE(flags);
    Remote importer;
    MappedBlock scene;
    const uint64_t token = token_of(scene.block.handle(), flags);
    if (flags == kListed) list(token, {importer.id()});
    EXPECT_EQ(importer.import(token), ACL_SUCCESS);
    scene.block.free();  // the mapping stays, the offer does not
    for (const Version version : kVersions) {
      EXPECT_EQ(importer.import(token, version), ACL_ERROR_RT_INVALID_HANDLE);
      EXPECT_EQ(try_import(version, token, 0), ACL_ERROR_RT_INVALID_HANDLE);
    }
  }
}

TEST_F(ShareImport, SHARE_28_WhatAnEndedExporterOfferedIsGone) {
  for (const uint64_t flags : kAccessRules) {
    for (const bool killed : {false, true}) {
      SCOPED_TRACE(testing::Message() << "flags " << flags << (killed ? ", killed" : ""));
      Remote exporter;
      const Offer offer = exporter.call(offer_block, kGranule, flags, uint8_t{1});
      if (flags == kListed) exporter.call(list, offer.token, Ids{own_id()});
      EXPECT_EQ(try_import(Version::kV1, offer.token, 0), ACL_SUCCESS);
      killed ? exporter.kill() : exporter.finish();
      for (const Version version : kVersions) {
        EXPECT_EQ(try_import(version, offer.token, 0), ACL_ERROR_RT_INVALID_HANDLE);
      }
    }
  }
}

TEST_F(ShareImport, SHARE_29_TheExporterItselfIsRefusedOnTheBlocksDevice) {
  for (const uint64_t flags : kAccessRules) {
    SCOPED_TRACE(flags);
    const MappedBlock scene;
    mark(scene.start(), kGranule, 29);
    const uint64_t token = token_of(scene.block.handle(), flags);
    if (flags == kListed) list(token, {own_id()});
    for (const Version version : kVersions) {
      EXPECT_EQ(try_import(version, token, 0), ACL_ERROR_RT_NO_PERMISSION);
    }
    on_bare_thread([&] {
      bind(0);
      EXPECT_EQ(try_import(Version::kV1, token, 0), ACL_ERROR_RT_NO_PERMISSION);
    });
    EXPECT_TRUE(is_marked(scene.start(), kGranule, 29));
  }
}

// A block of this process, imported here for a device that it is not on.
void expect_second_view(const MappedBlock& scene, const Imported& imported) {
  ASSERT_EQ(imported.code, ACL_SUCCESS);
  mark(scene.start(), kGranule, 18);
  void* const second = map_anew(imported.handle, kGranule);
  EXPECT_TRUE(is_marked(second, kGranule, 18));
  mark(second, kGranule, 81);
  EXPECT_TRUE(is_marked(scene.start(), kGranule, 81));
  close_view({imported.handle, second, kGranule});
  EXPECT_TRUE(is_marked(scene.start(), kGranule, 81));
}

TEST_F(ShareImport, SHARE_29_SHARE_35_TheExporterImportsForAnotherDevice_C18) {
  for (const uint64_t flags : kAccessRules) {
    SCOPED_TRACE(flags);
    const MappedBlock scene;
    const uint64_t token = token_of(scene.block.handle(), flags);
    expect_second_view(scene, import_with(Version::kV1, token, 1));
    on_bare_thread([&] {
      const DeviceScope other(1);
      expect_second_view(scene, import_with(Version::kV2, token, 1));
    });
    // The rest of the rules holds: one import at a time, and none on the block's own device.
    const Imported first = import_with(Version::kV1, token, 1);
    EXPECT_EQ(first.code, ACL_SUCCESS);
    EXPECT_EQ(try_import(Version::kV1, token, 2), ACL_ERROR_RT_INVALID_HANDLE);
    EXPECT_EQ(try_import(Version::kV1, token, 0), ACL_ERROR_RT_NO_PERMISSION);
    EXPECT_SUCCESS(aclrtFreePhysical(first.handle));
    EXPECT_EQ(try_import(Version::kV1, token, 2), ACL_SUCCESS);
  }
}

TEST_F(ShareImport, SHARE_29_SHARE_43_TheExporterImportsHostBlocksOntoDevices_C18) {
  for (const aclrtMemLocationType location :
       {ACL_MEM_LOCATION_TYPE_HOST, ACL_MEM_LOCATION_TYPE_HOST_NUMA}) {
    for (const Version version : kVersions) {
      SCOPED_TRACE(testing::Message()
                   << "location " << location << ", version " << static_cast<int>(version));
      const MappedBlock scene(kGranule, mapping::host_property(ACL_HBM_MEM_HUGE, location));
      expect_second_view(scene, import_with(version, token_of(scene.block.handle(), kListed), 0));
    }
  }
}

TEST_F(ShareImport, SHARE_38_SHARE_39_TheExportersOwnImportKeepsTheBlock_C18) {
  const size_t before = huge_bytes_free();
  aclrtDrvMemHandle imported = nullptr;
  {
    MappedBlock scene;
    mark(scene.start(), kGranule, 38);
    const uint64_t token = token_of(scene.block.handle());
    imported = import_with(Version::kV1, token, 1).handle;
    scene.block.free();
    EXPECT_EQ(try_import(Version::kV1, token, 1), ACL_ERROR_RT_INVALID_HANDLE);
  }
  EXPECT_EQ(huge_bytes_free(), before - kGranule);
  void* const start = map_anew(imported, kGranule);
  EXPECT_TRUE(is_marked(start, kGranule, 38));
  close_view({imported, start, kGranule});
  EXPECT_EQ(huge_bytes_free(), before);
}

// MAP-17 takes the import for one like any other.
TEST_F(ShareImport, MAP_17_TheExportersOwnImportIsImported_C18) {
  const Block block;
  const Block beside(kGranule, block_property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, 1));
  const aclrtDrvMemHandle imported = import_with(Version::kV1, token_of(block.handle()), 1).handle;
  {
    const Reservation range(2 * kGranule);
    const Mapping first(range.start(), beside);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtMapMem(range.at(kGranule), kGranule, 0, imported, 0));
  }
  EXPECT_SUCCESS(aclrtFreePhysical(imported));
}

TEST_F(ShareImport, SHARE_30_SHARE_31_TheWhitelistDecides) {
  for (const Version version : kVersions) {
    SCOPED_TRACE(static_cast<int>(version));
    const MappedBlock scene;
    mark(scene.start(), kGranule, 30);
    const uint64_t token = token_of(scene.block.handle(), kListed);
    Remote importer;
    Remote stranger;
    EXPECT_EQ(importer.import(token, version), ACL_ERROR_RT_NO_PERMISSION);
    list(token, {importer.id()});
    EXPECT_EQ(importer.import(token, version), ACL_SUCCESS);
    EXPECT_EQ(stranger.import(token, version), ACL_ERROR_RT_NO_PERMISSION);
    {
      RemoteView view(importer, token);
      EXPECT_TRUE(view.shows(30));
      EXPECT_EQ(stranger.import(token, version), ACL_ERROR_RT_NO_PERMISSION);
    }
    EXPECT_EQ(importer.import(token, version), ACL_SUCCESS) << "an entry is not used up";
  }
}

TEST_F(ShareImport, SHARE_32_WithoutWhitelistEveryOtherProcessGetsIn) {
  const Block block;
  const uint64_t token = token_of(block.handle(), kEveryone);
  Remote early;
  EXPECT_EQ(early.import(token, Version::kV1), ACL_SUCCESS);
  early.finish();
  Remote late;
  EXPECT_EQ(late.import(token, Version::kV2), ACL_SUCCESS);
}

TEST_F(ShareImport, SHARE_33_SecondImportIsRefusedUntilTheFirstIsFreed) {
  const Block block;
  const uint64_t token = token_of(block.handle());
  Remote importer;
  for (const Version version : kVersions) {
    SCOPED_TRACE(static_cast<int>(version));
    const Imported first = importer.call(import_with, version, token, 0);
    ASSERT_EQ(first.code, ACL_SUCCESS);
    EXPECT_EQ(importer.import(token, Version::kV1), ACL_ERROR_RT_INVALID_HANDLE);
    EXPECT_EQ(importer.import(token, Version::kV2), ACL_ERROR_RT_INVALID_HANDLE);
    EXPECT_EQ(importer.import(token, Version::kV1, 1), ACL_ERROR_RT_INVALID_HANDLE);
    void* const start = importer.call(map_anew, first.handle, kGranule);
    EXPECT_EQ(importer.import(token, version), ACL_ERROR_RT_INVALID_HANDLE);
    importer.call(close_view, View{first.handle, start, kGranule});
    EXPECT_EQ(importer.import(token, version), ACL_SUCCESS);
  }
}

aclrtDrvMemHandle retain(void* start) {
  aclrtDrvMemHandle handle = nullptr;
  EXPECT_SUCCESS(aclrtMemRetainAllocationHandle(start, &handle));
  return handle;
}

TEST_F(ShareImport, SHARE_33_ARetainedHandleStillLives) {
  const Block block;
  const uint64_t token = token_of(block.handle());
  Remote importer;
  RemoteView view(importer, token);
  EXPECT_EQ(importer.call(retain, view.start()), view.handle());
  EXPECT_EQ(importer.call(free_handle, view.handle()), ACL_SUCCESS);
  EXPECT_EQ(importer.import(token), ACL_ERROR_RT_INVALID_HANDLE);
  view.close();
  EXPECT_EQ(importer.import(token), ACL_SUCCESS);
}

TEST_F(ShareImport, SHARE_33_AMappingAloneIsNoHandle) {
  const MappedBlock scene;
  const uint64_t token = token_of(scene.block.handle());
  Remote importer;
  RemoteView view(importer, token);
  const View left = view.give_up();
  EXPECT_EQ(importer.call(free_handle, left.handle), ACL_SUCCESS);
  {
    RemoteView again(importer, token);
    again.write(33);
    EXPECT_TRUE(importer.call(is_marked, left.start, kGranule, uint8_t{33}));
    EXPECT_TRUE(is_marked(scene.start(), kGranule, 33));
  }
  EXPECT_EQ(importer.call(unmap, left.start), ACL_SUCCESS);
  EXPECT_EQ(importer.call(release, left.start), ACL_SUCCESS);
}

TEST_F(ShareImport, SHARE_34_SeveralProcessesImportOneBlock) {
  const MappedBlock scene;
  const uint64_t token = token_of(scene.block.handle());
  Remote first;
  Remote second;
  Remote third;
  RemoteView of_first(first, token);
  RemoteView of_second(second, token);
  RemoteView of_third(third, token);
  uint8_t seed = 34;
  for (RemoteView* writer : {&of_first, &of_second, &of_third}) {
    writer->write(++seed);
    for (RemoteView* reader : {&of_first, &of_second, &of_third}) {
      EXPECT_TRUE(reader->shows(seed));
    }
    EXPECT_TRUE(is_marked(scene.start(), kGranule, seed));
  }
}

aclError try_map(aclrtDrvMemHandle handle, size_t size) {
  const Reservation range(32 * kMiB);
  const aclError code = aclrtMapMem(range.start(), size, 0, handle, 0);
  if (code == ACL_SUCCESS) {
    EXPECT_SUCCESS(aclrtUnmapMem(range.start()));
  }
  return code;
}
void fill(void* start, size_t size, uint8_t seed) { copy_in(start, pattern(size, seed)); }
bool is_filled(const void* start, size_t size, uint8_t seed) {
  return copy_out(start, size) == pattern(size, seed);
}

TEST_F(ShareImport, SHARE_35_SizeAndEveryByteAreTheExporters) {
  Remote importer;
  for (const size_t size : {kGranule, 3 * kGranule, 10 * kGranule}) {
    SCOPED_TRACE(size);
    const Block neighbour;  // so that the shared block does not begin where the memory does
    const MappedBlock scene(size);
    fill(scene.start(), size, 1);
    RemoteView view(importer, token_of(scene.block.handle()), size);
    EXPECT_TRUE(importer.call(is_filled, view.start(), size, uint8_t{1}));
    importer.call(fill, view.start(), size, uint8_t{2});
    EXPECT_TRUE(is_filled(scene.start(), size, 2));
    fill(scene.start(), size, 3);
    EXPECT_TRUE(importer.call(is_filled, view.start(), size, uint8_t{3}));
    for (const size_t wrong : {size - kGranule, size + kGranule, size - 4 * kKiB, size + 1}) {
      if (wrong == 0) continue;
      EXPECT_EQ(importer.call(try_map, view.handle(), wrong), ACL_ERROR_RT_PARAM_INVALID);
    }
    EXPECT_EQ(importer.call(try_map, view.handle(), size), ACL_SUCCESS);
  }
}

}  // namespace
}  // namespace understudy_test::share
