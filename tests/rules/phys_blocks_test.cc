// SPDX-License-Identifier: Apache-2.0
//
// aclrtMallocPhysical: the blocks it makes, what they cost and when memory runs out.
// Covers: PHYS-18, PHYS-19, PHYS-20, PHYS-25, PHYS-27, PHYS-28, PHYS-29, PHYS-30, PHYS-31.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "rules/vmm_objects.h"

namespace understudy_test::vmm {
namespace {

using MallocPhysical = DeviceTest;

constexpr size_t kWholeHugePages = ~(kHugePage - 1);

// The numbers of a kernel list such as "0-1,4".
std::vector<uint32_t> parse_list(const std::string& text) {
  std::vector<uint32_t> numbers;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t dash = part.find('-');
    const unsigned long first = std::stoul(part);
    const unsigned long last =
        dash == std::string::npos ? first : std::stoul(part.substr(dash + 1));
    for (unsigned long i = first; i <= last; ++i) numbers.push_back(static_cast<uint32_t>(i));
  }
  return numbers;
}

std::vector<uint32_t> numa_nodes_with_memory() {
  std::ifstream file("/sys/devices/system/node/has_memory");
  std::string text;
  if (!std::getline(file, text) || text.empty()) return {0};
  return parse_list(text);
}

// The node of the page at an address, or -1 where the system does not tell.
int node_of_page(const void* page) {
  constexpr unsigned long kAskForNode = 1;
  constexpr unsigned long kOfAddress = 2;
  int node = -1;
  const long failed =
      syscall(SYS_get_mempolicy, &node, nullptr, 0UL, page, kAskForNode | kOfAddress);
  return failed == 0 ? node : -1;
}

size_t page_size_at(const void* start) {
  aclrtPtrAttributes attributes;
  memset(&attributes, 0, sizeof attributes);
  EXPECT_SUCCESS(aclrtPointerGetAttributes(start, &attributes));
  return attributes.pageSize;
}

size_t free_bytes_of(uint32_t device) {
  size_t found = 0;
  on_bare_thread([&found, device] {
    const DeviceBinding binding(static_cast<int32_t>(device));
    found = free_bytes();
  });
  return found;
}

// The pool of an HBM device from which an attribute takes its pages.
struct AttributeAndPool {
  aclrtMemAttr attribute;
  size_t size;
  aclrtMemAttr pool;
};

constexpr std::array kAttributesAndPools = {
    AttributeAndPool{ACL_MEM_NORMAL, kHugePage, ACL_HBM_MEM_NORMAL},
    AttributeAndPool{ACL_MEM_HUGE, 3 * kHugePage, ACL_HBM_MEM_HUGE},
    AttributeAndPool{ACL_MEM_P2P_NORMAL, 5 * kHugePage, ACL_HBM_MEM_NORMAL},
    AttributeAndPool{ACL_MEM_P2P_HUGE, kHugePage, ACL_HBM_MEM_HUGE},
    AttributeAndPool{ACL_HBM_MEM_HUGE, 10 * kHugePage, ACL_HBM_MEM_HUGE},
    AttributeAndPool{ACL_HBM_MEM_NORMAL, 2 * kHugePage, ACL_HBM_MEM_HUGE},
    AttributeAndPool{ACL_MEM_HUGE1G, kGiantPage, ACL_HBM_MEM_HUGE},
    AttributeAndPool{ACL_HBM_MEM_HUGE1G, 3 * kGiantPage, ACL_HBM_MEM_HUGE},
};

TEST_F(MallocPhysical, PHYS_18_EveryDeviceAttributeGivesABlock) {
  for (const uint32_t device : {0u, device_count() - 1}) {
    for (const aclrtMemAttr attribute : kDeviceAttributes) {
      SCOPED_TRACE(testing::Message() << "device " << device << ", attribute " << attribute);
      const Block block(kHugePage, block_property(attribute, ACL_MEM_LOCATION_TYPE_DEVICE, device));
    }
  }
}

TEST_F(MallocPhysical, PHYS_18_EveryDeviceAttributeHoldsBytes) {
  for (const aclrtMemAttr attribute : kDeviceAttributes) {
    SCOPED_TRACE(attribute);
    const MappedBlock mapped(kHugePage, block_property(attribute));
    expect_usable(mapped.start());
  }
}

TEST_F(MallocPhysical, PHYS_19_EveryHostAttributeGivesABlock) {
  for (const aclrtMemAttr attribute : kHostAttributes) {
    SCOPED_TRACE(attribute);
    const MappedBlock mapped(kHugePage, block_property(attribute, ACL_MEM_LOCATION_TYPE_HOST));
    expect_usable(mapped.start());
  }
}

TEST_F(MallocPhysical, PHYS_20_HostNumaBlockLiesOnItsNode) {
  for (const uint32_t node : numa_nodes_with_memory()) {
    for (const aclrtMemAttr attribute : kHostAttributes) {
      SCOPED_TRACE(testing::Message() << "node " << node << ", attribute " << attribute);
      const MappedBlock mapped(kHugePage,
                               block_property(attribute, ACL_MEM_LOCATION_TYPE_HOST_NUMA, node));
      ASSERT_TRUE(cpu_can_write(mapped.start()));
      for (const size_t offset : {size_t{0}, kHugePage - 1}) {
        static_cast<volatile char*>(mapped.start())[offset] = 1;
        const int found = node_of_page(at(mapped.start(), offset));
        if (found >= 0) {
          EXPECT_EQ(static_cast<uint32_t>(found), node);
        }
      }
    }
  }
}

TEST_F(MallocPhysical, PHYS_25_HbmNormalIsBackedByHugePages) {
  const size_t huge_before = free_bytes(ACL_HBM_MEM_HUGE);
  const size_t normal_before = free_bytes(ACL_HBM_MEM_NORMAL);
  aclrtPhysicalMemProp property = block_property(ACL_HBM_MEM_NORMAL);
  size_t granularity = 0;
  EXPECT_SUCCESS(aclrtMemGetAllocationGranularity(&property, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM,
                                                  &granularity));
  EXPECT_EQ(granularity, kHugePage);

  const MappedBlock mapped(kHugePage, property);
  EXPECT_EQ(page_size_at(mapped.start()), kHugePage);
  EXPECT_EQ(page_size_at(at(mapped.start(), kHugePage - 1)), kHugePage);
  EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE), huge_before - kHugePage);
  EXPECT_EQ(free_bytes(ACL_HBM_MEM_NORMAL), normal_before);
}

