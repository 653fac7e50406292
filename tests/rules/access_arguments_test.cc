// SPDX-License-Identifier: Apache-2.0
//
// aclrtMemSetAccess and aclrtMemGetAccess: what they refuse, without changing anything.
// Covers: ACCESS-01, ACCESS-02, ACCESS-03, ACCESS-04, ACCESS-05, ACCESS-06, ACCESS-07, ACCESS-08,
// ACCESS-09, ACCESS-14, ACCESS-15, ACCESS-16, ACCESS-18.
#include <array>
#include <vector>

#include "rules/mapping_objects.h"

namespace understudy_test::mapping {
namespace {

class AccessArguments : public VirtualMemoryTest {};

// Every access that the tests below could change by mistake.
std::array<uint64_t, 3> accesses(const MappedBlock& scene) {
  return {access_of(scene.start(), device_location(0)), access_of(scene.start(), host_location()),
          access_of(scene.start(), device_location(1))};
}

// The call is refused and neither access nor bytes of the scene change.
void expect_set_refused(const MappedBlock& scene, aclError code, void* start, size_t size,
                        aclrtMemAccessDesc* entries, size_t count) {
  mark(scene.start(), scene.size(), 1);
  const std::array<uint64_t, 3> before = accesses(scene);
  FiguresStay figures;
  EXPECT_FAILS(code, aclrtMemSetAccess(start, size, entries, count));
  EXPECT_EQ(accesses(scene), before);
  EXPECT_TRUE(is_marked(scene.start(), scene.size(), 1));
}

void expect_entry_refused(const MappedBlock& scene, aclError code, aclrtMemAccessDesc entry) {
  expect_set_refused(scene, code, scene.start(), scene.size(), &entry, 1);
}

void expect_get_refused(aclError code, void* start, aclrtMemLocation location) {
  constexpr uint64_t kSentinel = 0xABABABABABABABAB;
  uint64_t flag = kSentinel;
  EXPECT_FAILS(code, aclrtMemGetAccess(start, &location, &flag));
  EXPECT_EQ(flag, kSentinel);
}

TEST_F(AccessArguments, ACCESS_01_SetRefusesNullPointers) {
  MappedBlock scene;
  aclrtMemAccessDesc entry = access_entry(host_location());
  expect_set_refused(scene, ACL_ERROR_RT_PARAM_INVALID, nullptr, scene.size(), &entry, 1);
  expect_set_refused(scene, ACL_ERROR_RT_PARAM_INVALID, scene.start(), scene.size(), nullptr, 1);
  expect_set_refused(scene, ACL_ERROR_RT_PARAM_INVALID, nullptr, scene.size(), nullptr, 0);
}

TEST_F(AccessArguments, ACCESS_02_SetRefusesAnEmptyArray) {
  MappedBlock scene;
  aclrtMemAccessDesc entry = access_entry(host_location());
  expect_set_refused(scene, ACL_ERROR_RT_PARAM_INVALID, scene.start(), scene.size(), &entry, 0);
}

TEST_F(AccessArguments, ACCESS_03_SetCannotTakeOrNarrowAccess) {
  MappedBlock scene;
  for (const aclrtMemAccessFlags flags :
       {ACL_RT_MEM_ACCESS_FLAGS_NONE, ACL_RT_MEM_ACCESS_FLAGS_READ}) {
    SCOPED_TRACE(flags);
    for (const aclrtMemLocation location :
         {device_location(0), device_location(1), host_location()}) {
      expect_entry_refused(scene, ACL_ERROR_RT_FEATURE_NOT_SUPPORT, access_entry(location, flags));
    }
  }
}

TEST_F(AccessArguments, ACCESS_03_NotSupportedComesBeforeNotMapped) {
  Reservation range(kGranule);
  aclrtMemAccessDesc entry = access_entry(device_location(0), ACL_RT_MEM_ACCESS_FLAGS_READ);
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtMemSetAccess(range.start(), kGranule, &entry, 1));
}

TEST_F(AccessArguments, ACCESS_04_SetRefusesUnknownFlags) {
  MappedBlock scene;
  for (const int64_t flags : {2, 4, 5, 7, 0x10003, -1}) {
    SCOPED_TRACE(flags);
    expect_entry_refused(scene, ACL_ERROR_RT_PARAM_INVALID,
                         access_entry(host_location(), enum_value<aclrtMemAccessFlags>(flags)));
  }
}

TEST_F(AccessArguments, ACCESS_05_OnlyHostAndDeviceAreLocations) {
  MappedBlock scene;
  for (const int64_t type :
       {int64_t{ACL_MEM_LOCATION_TYPE_UNREGISTERED}, int64_t{ACL_MEM_LOCATION_TYPE_MANAGED},
        int64_t{ACL_MEM_LOCATION_TYPE_HOST_NUMA}, int64_t{5}, int64_t{-1}}) {
    SCOPED_TRACE(type);
    const aclrtMemLocation location{.id = 0, .type = enum_value<aclrtMemLocationType>(type)};
    expect_entry_refused(scene, ACL_ERROR_RT_PARAM_INVALID, access_entry(location));
    expect_get_refused(ACL_ERROR_RT_PARAM_INVALID, scene.start(), location);
    // ACCESS-05 precedes ACCESS-03.
    expect_entry_refused(scene, ACL_ERROR_RT_PARAM_INVALID,
                         access_entry(location, ACL_RT_MEM_ACCESS_FLAGS_NONE));
  }
}

TEST_F(AccessArguments, ACCESS_05_HostNumaIsNoLocationForItsOwnBlockEither) {
  MappedBlock scene(kGranule, host_property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST_NUMA));
  const aclrtMemLocation location{.id = 0, .type = ACL_MEM_LOCATION_TYPE_HOST_NUMA};
  expect_entry_refused(scene, ACL_ERROR_RT_PARAM_INVALID, access_entry(location));
  expect_get_refused(ACL_ERROR_RT_PARAM_INVALID, scene.start(), location);
}

