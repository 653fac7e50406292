// SPDX-License-Identifier: Apache-2.0
//
// A link mapping once ran on into the reservation behind its destination.
#include "support/rule_test.h"

namespace understudy_test {
namespace {

constexpr size_t kGranule = 2 * kMiB;

TEST(SelectedLinkRegress, ADestinationThatIsTooSmallTakesNothing) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  void* const source = reserve(2 * kGranule);
  const aclrtDrvMemHandle blocks[] = {create_block(kGranule), create_block(kGranule)};
  ASSERT_SUCCESS(aclrtMapMem(source, kGranule, 0, blocks[0], 0));
  ASSERT_SUCCESS(aclrtMapMem(at(source, kGranule), kGranule, 0, blocks[1], 0));
  // Reservations without a wish are placed behind each other.
  void* const destination = reserve(kGranule);
  void* const neighbour = reserve(kGranule);

  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemMapSelectedLink(destination, 2 * kGranule, source, 0));
  for (void* const address : {destination, neighbour}) {
    EXPECT_SUCCESS(aclrtReleaseMemAddress(address));
  }
  for (const size_t offset : {size_t{0}, kGranule}) {
    EXPECT_SUCCESS(aclrtUnmapMem(at(source, offset)));
  }
  for (const aclrtDrvMemHandle block : blocks) EXPECT_SUCCESS(aclrtFreePhysical(block));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(source));
}

}  // namespace
}  // namespace understudy_test
