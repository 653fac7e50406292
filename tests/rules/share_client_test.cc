// SPDX-License-Identifier: Apache-2.0
//
// Imported handles and the other rules: clients that move whole segments, other devices, host
// memory, mapping beside own blocks, retaining, properties, freeing.
// Covers: CLIENT-06, MAP-17, MAP-25, NOACC-01, PFREE-08, PFREE-09, PHYS-31, PROP-07, RETAIN-06,
// SHARE-35, SHARE-36, SHARE-37, SHARE-43.
#include <array>
#include <cstring>
#include <deque>
#include <vector>

#include "rules/share_objects.h"

namespace understudy_test::share {
namespace {

using ShareClient = VirtualMemoryTest;

// ---- A segment, block by block ----

constexpr size_t kBlocks = 6;
constexpr size_t kBlockSize = 20 * kMiB;
using SegmentTokens = std::array<uint64_t, kBlocks>;

struct Segment {
  std::array<aclrtDrvMemHandle, kBlocks> handles;
  void* start;
};
Segment import_segment(SegmentTokens tokens, int32_t device) {
  Segment segment{{}, reserve(kBlocks * kBlockSize, 1)};
  for (size_t i = 0; i < kBlocks; ++i) {
    const Imported imported = import_with(Version::kV1, tokens[i], device);
    EXPECT_EQ(imported.code, ACL_SUCCESS);
    segment.handles[i] = imported.handle;
    EXPECT_SUCCESS(
        aclrtMapMem(at(segment.start, i * kBlockSize), kBlockSize, 0, imported.handle, 0));
  }
  return segment;
}
void drop_segment(Segment segment) {
  for (size_t i = 0; i < kBlocks; ++i) {
    EXPECT_SUCCESS(aclrtUnmapMem(at(segment.start, i * kBlockSize)));
    EXPECT_SUCCESS(aclrtFreePhysical(segment.handles[i]));
  }
  EXPECT_SUCCESS(aclrtReleaseMemAddress(segment.start));
}
// Some bytes on both sides of every border of two blocks, in one copy each.
constexpr size_t kAcross = 64 * kKiB;
void write_across(void* start, uint8_t seed) {
  for (size_t i = 1; i < kBlocks; ++i) {
    copy_in(at(start, i * kBlockSize - kAcross / 2),
            pattern(kAcross, static_cast<uint8_t>(seed + i)));
  }
}
bool shows_across(void* start, uint8_t seed) {
  for (size_t i = 1; i < kBlocks; ++i) {
    if (copy_out(at(start, i * kBlockSize - kAcross / 2), kAcross) !=
        pattern(kAcross, static_cast<uint8_t>(seed + i))) {
      return false;
    }
  }
  return true;
}

TEST_F(ShareClient, CLIENT_06_ASegmentIsImportedBlockByBlock) {
  for (const int32_t device : {0, 1}) {
    SCOPED_TRACE(device);
    const Reservation range(kBlocks * kBlockSize);
    std::deque<Block> blocks;
    std::deque<Mapping> mappings;
    SegmentTokens tokens{};
    for (size_t i = 0; i < kBlocks; ++i) {
      blocks.emplace_back(kBlockSize);
      mappings.emplace_back(range.at(i * kBlockSize), blocks.back());
      tokens[i] = token_of(blocks.back().handle(), kEveryone);
    }
    write_across(range.start(), 6);
    Remote importer(device);
    const Segment segment = importer.call(import_segment, tokens, device);
    EXPECT_TRUE(importer.call(shows_across, segment.start, uint8_t{6}));
    importer.call(write_across, segment.start, uint8_t{60});
    EXPECT_TRUE(shows_across(range.start(), 60));
    importer.call(drop_segment, segment);
    EXPECT_TRUE(shows_across(range.start(), 60));
  }
}

// ---- Other devices, host memory ----

int32_t access_status(int32_t device, int32_t peer) {
  int32_t status = -1;
  EXPECT_SUCCESS(aclrtDevicePeerAccessStatus(device, peer, &status));
  return status;
}

TEST_F(ShareClient, SHARE_36_ImportOnAnotherDeviceEnablesPeerAccess) {
  for (const Version version : kVersions) {
    SCOPED_TRACE(static_cast<int>(version));
    const MappedBlock scene;
    mark(scene.start(), kGranule, 1);
    const uint64_t token = token_of(scene.block.handle());
    Remote importer(1);
    EXPECT_EQ(importer.call(access_status, 1, 0), 0);
    const Imported imported = importer.call(import_with, version, token, 1);
    ASSERT_EQ(imported.code, ACL_SUCCESS);
    EXPECT_EQ(importer.call(access_status, 1, 0), 1);
    void* const start = importer.call(map_anew, imported.handle, kGranule);
    EXPECT_TRUE(importer.call(is_marked, start, kGranule, uint8_t{1}));
    importer.call(mark, start, kGranule, uint8_t{2});
    EXPECT_TRUE(is_marked(scene.start(), kGranule, 2));
    importer.call(close_view, View{imported.handle, start, kGranule});
  }
}

TEST_F(ShareClient, SHARE_36_TheDeviceNeedNotBeTheCurrentOne) {
  const MappedBlock scene;
  const uint64_t token = token_of(scene.block.handle());
  Remote importer(0);
  RemoteView view(importer, token, kGranule, 1);
  view.write(36);
  EXPECT_TRUE(is_marked(scene.start(), kGranule, 36));
}

TEST(ShareClientWithoutPeers, SHARE_37_OtherDevicesAreOutOfReach) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "200i"});
  const DeviceScope device;
  const MappedBlock scene;
  const uint64_t token = token_of(scene.block.handle());
  Remote here(0);
  Remote there(1);
  EXPECT_EQ(there.import(token, Version::kV1, 1), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(there.import(token, Version::kV2, 1), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  RemoteView view(here, token);
  view.write(37);
  EXPECT_TRUE(is_marked(scene.start(), kGranule, 37));
}

void fill_by_cpu(void* start, size_t size, uint8_t seed) {
  memcpy(start, pattern(size, seed).data(), size);
}
bool is_filled_by_cpu(const void* start, size_t size, uint8_t seed) {
  return memcmp(start, pattern(size, seed).data(), size) == 0;
}

TEST_F(ShareClient, SHARE_35_SHARE_43_HostBlocksAreSharedToo) {
  for (const aclrtMemLocationType location : vmm::kHostLocations) {
    SCOPED_TRACE(location);
    const MappedBlock scene(kGranule, block_property(ACL_HBM_MEM_HUGE, location));
    fill_by_cpu(scene.start(), kGranule, 1);
    Remote importer;
    RemoteView view(importer, token_of(scene.block.handle()));
    EXPECT_TRUE(importer.call(is_filled_by_cpu, view.start(), kGranule, uint8_t{1}));
    importer.call(fill_by_cpu, view.start(), kGranule, uint8_t{2});
    EXPECT_TRUE(is_filled_by_cpu(scene.start(), kGranule, 2));
  }
}

// ---- Mapping beside own blocks ----

// Runs in the importer, with a handle it imported.
void expect_no_mixing(aclrtDrvMemHandle imported) {
  for (const mapping::MapCall& map : mapping::kMapCalls) {
    SCOPED_TRACE(map.name);
    const Reservation range(2 * kGranule);
    const Block own;
    {
      const Mapping first(range.start(), own, map.call);
      EXPECT_TRUE(
          map_is_refused(map, ACL_ERROR_RT_PARAM_INVALID, range.at(kGranule), kGranule, imported));
      EXPECT_FALSE(mapping::is_mapped(range.at(kGranule)));
    }
    EXPECT_SUCCESS(map.call(range.at(kGranule), kGranule, 0, imported, 0));
    const Mapping second(range.at(kGranule));
    EXPECT_TRUE(
        map_is_refused(map, ACL_ERROR_RT_PARAM_INVALID, range.start(), kGranule, own.handle()));
    EXPECT_FALSE(mapping::is_mapped(range.start()));
  }
}

TEST_F(ShareClient, MAP_17_NOACC_01_OwnAndImportedBlocksDoNotShareAReservation) {
  const MappedBlock scene;
  mark(scene.start(), kGranule, 17);
  Remote importer;
  RemoteView view(importer, token_of(scene.block.handle()));
  importer.call(expect_no_mixing, view.handle());
  EXPECT_TRUE(view.shows(17));
  EXPECT_TRUE(is_marked(scene.start(), kGranule, 17));
}

// Runs in the importer: one handle by each version, side by side.
void expect_versions_to_mix(uint64_t first, uint64_t second) {
  const Imported by_v1 = import_with(Version::kV1, first, 0);
  const Imported by_v2 = import_with(Version::kV2, second, 0);
  ASSERT_EQ(by_v1.code, ACL_SUCCESS);
  ASSERT_EQ(by_v2.code, ACL_SUCCESS);
  {
    const Reservation range(2 * kGranule);
    EXPECT_SUCCESS(aclrtMapMem(range.start(), kGranule, 0, by_v1.handle, 0));
    const Mapping left(range.start());
    EXPECT_SUCCESS(aclrtMapMem(range.at(kGranule), kGranule, 0, by_v2.handle, 0));
    const Mapping right(range.at(kGranule));
    EXPECT_TRUE(is_marked(left.start(), kGranule, 25));
    EXPECT_TRUE(is_marked(right.start(), kGranule, 52));
  }
  EXPECT_SUCCESS(aclrtFreePhysical(by_v1.handle));
  EXPECT_SUCCESS(aclrtFreePhysical(by_v2.handle));
}

TEST_F(ShareClient, MAP_25_HandlesImportedByEitherVersionShareAReservation) {
  const MappedBlock first;
  const MappedBlock second;
  mark(first.start(), kGranule, 25);
  mark(second.start(), kGranule, 52);
  Remote importer;
  importer.call(expect_versions_to_mix, token_of(first.block.handle()),
                token_of(second.block.handle()));
}

// ---- Freeing, retaining, asking ----

TEST_F(ShareClient, PFREE_08_FreeingAnExportedHandleEndsItsOffer) {
  MappedBlock scene;
  mark(scene.start(), kGranule, 8);
  const uint64_t token = token_of(scene.block.handle());
  Remote importer;
  Remote late;
  RemoteView view(importer, token);
  scene.block.free();
  EXPECT_EQ(late.import(token), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(list_with(Version::kV1, token, {own_id()}), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_TRUE(view.shows(8));
  view.write(9);
  EXPECT_TRUE(is_marked(scene.start(), kGranule, 9));
}

TEST_F(ShareClient, PFREE_09_FreeingAnImportedHandleConcernsThisProcessOnly) {
  const MappedBlock scene;
  const uint64_t token = token_of(scene.block.handle());
  Remote first;
  Remote second;
  RemoteView of_first(first, token);
  RemoteView of_second(second, token);
  const FiguresStay figures;
  const View left = of_first.give_up();
  EXPECT_EQ(first.call(free_handle, left.handle), ACL_SUCCESS);
  EXPECT_EQ(first.call(free_handle, left.handle), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(first.call(unmap, left.start), ACL_SUCCESS);
  EXPECT_EQ(first.call(release, left.start), ACL_SUCCESS);
  of_second.write(9);
  EXPECT_TRUE(is_marked(scene.start(), kGranule, 9));
  EXPECT_EQ(first.import(token), ACL_SUCCESS) << "the offer stands";
}

aclrtDrvMemHandle retain_mapped(void* start) {
  aclrtDrvMemHandle handle = nullptr;
  EXPECT_SUCCESS(aclrtMemRetainAllocationHandle(start, &handle));
  return handle;
}

TEST_F(ShareClient, RETAIN_06_ImportedBlocksCanBeRetained) {
  const Offer offer = offer_block(kGranule, kEveryone, 6);
  Remote importer;
  RemoteView view(importer, offer.token);
  const View left = view.give_up();
  EXPECT_EQ(importer.call(retain_mapped, left.start), left.handle);
  const size_t held = huge_bytes_free();
  close_view(offer.view);
  EXPECT_EQ(importer.call(unmap, left.start), ACL_SUCCESS);
  EXPECT_EQ(importer.call(release, left.start), ACL_SUCCESS);
  EXPECT_EQ(importer.call(free_handle, left.handle), ACL_SUCCESS);
  EXPECT_EQ(huge_bytes_free(), held) << "the retained reference holds the block";
  void* const start = importer.call(map_anew, left.handle, kGranule);
  EXPECT_TRUE(importer.call(is_marked, start, kGranule, uint8_t{6}));
  importer.call(close_view, View{left.handle, start, kGranule});
  EXPECT_EQ(importer.call(free_handle, left.handle), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(huge_bytes_free(), held + kGranule);
}

aclrtPhysicalMemProp property_of(aclrtDrvMemHandle handle) {
  aclrtPhysicalMemProp property;
  memset(&property, 0x5a, sizeof property);
  EXPECT_SUCCESS(aclrtMemGetAllocationPropertiesFromHandle(handle, &property));
  return property;
}

// Importers on several devices are told what the exporter is told.
class ImportersOnTwoDevices {
 public:
  void expect_property_of(const Block& block, uint32_t owner) {
    const uint64_t token = token_of(block.handle());
    const aclrtPhysicalMemProp own = property_of(block.handle());
    for (int32_t device = 0; device < 2; ++device) {
      SCOPED_TRACE(device);
      Remote& importer = device == 0 ? on_device_0_ : on_device_1_;
      const Imported imported = importer.call(import_with, Version::kV1, token, device);
      ASSERT_EQ(imported.code, ACL_SUCCESS);
      const aclrtPhysicalMemProp seen = importer.call(property_of, imported.handle);
      EXPECT_TRUE(vmm::same_property(own, seen));
      EXPECT_EQ(seen.location.id, owner);
      EXPECT_EQ(importer.call(free_handle, imported.handle), ACL_SUCCESS);
    }
  }

 private:
  Remote on_device_0_{0};
  Remote on_device_1_{1};
};

TEST_F(ShareClient, PROP_07_SHARE_43_ImportedHandleTellsTheExportersProperties) {
  ImportersOnTwoDevices importers;
  for (const aclrtMemAttr attribute : vmm::kDeviceAttributes) {
    SCOPED_TRACE(attribute);
    for (const uint32_t owner : {0u, 1u}) {
      importers.expect_property_of(
          Block(kGranule, block_property(attribute, ACL_MEM_LOCATION_TYPE_DEVICE, owner)), owner);
    }
  }
  for (const aclrtMemLocationType location : vmm::kHostLocations) {
    SCOPED_TRACE(location);
    importers.expect_property_of(Block(kGranule, block_property(ACL_MEM_HUGE, location)), 0);
  }
}

TEST_F(ShareClient, PHYS_31_ABlockThatWasNeverMappedIsSharedAndAsked) {
  const Block block(2 * kGranule);
  const aclrtPhysicalMemProp property = property_of(block.handle());
  EXPECT_EQ(property.memAttr, ACL_HBM_MEM_HUGE);
  EXPECT_EQ(property.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
  const uint64_t token = token_of(block.handle());
  Remote importer;
  RemoteView view(importer, token, block.size());
  view.write(31);
  // Mapped here for the first time after the importer used it.
  const Reservation range(block.size());
  const Mapping mapping(range.start(), block);
  EXPECT_TRUE(is_marked(mapping.start(), block.size(), 31));
}

}  // namespace
}  // namespace understudy_test::share