TEST_F(MallocPhysical, PHYS_27_HandlesOfLiveBlocksDiffer) {
  std::set<aclrtDrvMemHandle> live;
  const auto add = [&live](const aclrtPhysicalMemProp& property) {
    const aclrtDrvMemHandle handle = create_block(kHugePage, property);
    EXPECT_TRUE(live.insert(handle).second) << "handle of a live block handed out again";
  };
  for (int round = 0; round < 20; ++round) {
    for (const aclrtMemAttr attribute : kDeviceAttributes) add(block_property(attribute));
    add(block_property(ACL_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST));
    add(block_property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, 1));
    // Holes make reuse of freed handles likely.
    const aclrtDrvMemHandle hole = *live.begin();
    live.erase(hole);
    EXPECT_SUCCESS(aclrtFreePhysical(hole));
  }
  for (const aclrtDrvMemHandle handle : live) EXPECT_SUCCESS(aclrtFreePhysical(handle));
}

TEST_F(MallocPhysical, PHYS_28_DeviceBlockCostsExactlyItsSize) {
  for (const AttributeAndPool& item : kAttributesAndPools) {
    SCOPED_TRACE(item.attribute);
    const size_t all_before = free_bytes(ACL_HBM_MEM);
    const size_t pool_before = free_bytes(item.pool);
    const Block block(item.size, block_property(item.attribute));
    EXPECT_EQ(free_bytes(ACL_HBM_MEM), all_before - item.size);
    EXPECT_EQ(free_bytes(item.pool), pool_before - item.size);
  }
}

TEST_F(MallocPhysical, PHYS_28_OnlyTheOwningDevicePays) {
  const uint32_t other = device_count() - 1;
  ASSERT_GT(other, 0u);
  const MemoryFigures here_before = memory_figures();
  const size_t there_before = free_bytes_of(other);
  const Block block(3 * kHugePage,
                    block_property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, other));
  EXPECT_TRUE(memory_figures() == here_before);
  EXPECT_EQ(free_bytes_of(other), there_before - 3 * kHugePage);
}

TEST_F(MallocPhysical, PHYS_28_HostBlockCostsNoDeviceMemory) {
  for (const aclrtMemLocationType location : kHostLocations) {
    for (const aclrtMemAttr attribute : kHostAttributes) {
      SCOPED_TRACE(testing::Message() << "location " << location << ", attribute " << attribute);
      const MemoryFigures before = memory_figures();
      const Block block(kHugePage, block_property(attribute, location));
      EXPECT_TRUE(memory_figures() == before);
    }
  }
}

// One more page than a pool has is refused although other pools have plenty; all of it is not.
void expect_exact_limit(aclrtMemAttr attribute, aclrtMemAttr pool, size_t page) {
  const size_t available = free_bytes(pool) / page * page;
  ASSERT_GT(available, 0u);
  expect_block_refused(ACL_ERROR_RT_MEMORY_ALLOCATION, available + page, block_property(attribute));
  const Block everything(available, block_property(attribute));
  expect_block_refused(ACL_ERROR_RT_MEMORY_ALLOCATION, page, block_property(attribute));
}

