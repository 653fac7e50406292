// SPDX-License-Identifier: Apache-2.0
//
// aclrtMapMem and aclrtMemMapNoAccess: where blocks may lie, beside which others, and what mapping
// leaves as it was.
// Covers: MAP-11, MAP-12, MAP-15, MAP-16, MAP-18, MAP-21, MAP-22, NOACC-01.
#include "rules/mapping_objects.h"

namespace understudy_test::mapping {
namespace {

class MapPlacement : public MapCallTest {};
INSTANTIATE_TEST_SUITE_P(, MapPlacement, both_map_calls(), name_of);

TEST_P(MapPlacement, MAP_11_NOACC_01_OverlapIsRefusedAndKeepsTheOldBytes) {
  Reservation range(8 * kGranule);
  Block old(2 * kGranule);
  Mapping mapping(range.at(2 * kGranule), old);
  mark(mapping.start(), old.size(), 1);

  struct Attempt {
    size_t offset;
    size_t size;
  };
  for (const Attempt attempt : {Attempt{2, 1}, Attempt{3, 1}, Attempt{2, 2}, Attempt{1, 2},
                                Attempt{3, 2}, Attempt{1, 4}, Attempt{0, 8}}) {
    SCOPED_TRACE(testing::Message() << attempt.size << " granules at granule " << attempt.offset);
    Block block(attempt.size * kGranule);
    EXPECT_TRUE(is_refused(ACL_ERROR_RT_PARAM_INVALID, range.at(attempt.offset * kGranule),
                           block.size(), block.handle()));
  }
  EXPECT_TRUE(is_refused(ACL_ERROR_RT_PARAM_INVALID, mapping.start(), old.size(), old.handle()));

  EXPECT_TRUE(is_marked(mapping.start(), old.size(), 1));
  for (const size_t granule : {0u, 1u, 4u, 5u, 6u, 7u})
    EXPECT_FALSE(is_mapped(range.at(granule * kGranule)));
}

TEST_P(MapPlacement, MAP_11_NOACC_01_TouchingNeighboursDoNotOverlap) {
  Reservation range(3 * kGranule);
  Block middle;
  Block left;
  Block right;
  Mapping in_the_middle(range.at(kGranule), middle);
  mark(in_the_middle.start(), kGranule, 1);
  Mapping to_the_left(range.start(), left, GetParam().call);
  Mapping to_the_right(range.at(2 * kGranule), right, GetParam().call);
  EXPECT_TRUE(is_marked(in_the_middle.start(), kGranule, 1));
}

TEST_P(MapPlacement, MAP_11_NOACC_01_MappingWithoutAccessIsOverlappedByNobody) {
  MappedBlock scene(kGranule, block_property(), aclrtMemMapNoAccess);
  Block block;
  EXPECT_TRUE(is_refused(ACL_ERROR_RT_PARAM_INVALID, scene.start(), kGranule, block.handle()));
}

TEST_P(MapPlacement, MAP_12_NOACC_01_StartAndAlignedOffsetsBothWork) {
  Reservation range(8 * kGranule);
  for (const size_t granule : {0u, 1u, 3u, 7u}) {
    SCOPED_TRACE(granule);
    Block block;
    Mapping mapping(range.at(granule * kGranule), block, GetParam().call);
    let_owner_in(mapping.start(), kGranule);
    mark(mapping.start(), kGranule, static_cast<uint8_t>(granule));
    EXPECT_TRUE(is_marked(mapping.start(), kGranule, static_cast<uint8_t>(granule)));
  }
}

TEST_P(MapPlacement, MAP_15_NOACC_01_TwoDevicesInOneReservationAreRefused) {
  Reservation range(2 * kGranule);
  Block here;
  Block there(kGranule, block_property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, 1));
  Mapping mapping(range.start(), here, GetParam().call);
  let_owner_in(mapping.start(), kGranule);
  mark(mapping.start(), kGranule, 1);

  EXPECT_TRUE(is_refused(ACL_ERROR_RT_PARAM_INVALID, range.at(kGranule), kGranule, there.handle()));
  EXPECT_FALSE(is_mapped(range.at(kGranule)));
  EXPECT_TRUE(is_marked(mapping.start(), kGranule, 1));

  Reservation of_its_own(kGranule);
  Mapping elsewhere(of_its_own.start(), there, GetParam().call);
}

aclrtPhysicalMemProp on_device_1() {
  return block_property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, 1);
}

TEST(MapDeviceBinding, MAP_16_NOACC_01_EmptiedReservationAcceptsAnotherDeviceWhereTheSwitchSaysSo) {
  US_FRESH_PROCESS({"UNDERSTUDY_DEVICE_BINDING", "while_mapped"});
  DeviceScope device;
  for (const MapCall& map : kMapCalls) {
    SCOPED_TRACE(map.name);
    Reservation range(2 * kGranule);
    Block first;
    Block second;
    Block there(kGranule, on_device_1());
    Mapping first_mapping(range.start(), first, map.call);
    Mapping second_mapping(range.at(kGranule), second, map.call);

    first_mapping.unmap();
    EXPECT_TRUE(
        map_is_refused(map, ACL_ERROR_RT_PARAM_INVALID, range.start(), kGranule, there.handle()));
    second_mapping.unmap();

    Mapping other_device(range.start(), there, map.call);
    EXPECT_TRUE(map_is_refused(map, ACL_ERROR_RT_PARAM_INVALID, range.at(kGranule), kGranule,
                               first.handle()));
  }
}

