// SPDX-License-Identifier: Apache-2.0
//
// What error texts tell: what was asked, what there is instead, and which product or process has
// it. Each text is one line.
// Covers: ERR-03, FREE-06, PHYS-10, PHYS-29, REL-03, RESVN-02, SHARE-12, UNMAP-04.
#include <sys/types.h>
#include <unistd.h>

#include <string>

#include "rules/vmm_objects.h"
#include "support/peer.h"

namespace understudy_test::vmm {
namespace {

class ErrorText : public DeviceTest {};

// The text of the newest error, without its end of line.
std::string newest() {
  const std::string texts = recent_error();
  return texts.substr(0, texts.find('\n'));
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(ErrorText, ERR_03_SHARE_12_FabricNamesTheTypeAndTheProductsThatHaveIt) {
  const Block block;
  aclrtMemFabricHandle blob;
  EXPECT_EQ(
      aclrtMemExportToShareableHandleV2(block.handle(), 0, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, &blob),
      ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  const std::string text = newest();
  EXPECT_TRUE(has(text, "product a2 (Ascend910B3) does not have the shareType FABRIC")) << text;
  EXPECT_TRUE(has(text, "it is in a3")) << text;
}

TEST_F(ErrorText, ERR_03_RESVN_02_MissingFunctionsNameTheProductsThatHaveThem) {
  void* range = nullptr;
  EXPECT_EQ(aclrtReserveMemAddressNoUCMemory(&range, kGiB, 0, address(60 * kTiB), 0),
            ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(newest(),
            "aclrtReserveMemAddressNoUCMemory: product a2 (Ascend910B3) does not have this "
            "function; it is in a3");
}

TEST_F(ErrorText, ERR_03_PHYS_10_WrongAttributesListThoseOfTheProduct) {
  aclrtDrvMemHandle handle = nullptr;
  const aclrtPhysicalMemProp unknown = block_property(enum_value<aclrtMemAttr>(99));
  EXPECT_EQ(aclrtMallocPhysical(&handle, kHugePage, &unknown, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(newest(),
            "aclrtMallocPhysical: prop->memAttr is 99, which no block can have; product a2 has "
            "device memory with ACL_MEM_NORMAL 12, MEM_HUGE 13, MEM_HUGE1G 14, MEM_P2P_NORMAL 15, "
            "MEM_P2P_HUGE 16, HBM_MEM_NORMAL 5, HBM_MEM_HUGE 4, HBM_MEM_HUGE1G 10");
  const aclrtPhysicalMemProp ddr = block_property(ACL_DDR_MEM_HUGE);
  EXPECT_EQ(aclrtMallocPhysical(&handle, kHugePage, &ddr, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_TRUE(has(newest(), "which is for host memory only; product a2 has device memory with"));
  const aclrtPhysicalMemProp on_host = block_property(ACL_HBM_MEM, ACL_MEM_LOCATION_TYPE_HOST, 0);
  EXPECT_EQ(aclrtMallocPhysical(&handle, kHugePage, &on_host, 0), ACL_ERROR_INVALID_PARAM);
  const std::string text = newest();
  EXPECT_TRUE(has(text, "host memory with ACL_MEM_NORMAL 12, MEM_HUGE 13, MEM_P2P_NORMAL 15"))
      << text;
  EXPECT_TRUE(text.ends_with("DDR_MEM_P2P_NORMAL 7, DDR_MEM_P2P_HUGE 6")) << text;
}

TEST_F(ErrorText, ERR_03_FREE_06_UNMAP_04_TheFirstByteIsNotCalledInside) {
  void* data = nullptr;
  ASSERT_SUCCESS(aclrtMalloc(&data, 4 * kKiB, ACL_MEM_MALLOC_NORMAL_ONLY));
  EXPECT_EQ(aclrtUnmapMem(data), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_TRUE(has(newest(), "is the start of an allocation of 4128 bytes, not of a mapping"));
  EXPECT_EQ(aclrtUnmapMem(at(data, 64)), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_TRUE(has(newest(), "is inside the allocation of 4128 bytes at "));
  EXPECT_SUCCESS(aclrtFree(data));
  const MappedBlock block;
  EXPECT_EQ(aclrtFree(block.start()), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_TRUE(has(newest(), "is the start of a mapping of 2 MiB, not of an allocation"));
}

TEST_F(ErrorText, ERR_03_REL_03_OneMappingIsSingular) {
  const Range range(2 * kHugePage);
  const Block block;
  const Mapping first(range.start(), block);
  EXPECT_EQ(aclrtReleaseMemAddress(range.start()), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_TRUE(has(newest(), "1 mapping is still inside the reservation at "));
  const Mapping second(range.byte(kHugePage), block);
  EXPECT_EQ(aclrtReleaseMemAddress(range.start()), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_TRUE(has(newest(), "2 mappings are still inside the reservation at "));
}

// ---- Out of memory ----

#define US_SMALL_DEVICE() US_FRESH_PROCESS({"UNDERSTUDY_MEMORY", "64M"})

US_PEER(HoldsMostOfDevice0) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const aclrtDrvMemHandle handle = create_block(32 * kMiB);
  channel.send(getpid());
  channel.wait_for_end();
  EXPECT_SUCCESS(aclrtFreePhysical(handle));
}

TEST(ErrorTextOfSmallDevice, ERR_03_PHYS_29_OutOfMemoryNamesPoolsAndTheLargestHolder) {
  US_SMALL_DEVICE();
  const DeviceBinding binding;
  const Block own(8 * kMiB);
  aclrtDrvMemHandle handle = nullptr;
  const aclrtPhysicalMemProp property = block_property();
  const auto text_of_too_much = [&] {
    EXPECT_EQ(aclrtMallocPhysical(&handle, 64 * kMiB, &property, 0),
              ACL_ERROR_RT_MEMORY_ALLOCATION);
    return newest();
  };
  EXPECT_EQ(text_of_too_much(),
            "aclrtMallocPhysical: 64 MiB in huge pages are not free on device 0: it has 4 MiB of 4 "
            "MiB in normal and 52 MiB of 60 MiB in huge pages left; this process holds the most, 8 "
            "MiB");
  Peer peer(HoldsMostOfDevice0, {{"UNDERSTUDY_MEMORY", "64M"}});
  const auto holder = peer.receive<pid_t>();
  const std::string text = text_of_too_much();
  EXPECT_TRUE(has(text, "20 MiB of 60 MiB in huge pages")) << text;
  EXPECT_TRUE(has(text, "process " + std::to_string(holder) + " holds the most, 32 MiB")) << text;
}

#undef US_SMALL_DEVICE

}  // namespace
}  // namespace understudy_test::vmm
