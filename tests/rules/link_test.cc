// SPDX-License-Identifier: Apache-2.0
//
// aclrtMemMapSelectedLink and aclrtMemMapSetLink: a second mapping over a chosen path between dies.
// Covers: LINK-01, LINK-02, LINK-03, LINK-04, LINK-05, LINK-06, LINK-07, LINK-08, LINK-09, LINK-10.
#include <array>
#include <string>
#include <vector>

#include "rules/mapping_objects.h"

namespace understudy_test::mapping {
namespace {

constexpr std::array<uint32_t, 2> kLinks = {ACL_RT_MEM_LINK_IDX_0, ACL_RT_MEM_LINK_IDX_1};

#define IN_A_FRESH_A3_PROCESS() US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"})

void expect_outer_checks(void* destination, size_t size, void* source) {
  FiguresStay figures;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemMapSelectedLink(nullptr, size, source, 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemMapSelectedLink(destination, size, nullptr, 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemMapSelectedLink(destination, 0, source, 0));
  for (const uint32_t link : {2u, 3u, ~0u}) {
    SCOPED_TRACE(link);
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemMapSelectedLink(destination, size, source, link));
  }
  EXPECT_FALSE(is_mapped(destination));
}

void expect_link_refused(void* destination, size_t size, void* source) {
  FiguresStay figures;
  for (const uint32_t link : kLinks) {
    SCOPED_TRACE(link);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtMemMapSelectedLink(destination, size, source, link));
  }
}

TEST(SelectedLink, LINK_01_LINK_02_OuterChecks) {
  IN_A_FRESH_A3_PROCESS();
  DeviceScope device;
  MappedBlock source;
  Reservation destination(kGranule);
  expect_outer_checks(destination.start(), kGranule, source.start());
}

TEST(SelectedLink, LINK_01_LINK_02_OuterChecksComeBeforeTheProduct) {
  DeviceScope device;
  MappedBlock source;
  Reservation destination(kGranule);
  expect_outer_checks(destination.start(), kGranule, source.start());
}

TEST(SelectedLink, LINK_03_A2DoesNotHaveItAndMapsNothing) {
  DeviceScope device;
  MappedBlock source;
  Reservation destination(kGranule);
  mark(source.start(), kGranule, 1);
  for (const uint32_t link : kLinks) {
    SCOPED_TRACE(link);
    FiguresStay figures;
    EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                 aclrtMemMapSelectedLink(destination.start(), kGranule, source.start(), link));
    EXPECT_FALSE(is_mapped(destination.start()));
  }
  EXPECT_TRUE(is_marked(source.start(), kGranule, 1));
}

struct Product {
  const char* key;
  const char* name;

  friend std::ostream& operator<<(std::ostream& out, const Product& product) {
    return out << product.key;
  }
};

std::string product_name(const testing::TestParamInfo<Product>& info) { return info.param.name; }

class SelectedLinkProducts : public testing::TestWithParam<Product> {};
INSTANTIATE_TEST_SUITE_P(, SelectedLinkProducts,
                         testing::Values(Product{"a2", "A2"}, Product{"inf", "Inf"},
                                         Product{"trn", "Trn"}, Product{"200i", "Ep200I"},
                                         Product{"200i-rc", "Rc200I"}, Product{"950", "Ascend950"},
                                         Product{"ipv350", "Ipv350"}),
                         product_name);

TEST_P(SelectedLinkProducts, LINK_03_OnlyA3HasIt) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam().key});
  // The product is asked before the addresses are looked at.
  void* destination = address(kGranule);
  void* source = address(4 * kGranule);
  for (const uint32_t link : kLinks) {
    SCOPED_TRACE(link);
    EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                 aclrtMemMapSelectedLink(destination, kGranule, source, link));
  }
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemMapSelectedLink(nullptr, kGranule, source, 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemMapSelectedLink(destination, kGranule, source, 2));
}