// By default, and where the switch says so.
void expect_bound_for_life() {
  DeviceScope device;
  for (const MapCall& map : kMapCalls) {
    SCOPED_TRACE(map.name);
    Block here;
    Block there(kGranule, on_device_1());
    Block on_host(kGranule, host_property());
    {
      Reservation range(kGranule);
      // What is refused binds nothing.
      EXPECT_TRUE(map_is_refused(map, ACL_ERROR_RT_PARAM_INVALID, range.start(), 2 * kGranule,
                                 there.handle()));
      Mapping(range.start(), here, map.call).unmap();
      for (const Block* other : {&there, &on_host}) {
        EXPECT_TRUE(map_is_refused(map, ACL_ERROR_RT_PARAM_INVALID, range.start(), kGranule,
                                   other->handle()));
        EXPECT_FALSE(is_mapped(range.start()));
      }
      Mapping again(range.start(), here, map.call);
    }
    Reservation fresh(kGranule);
    Mapping other_device(fresh.start(), there, map.call);
  }
}

TEST(MapDeviceBinding, MAP_16_NOACC_01_ForLifeTheFirstDeviceStaysTheOnlyOne) {
  US_FRESH_PROCESS({"UNDERSTUDY_DEVICE_BINDING", "for_life"});
  expect_bound_for_life();
}

TEST(MapDeviceBinding, MAP_16_NOACC_01_ReservationsAreBoundForLifeByDefault_C17) {
  US_FRESH_PROCESS();
  expect_bound_for_life();
}

TEST_P(MapPlacement, MAP_16_NOACC_01_TheSentenceNamesTheDevices_C17) {
  Reservation range(kGranule);
  Block here;
  Block there(kGranule, on_device_1());
  Mapping(range.start(), here, GetParam().call).unmap();
  EXPECT_EQ(GetParam().call(range.start(), kGranule, 0, there.handle(), 0),
            ACL_ERROR_RT_PARAM_INVALID);
  const std::string text = recent_error();
  EXPECT_NE(text.find("device 0 until it is released"), std::string::npos) << text;
  EXPECT_NE(text.find("device 1"), std::string::npos) << text;
}

TEST_P(MapPlacement, MAP_18_NOACC_01_HostAndDeviceBlocksDoNotShareAReservation) {
  for (const aclrtMemLocationType location :
       {ACL_MEM_LOCATION_TYPE_HOST, ACL_MEM_LOCATION_TYPE_HOST_NUMA}) {
    SCOPED_TRACE(location);
    Block on_device;
    Block on_host(kGranule, host_property(ACL_HBM_MEM_HUGE, location));
    {
      Reservation range(2 * kGranule);
      Mapping mapping(range.start(), on_device, GetParam().call);
      EXPECT_TRUE(
          is_refused(ACL_ERROR_RT_PARAM_INVALID, range.at(kGranule), kGranule, on_host.handle()));
      EXPECT_FALSE(is_mapped(range.at(kGranule)));
    }
    Reservation range(2 * kGranule);
    Mapping mapping(range.start(), on_host, GetParam().call);
    EXPECT_TRUE(
        is_refused(ACL_ERROR_RT_PARAM_INVALID, range.at(kGranule), kGranule, on_device.handle()));
    EXPECT_FALSE(is_mapped(range.at(kGranule)));

    Block also_on_host(kGranule, host_property(ACL_HBM_MEM_HUGE, location));
    Mapping beside(range.at(kGranule), also_on_host, GetParam().call);
  }
}

TEST_P(MapPlacement, MAP_21_NOACC_01_OneHandleAtSeveralPlacesIsOneMemory) {
  Reservation range(4 * kGranule);
  Reservation elsewhere(kGranule);
  Block block;
  Mapping first(range.start(), block, GetParam().call);
  Mapping second(range.at(2 * kGranule), block, GetParam().call);
  Mapping third(elsewhere.start(), block, GetParam().call);

  uint8_t seed = 0;
  for (const Mapping* writer : {&first, &second, &third}) {
    let_owner_in(writer->start(), kGranule);
  }
  for (const Mapping* writer : {&first, &second, &third}) {
    mark(writer->start(), kGranule, ++seed);
    for (const Mapping* reader : {&first, &second, &third}) {
      EXPECT_TRUE(is_marked(reader->start(), kGranule, seed));
    }
  }
}

TEST_P(MapPlacement, MAP_22_NOACC_01_MappingChangesNeitherFiguresNorContents) {
  Block block(2 * kGranule);
  Reservation first(block.size());
  Reservation second(block.size());
  Mapping writer(first.start(), block);
  mark(writer.start(), block.size(), 1);

  FiguresStay figures;
  Mapping mapping(second.start(), block, GetParam().call);
  EXPECT_TRUE(is_marked(writer.start(), block.size(), 1));
  let_owner_in(mapping.start(), block.size());
  EXPECT_TRUE(is_marked(mapping.start(), block.size(), 1));
}

TEST_P(MapPlacement, MAP_22_NOACC_01_FiguresStayForEveryKindOfBlock) {
  struct Kind {
    aclrtPhysicalMemProp property;
    size_t size;
  };
  for (const Kind& kind :
       {Kind{block_property(ACL_MEM_NORMAL), kGranule},
        Kind{block_property(ACL_HBM_MEM_HUGE1G), kGiB}, Kind{host_property(), kGranule}}) {
    SCOPED_TRACE(testing::Message() << "attribute " << kind.property.memAttr << ", location "
                                    << kind.property.location.type);
    Block block(kind.size, kind.property);
    Reservation range(kind.size);
    const MemoryFigures before = memory_figures();
    Mapping mapping(range.start(), block, GetParam().call);
    EXPECT_EQ(memory_figures(), before);
    mapping.unmap();
    EXPECT_EQ(memory_figures(), before);
  }
}

}  // namespace
}  // namespace understudy_test::mapping