TEST_F(MallocPhysical, PHYS_29_HugePagesRunOutExactly) {
  expect_exact_limit(ACL_HBM_MEM_HUGE, ACL_HBM_MEM_HUGE, kHugePage);
  expect_exact_limit(ACL_MEM_HUGE, ACL_HBM_MEM_HUGE, kHugePage);
  expect_exact_limit(ACL_HBM_MEM_NORMAL, ACL_HBM_MEM_HUGE, kHugePage);
}

TEST_F(MallocPhysical, PHYS_29_NormalPagesRunOutExactly) {
  expect_exact_limit(ACL_MEM_NORMAL, ACL_HBM_MEM_NORMAL, kHugePage);
}

TEST_F(MallocPhysical, PHYS_29_GiantPagesRunOutExactly) {
  expect_exact_limit(ACL_HBM_MEM_HUGE1G, ACL_HBM_MEM_HUGE1G, kGiantPage);
}

TEST_F(MallocPhysical, PHYS_29_AnExhaustedPoolLeavesTheOthersUsable) {
  const Block all_huge(free_bytes(ACL_HBM_MEM_HUGE) & kWholeHugePages);
  expect_block_refused(ACL_ERROR_RT_MEMORY_ALLOCATION, kHugePage, block_property());
  const Block normal(kHugePage, block_property(ACL_MEM_NORMAL));
  const Block host(kHugePage, block_property(ACL_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST));
}

TEST_F(MallocPhysical, PHYS_29_AbsurdSizesAreOutOfMemoryAndSmallOnesStillSucceed) {
  for (const aclrtMemLocationType location :
       {ACL_MEM_LOCATION_TYPE_DEVICE, ACL_MEM_LOCATION_TYPE_HOST}) {
    for (const size_t size : {SIZE_MAX & kWholeHugePages, size_t{1} << 63, size_t{1} << 60}) {
      SCOPED_TRACE(testing::Message() << "location " << location << ", size " << size);
      const aclrtPhysicalMemProp property = block_property(ACL_MEM_HUGE, location);
      expect_block_refused(ACL_ERROR_RT_MEMORY_ALLOCATION, size, property);
      const Block small(kHugePage, property);
    }
  }
}

TEST_F(MallocPhysical, PHYS_29_BlocksAlreadyMadeSurviveAFailure) {
  const MappedBlock mapped;
  const std::vector<uint8_t> bytes = pattern(kHugePage);
  copy_in(mapped.start(), bytes);
  expect_block_refused(ACL_ERROR_RT_MEMORY_ALLOCATION, size_t{1} << 60, block_property());
  EXPECT_TRUE(copy_out(mapped.start(), bytes.size()) == bytes);
}

TEST_F(MallocPhysical, PHYS_30_PropertyIsOnlyReadAndOnlyDuringTheCall) {
  void* page = mmap(nullptr, 4 * kKiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto* property = new (page)
      aclrtPhysicalMemProp(block_property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, 1));
  ASSERT_EQ(mprotect(page, 4 * kKiB, PROT_READ), 0);
  const Block block(kHugePage, *property);
  ASSERT_EQ(munmap(page, 4 * kKiB), 0);

  aclrtPhysicalMemProp found = block_property(ACL_MEM_NORMAL, ACL_MEM_LOCATION_TYPE_HOST, 7);
  EXPECT_SUCCESS(aclrtMemGetAllocationPropertiesFromHandle(block.handle(), &found));
  EXPECT_EQ(found.memAttr, ACL_HBM_MEM_HUGE);
  EXPECT_EQ(found.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(found.location.id, 1u);
}

TEST_F(MallocPhysical, PHYS_30_ChangingThePropertyLaterDoesNotChangeTheBlock) {
  aclrtPhysicalMemProp property = block_property();
  const Block block(kHugePage, property);
  property = block_property(ACL_MEM_NORMAL, ACL_MEM_LOCATION_TYPE_HOST, 3);
  aclrtPhysicalMemProp found = property;
  EXPECT_SUCCESS(aclrtMemGetAllocationPropertiesFromHandle(block.handle(), &found));
  EXPECT_EQ(found.memAttr, ACL_HBM_MEM_HUGE);
  EXPECT_EQ(found.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(found.location.id, 0u);
}

TEST_F(MallocPhysical, PHYS_31_NeverMappedBlockAnswersPropertyQueries) {
  for (const aclrtMemLocationType location : kBlockLocations) {
    SCOPED_TRACE(location);
    const Block block(kHugePage, block_property(ACL_HBM_MEM_HUGE, location));
    aclrtPhysicalMemProp found = block_property(ACL_MEM_NORMAL, ACL_MEM_LOCATION_TYPE_MANAGED, 7);
    EXPECT_SUCCESS(aclrtMemGetAllocationPropertiesFromHandle(block.handle(), &found));
    EXPECT_EQ(found.memAttr, ACL_HBM_MEM_HUGE);
    EXPECT_EQ(found.location.type, location);
    EXPECT_EQ(found.location.id, 0u);
  }
}

}  // namespace
}  // namespace understudy_test::vmm