TEST(SelectedLink, LINK_04_SourceMustBeTheStartOfAMapping) {
  IN_A_FRESH_A3_PROCESS();
  DeviceScope device;
  MappedBlock mapped(2 * kGranule);
  Reservation reserved(kGranule);
  Reservation destination(4 * kGranule);
  mark(mapped.start(), mapped.size(), 1);
  int on_the_stack = 0;
  const std::vector<void*> wrong = {mapped.at(1), mapped.at(kGranule), reserved.start(),
                                    &on_the_stack, address(1)};
  for (void* source : wrong) {
    SCOPED_TRACE(source);
    for (const size_t size : {kGranule, mapped.size()}) {
      expect_link_refused(destination.start(), size, source);
      EXPECT_FALSE(is_mapped(destination.start()));
    }
  }
  EXPECT_TRUE(is_marked(mapped.start(), mapped.size(), 1));
  mapped.mapping.unmap();
  expect_link_refused(destination.start(), mapped.size(), mapped.start());
  EXPECT_FALSE(is_mapped(destination.start()));
}

TEST(SelectedLink, LINK_05_DestinationMustBeTheStartOfAReservation) {
  IN_A_FRESH_A3_PROCESS();
  DeviceScope device;
  MappedBlock source;
  Reservation destination(4 * kGranule);
  mark(source.start(), kGranule, 1);
  void* released = reserve(kGranule);
  ASSERT_SUCCESS(aclrtReleaseMemAddress(released));
  int on_the_stack = 0;
  const std::vector<void*> wrong = {destination.at(1), destination.at(kGranule),
                                    destination.at(3 * kGranule), released, &on_the_stack};
  for (void* start : wrong) {
    SCOPED_TRACE(start);
    expect_link_refused(start, kGranule, source.start());
  }
  for (size_t granule = 0; granule < 4; ++granule) {
    EXPECT_FALSE(is_mapped(destination.at(granule * kGranule)));
  }
  EXPECT_TRUE(is_marked(source.start(), kGranule, 1));
}

TEST(SelectedLink, LINK_05_DestinationMustBeLargeEnough) {
  IN_A_FRESH_A3_PROCESS();
  DeviceScope device;
  MappedBlock source(2 * kGranule);
  Reservation destination(kGranule);
  expect_link_refused(destination.start(), source.size(), source.start());
  EXPECT_FALSE(is_mapped(destination.start()));
}

TEST(SelectedLink, LINK_05_DestinationMustNotBeMapped) {
  IN_A_FRESH_A3_PROCESS();
  DeviceScope device;
  MappedBlock source(2 * kGranule);
  mark(source.start(), source.size(), 1);
  for (const size_t offset : {size_t{0}, kGranule}) {
    SCOPED_TRACE(offset);
    Reservation destination(2 * kGranule);
    Block old;
    Mapping mapping(destination.at(offset), old);
    mark(mapping.start(), kGranule, 2);
    expect_link_refused(destination.start(), source.size(), source.start());
    EXPECT_TRUE(is_marked(mapping.start(), kGranule, 2));
  }
  expect_link_refused(source.start(), source.size(), source.start());
  EXPECT_TRUE(is_marked(source.start(), source.size(), 1));
}

TEST(SelectedLink, LINK_06_BothRangesAreTheSameBytesOverEitherLink) {
  IN_A_FRESH_A3_PROCESS();
  DeviceScope device;
  MappedBlock source(2 * kGranule);
  for (const uint32_t link : kLinks) {
    SCOPED_TRACE(link);
    mark(source.start(), source.size(), 1);
    FiguresStay figures;
    // Larger than needed: the mapping ends where the source ends.
    Reservation destination(3 * kGranule);
    ASSERT_SUCCESS(
        aclrtMemMapSelectedLink(destination.start(), source.size(), source.start(), link));
    Mapping alias(destination.start());
    EXPECT_TRUE(is_marked(alias.start(), source.size(), 1));
    mark(alias.start(), source.size(), 2);
    EXPECT_TRUE(is_marked(source.start(), source.size(), 2));
    EXPECT_FALSE(is_mapped(destination.at(source.size())));
  }
}

TEST(SelectedLink, LINK_06_BothLinksAtOnce) {
  IN_A_FRESH_A3_PROCESS();
  DeviceScope device;
  MappedBlock source;
  Reservation first(kGranule);
  Reservation second(kGranule);
  ASSERT_SUCCESS(aclrtMemMapSelectedLink(first.start(), kGranule, source.start(), kLinks[0]));
  Mapping first_alias(first.start());
  ASSERT_SUCCESS(aclrtMemMapSelectedLink(second.start(), kGranule, source.start(), kLinks[1]));
  Mapping second_alias(second.start());
  mark(first.start(), kGranule, 1);
  EXPECT_TRUE(is_marked(second.start(), kGranule, 1));
  EXPECT_TRUE(is_marked(source.start(), kGranule, 1));
}