TEST_F(AccessArguments, ACCESS_06_TheHostHasTheIdZero) {
  MappedBlock scene;
  for (const uint32_t id : {1u, 7u, ~0u}) {
    SCOPED_TRACE(id);
    const aclrtMemLocation location{.id = id, .type = ACL_MEM_LOCATION_TYPE_HOST};
    expect_entry_refused(scene, ACL_ERROR_RT_PARAM_INVALID, access_entry(location));
    expect_get_refused(ACL_ERROR_RT_PARAM_INVALID, scene.start(), location);
  }
}

TEST_F(AccessArguments, ACCESS_07_UnknownDeviceIsRefused) {
  MappedBlock scene;
  uint32_t count = 0;
  ASSERT_SUCCESS(aclrtGetDeviceCount(&count));
  for (const uint32_t id : {count, count + 1, ~0u}) {
    SCOPED_TRACE(id);
    expect_entry_refused(scene, ACL_ERROR_RT_PARAM_INVALID, access_entry(device_location(id)));
    expect_get_refused(ACL_ERROR_RT_PARAM_INVALID, scene.start(), device_location(id));
  }
}

TEST_F(AccessArguments, ACCESS_08_SetWantsExactlyTheMapping) {
  MappedBlock scene(2 * kGranule);
  aclrtMemAccessDesc entry = access_entry(host_location());
  for (const size_t size : {size_t{0}, size_t{1}, kGranule, 2 * kGranule - 1, 2 * kGranule + 1,
                            4 * kGranule, ~size_t{0}}) {
    SCOPED_TRACE(size);
    expect_set_refused(scene, ACL_ERROR_RT_PARAM_INVALID, scene.start(), size, &entry, 1);
  }
  for (const size_t offset : {size_t{1}, size_t{4096}, kGranule}) {
    SCOPED_TRACE(offset);
    for (const size_t size : {scene.size(), scene.size() - offset}) {
      expect_set_refused(scene, ACL_ERROR_RT_PARAM_INVALID, scene.at(offset), size, &entry, 1);
    }
  }
  EXPECT_FALSE(cpu_can_read(scene.start()));
}

TEST_F(AccessArguments, ACCESS_08_TwoMappingsAreNotSetInOneCall) {
  BlockRow row({kGranule, kGranule});
  aclrtMemAccessDesc entry = access_entry(host_location());
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemSetAccess(row.start(), row.size(), &entry, 1));
  EXPECT_EQ(access_of(row.at(0), host_location()), 0u);
  EXPECT_EQ(access_of(row.at(kGranule), host_location()), 0u);
}