void expect_mapping(void* start, size_t size) {
  void* base = nullptr;
  size_t found = 0;
  EXPECT_SUCCESS(aclrtMemGetAddressRange(at(start, size - 1), &base, &found));
  EXPECT_EQ(base, start);
  EXPECT_EQ(found, size);
}

TEST(SelectedLink, LINK_07_SeveralBlocksAreRepeatedAndUnmappedOneByOne) {
  IN_A_FRESH_A3_PROCESS();
  DeviceScope device;
  BlockRow source({kGranule, 2 * kGranule, kGranule});
  const std::vector<uint8_t> bytes = pattern(source.size(), 5);
  copy_in(source.start(), bytes);
  Reservation destination(source.size());
  ASSERT_SUCCESS(aclrtMemMapSelectedLink(destination.start(), source.size(), source.start(), 0));
  EXPECT_EQ(copy_out(destination.start(), bytes.size()), bytes);
  expect_mapping(destination.at(0), kGranule);
  expect_mapping(destination.at(kGranule), 2 * kGranule);
  expect_mapping(destination.at(3 * kGranule), kGranule);

  EXPECT_SUCCESS(aclrtUnmapMem(destination.start()));
  EXPECT_FALSE(is_mapped(destination.start()));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtReleaseMemAddress(destination.start()));
  EXPECT_SUCCESS(aclrtUnmapMem(destination.at(kGranule)));
  EXPECT_SUCCESS(aclrtUnmapMem(destination.at(3 * kGranule)));
  EXPECT_EQ(copy_out(source.start(), bytes.size()), bytes);
}

TEST(SelectedLink, LINK_07_TheFirstBlocksOfARowAreEnough) {
  IN_A_FRESH_A3_PROCESS();
  DeviceScope device;
  BlockRow source({kGranule, kGranule, kGranule});
  Reservation destination(3 * kGranule);
  ASSERT_SUCCESS(
      aclrtMemMapSelectedLink(destination.start(), 2 * kGranule, source.at(0), kLinks[1]));
  Mapping first(destination.start());
  Mapping second(destination.at(kGranule));
  mark(source.at(kGranule), kGranule, 1);
  EXPECT_TRUE(is_marked(second.start(), kGranule, 1));
  EXPECT_FALSE(is_mapped(destination.at(2 * kGranule)));
}

TEST(SelectedLink, LINK_08_TheDestinationKeepsTheBlockAlive) {
  IN_A_FRESH_A3_PROCESS();
  DeviceScope device;
  const size_t free_at_first = free_bytes();
  MappedBlock source;
  Reservation destination(kGranule);
  mark(source.start(), kGranule, 1);
  ASSERT_SUCCESS(aclrtMemMapSelectedLink(destination.start(), kGranule, source.start(), 0));
  Mapping alias(destination.start());
  source.block.free();
  source.mapping.unmap();
  EXPECT_EQ(free_bytes(), free_at_first - kGranule);
  EXPECT_TRUE(is_marked(alias.start(), kGranule, 1));
  alias.unmap();
  EXPECT_EQ(free_bytes(), free_at_first);
}

TEST(SelectedLink, LINK_09_SourceShorterThanTheSize) {
  IN_A_FRESH_A3_PROCESS();
  DeviceScope device;
  BlockRow source({kGranule, 2 * kGranule});
  Reservation destination(4 * kGranule);
  mark(source.at(0), kGranule, 1);
  mark(source.at(kGranule), 2 * kGranule, 2);
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemMapSelectedLink(destination.start(), 4 * kGranule, source.start(), 0));
  Mapping first(destination.at(0));
  Mapping second(destination.at(kGranule));
  EXPECT_TRUE(is_marked(first.start(), kGranule, 1));
  EXPECT_TRUE(is_marked(second.start(), 2 * kGranule, 2));
  EXPECT_FALSE(is_mapped(destination.at(3 * kGranule)));
}

TEST(SelectedLink, LINK_09_SizeEndingInsideABlock) {
  IN_A_FRESH_A3_PROCESS();
  DeviceScope device;
  BlockRow source({kGranule, 2 * kGranule});
  Reservation destination(4 * kGranule);
  mark(source.at(0), kGranule, 1);
  for (const size_t size : {kGranule + 4096, 2 * kGranule, 3 * kGranule - 1}) {
    SCOPED_TRACE(size);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtMemMapSelectedLink(destination.start(), size, source.start(), 1));
    Mapping first(destination.start());
    EXPECT_TRUE(is_marked(first.start(), kGranule, 1));
    EXPECT_FALSE(is_mapped(destination.at(kGranule)));
  }
}

TEST(SelectedLink, LINK_09_SizeEndingInsideTheOnlyBlockMapsNothing) {
  IN_A_FRESH_A3_PROCESS();
  DeviceScope device;
  MappedBlock source(2 * kGranule);
  Reservation destination(2 * kGranule);
  for (const size_t size : {size_t{1}, kGranule, 2 * kGranule - 1}) {
    SCOPED_TRACE(size);
    expect_link_refused(destination.start(), size, source.start());
    EXPECT_FALSE(is_mapped(destination.start()));
  }
}

TEST(SelectedLink, LINK_10_TheDestinationMayBeLongerThanTheSource) {
  IN_A_FRESH_A3_PROCESS();
  DeviceScope device;
  MappedBlock source;
  mark(source.start(), kGranule, 10);
  Reservation destination(3 * kGranule);
  ASSERT_SUCCESS(aclrtMemMapSelectedLink(destination.start(), kGranule, source.start(), 0));
  const Mapping alias(destination.start());
  EXPECT_TRUE(is_marked(destination.start(), kGranule, 10));
  EXPECT_FALSE(is_mapped(destination.at(kGranule)));
  // The rest of it is free for other blocks.
  Block block;
  Mapping beside(destination.at(2 * kGranule), block);
}

TEST(MapSetLink, NullHandleIsRefused) {
  IN_A_FRESH_A3_PROCESS();
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemMapSetLink(nullptr, ACL_RT_MEM_ACCESS_LINK_SIO));
}

TEST(MapSetLink, A3TakesSioAndHccsAndNoOther) {
  IN_A_FRESH_A3_PROCESS();
  DeviceScope device;
  MappedBlock scene;
  mark(scene.start(), kGranule, 1);
  for (const aclrtMemLinkType link : {ACL_RT_MEM_ACCESS_LINK_SIO, ACL_RT_MEM_ACCESS_LINK_HCCS}) {
    SCOPED_TRACE(link);
    EXPECT_SUCCESS(aclrtMemMapSetLink(scene.block.handle(), link));
  }
  for (const int64_t link :
       {int64_t{ACL_RT_MEM_ACCESS_UB_ONE_PORT_PATH}, int64_t{ACL_RT_MEM_ACCESS_UB_MULTI_PORT_PATH},
        int64_t{4}, int64_t{-1}}) {
    SCOPED_TRACE(link);
    EXPECT_FAILS(ACL_ERROR_RT_LINK_TYPE_NOT_SUPPORTED,
                 aclrtMemMapSetLink(scene.block.handle(), enum_value<aclrtMemLinkType>(link)));
  }
  EXPECT_TRUE(is_marked(scene.start(), kGranule, 1));
}

TEST(MapSetLink, AnUnknownHandleIsRefused) {
  IN_A_FRESH_A3_PROCESS();
  DeviceScope device;
  Block destroyed;
  destroyed.free();
  for (const aclrtDrvMemHandle handle : {destroyed.handle(), address(1)}) {
    SCOPED_TRACE(handle);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtMemMapSetLink(handle, ACL_RT_MEM_ACCESS_LINK_SIO));
  }
}

TEST(MapSetLink, A2DoesNotHaveItAndChecksTheHandleFirst) {
  DeviceScope device;
  Block block;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemMapSetLink(nullptr, ACL_RT_MEM_ACCESS_LINK_SIO));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtMemMapSetLink(block.handle(), ACL_RT_MEM_ACCESS_LINK_SIO));
}

}  // namespace
}  // namespace understudy_test::mapping