TEST_F(AccessArguments, ACCESS_09_SetRefusesWhatIsNotMapped) {
  MappedBlock scene;
  Reservation reserved(kGranule);
  void* released = reserve(kGranule);
  ASSERT_SUCCESS(aclrtReleaseMemAddress(released));
  int on_the_stack = 0;
  aclrtMemAccessDesc entry = access_entry(host_location());
  for (void* start : {reserved.start(), released, static_cast<void*>(&on_the_stack), address(1)}) {
    SCOPED_TRACE(start);
    expect_set_refused(scene, ACL_ERROR_RT_PARAM_INVALID, start, kGranule, &entry, 1);
  }
  EXPECT_FALSE(cpu_can_read(reserved.start()));

  scene.mapping.unmap();
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemSetAccess(scene.start(), kGranule, &entry, 1));
  EXPECT_FALSE(cpu_can_read(scene.start()));
}

TEST_F(AccessArguments, ACCESS_14_SetRefusesOneLocationTwice) {
  MappedBlock scene;
  for (const aclrtMemLocation location :
       {device_location(0), device_location(1), host_location()}) {
    SCOPED_TRACE(testing::Message() << "type " << location.type << ", id " << location.id);
    std::array<aclrtMemAccessDesc, 3> entries = {
        access_entry(location), access_entry(device_location(2)), access_entry(location)};
    expect_set_refused(scene, ACL_ERROR_RT_PARAM_INVALID, scene.start(), scene.size(),
                       entries.data(), entries.size());
    EXPECT_EQ(access_of(scene.start(), device_location(2)), 0u);
  }
}

TEST_F(AccessArguments, ACCESS_15_OneWrongEntryStopsAllBeforeTheFirst) {
  MappedBlock scene;
  const aclrtMemLocation numa{.id = 0, .type = ACL_MEM_LOCATION_TYPE_HOST_NUMA};
  const aclrtMemLocation host_one{.id = 1, .type = ACL_MEM_LOCATION_TYPE_HOST};
  struct Wrong {
    aclrtMemAccessDesc entry;
    aclError code;
  };
  for (const Wrong& wrong : {
           Wrong{access_entry(numa), ACL_ERROR_RT_PARAM_INVALID},
           Wrong{access_entry(host_one), ACL_ERROR_RT_PARAM_INVALID},
           Wrong{access_entry(device_location(99)), ACL_ERROR_RT_PARAM_INVALID},
           Wrong{access_entry(device_location(2), enum_value<aclrtMemAccessFlags>(2)),
                 ACL_ERROR_RT_PARAM_INVALID},
           Wrong{access_entry(device_location(2), ACL_RT_MEM_ACCESS_FLAGS_READ),
                 ACL_ERROR_RT_FEATURE_NOT_SUPPORT},
       }) {
    SCOPED_TRACE(testing::Message()
                 << "flags " << wrong.entry.flags << ", type " << wrong.entry.location.type);
    std::array<aclrtMemAccessDesc, 3> entries = {access_entry(host_location()),
                                                 access_entry(device_location(1)), wrong.entry};
    expect_set_refused(scene, wrong.code, scene.start(), scene.size(), entries.data(),
                       entries.size());
    EXPECT_FALSE(cpu_can_read(scene.start()));
  }
}

TEST_F(AccessArguments, ACCESS_16_GetRefusesNullPointers) {
  MappedBlock scene;
  aclrtMemLocation location = device_location(0);
  uint64_t flag = 77;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemGetAccess(nullptr, &location, &flag));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemGetAccess(scene.start(), nullptr, &flag));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemGetAccess(scene.start(), &location, nullptr));
  EXPECT_EQ(flag, 77u);
}

TEST_F(AccessArguments, ACCESS_18_GetWantsTheStartOfAMapping) {
  MappedBlock scene(2 * kGranule);
  Reservation reserved(kGranule);
  int on_the_stack = 0;
  const std::vector<void*> wrong = {scene.at(1),      scene.at(4096), scene.at(kGranule),
                                    reserved.start(), &on_the_stack,  address(1)};
  for (void* start : wrong) {
    SCOPED_TRACE(start);
    expect_get_refused(ACL_ERROR_RT_PARAM_INVALID, start, device_location(0));
  }
  scene.mapping.unmap();
  expect_get_refused(ACL_ERROR_RT_PARAM_INVALID, scene.start(), device_location(0));
}

}  // namespace
}  // namespace understudy_test::mapping
