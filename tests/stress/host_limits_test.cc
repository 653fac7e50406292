// SPDX-License-Identifier: Apache-2.0
//
// The host's limits: too little memory is 207001 and never a signal, large mappings stay out of
// core dumps and forks, the CPU stays out of device memory.
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "rules/live_mapping.h"
#include "stress/process_status.h"
#include "support/rule_test.h"
#include "support/sanitizers.h"

namespace understudy_test {
namespace {

constexpr size_t kBudget = 64 * kMiB;
constexpr size_t kBlockSize = 4 * kMiB;
constexpr size_t kBlocksInBudget = kBudget / kBlockSize;

// Twice as many blocks as the budget has room for, created and mapped but not touched.
class LazyBlocks {
 public:
  static constexpr size_t kCount = 2 * kBlocksInBudget;

  LazyBlocks() : range_(reserve(kCount * kBlockSize)) {
    for (size_t i = 0; i < kCount; ++i) {
      handles_.push_back(create_block(kBlockSize));
      EXPECT_SUCCESS(aclrtMapMem(place(i), kBlockSize, 0, handles_[i], 0));
    }
  }
  ~LazyBlocks() {
    for (size_t i = 0; i < kCount; ++i) drop(i);
    EXPECT_SUCCESS(aclrtReleaseMemAddress(range_));
  }
  LazyBlocks(const LazyBlocks&) = delete;
  LazyBlocks& operator=(const LazyBlocks&) = delete;

  void* place(size_t index) const { return at(range_, index * kBlockSize); }
  void drop(size_t index) {
    if (handles_[index] == nullptr) return;
    EXPECT_SUCCESS(aclrtUnmapMem(place(index)));
    EXPECT_SUCCESS(aclrtFreePhysical(handles_[index]));
    handles_[index] = nullptr;
  }

 private:
  void* const range_;
  std::vector<aclrtDrvMemHandle> handles_;
};

// `fill(place, value)` writes a whole block.
template <typename Fill>
void expect_budget_is_kept(Fill fill) {
  const DeviceSession session;
  const MemoryFigures before = memory_figures();
  {
    LazyBlocks blocks;
    const MemoryFigures created = memory_figures();
    size_t filled = 0;
    aclError code = ACL_SUCCESS;
    while (filled < LazyBlocks::kCount &&
           (code = fill(blocks.place(filled), static_cast<uint8_t>(filled + 1))) == ACL_SUCCESS) {
      ++filled;
    }
    EXPECT_EQ(code, ACL_ERROR_RT_MEMORY_ALLOCATION);
    EXPECT_NE(recent_error(), "");
    EXPECT_LE(filled, kBlocksInBudget);
    ASSERT_GE(filled, size_t{4});
    EXPECT_EQ(memory_figures(), created) << "the device has memory enough, only the host has not";

    for (size_t i = 0; i < filled; ++i) {
      EXPECT_TRUE(copy_out(blocks.place(i), kBlockSize) ==
                  std::vector<uint8_t>(kBlockSize, static_cast<uint8_t>(i + 1)))
          << "block " << i;
    }
    // Reading what was never written needs no host memory.
    EXPECT_EQ(copy_out(blocks.place(LazyBlocks::kCount - 1), kPage).size(), kPage);

    blocks.drop(0);
    blocks.drop(1);
    EXPECT_SUCCESS(aclrtMemset(blocks.place(filled), kGranule, 0x66, kGranule));
    EXPECT_TRUE(copy_out(blocks.place(filled), kGranule) == std::vector<uint8_t>(kGranule, 0x66));
  }
  EXPECT_EQ(memory_figures(), before);
}

TEST(HostLimits, SetsBeyondTheBudgetAreOutOfMemory) {
  US_FRESH_PROCESS({"UNDERSTUDY_HOST_BUDGET", "64M"});
  expect_budget_is_kept(
      [](void* place, uint8_t value) { return aclrtMemset(place, kBlockSize, value, kBlockSize); });
}

TEST(HostLimits, CopiesBeyondTheBudgetAreOutOfMemory) {
  US_FRESH_PROCESS({"UNDERSTUDY_HOST_BUDGET", "64M"});
  expect_budget_is_kept([](void* place, uint8_t value) {
    const std::vector<uint8_t> bytes(kBlockSize, value);
    return aclrtMemcpy(place, kBlockSize, bytes.data(), kBlockSize, ACL_MEMCPY_HOST_TO_DEVICE);
  });
}

TEST(HostLimits, OneSetLargerThanTheBudgetIsOutOfMemoryAndASmallerOneIsNot) {
  US_FRESH_PROCESS({"UNDERSTUDY_HOST_BUDGET", "64M"});
  const DeviceSession session;
  const LiveMapping block(2 * kBudget);
  EXPECT_FAILS(ACL_ERROR_RT_MEMORY_ALLOCATION,
               aclrtMemset(block.data(), block.size(), 1, block.size()));
  EXPECT_SUCCESS(aclrtMemset(block.data(), block.size(), 2, kGranule));
  EXPECT_TRUE(copy_out(block.data(), kGranule) == std::vector<uint8_t>(kGranule, 2));
}

TEST(HostLimits, EagerBlockBeyondTheBudgetIsOutOfMemory) {
  US_FRESH_PROCESS({"UNDERSTUDY_HOST_BUDGET", "64M"}, {"UNDERSTUDY_COMMIT", "eager"});
  const DeviceSession session;
  const MemoryFigures before = memory_figures();
  const aclrtPhysicalMemProp property = block_property();
  aclrtDrvMemHandle none = nullptr;
  EXPECT_FAILS(ACL_ERROR_RT_MEMORY_ALLOCATION,
               aclrtMallocPhysical(&none, 2 * kBudget, &property, 0));
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(memory_figures(), before);

  std::vector<aclrtDrvMemHandle> blocks;
  aclError code = ACL_SUCCESS;
  while (blocks.size() <= kBlocksInBudget) {
    aclrtDrvMemHandle block = nullptr;
    code = aclrtMallocPhysical(&block, kBlockSize, &property, 0);
    if (code != ACL_SUCCESS) break;
    blocks.push_back(block);
  }
  EXPECT_EQ(code, ACL_ERROR_RT_MEMORY_ALLOCATION);
  ASSERT_GE(blocks.size(), size_t{1});
  EXPECT_LE(blocks.size(), kBlocksInBudget);

  EXPECT_SUCCESS(aclrtFreePhysical(blocks.back()));
  blocks.back() = create_block(kBlockSize);
  for (const aclrtDrvMemHandle block : blocks) EXPECT_SUCCESS(aclrtFreePhysical(block));
  EXPECT_EQ(memory_figures(), before);
}

size_t number_in(const std::string& path) {
  std::ifstream file(path);
  size_t value = 0;
  file >> value;
  return value;
}

TEST(HostLimits, HugetlbWithoutPoolIsOutOfMemory) {
  const std::string pool = "/sys/kernel/mm/hugepages/hugepages-2048kB/";
  if (number_in(pool + "free_hugepages") != 0 || number_in(pool + "nr_overcommit_hugepages") != 0) {
    GTEST_SKIP() << "this machine has 2 MiB pages to give";
  }
  US_FRESH_PROCESS({"UNDERSTUDY_BACKING", "hugetlb"});
  const DeviceSession session;
  const MemoryFigures before = memory_figures();
  const aclrtPhysicalMemProp property = block_property();
  aclrtDrvMemHandle block = nullptr;
  aclError code = aclrtMallocPhysical(&block, kGranule, &property, 0);
  if (code == ACL_SUCCESS) {
    void* const range = reserve(kGranule);
    ASSERT_SUCCESS(aclrtMapMem(range, kGranule, 0, block, 0));
    code = aclrtMemset(range, kGranule, 1, kGranule);
    EXPECT_SUCCESS(aclrtUnmapMem(range));
    EXPECT_SUCCESS(aclrtFreePhysical(block));
    EXPECT_SUCCESS(aclrtReleaseMemAddress(range));
  }
  EXPECT_EQ(code, ACL_ERROR_RT_MEMORY_ALLOCATION);
  EXPECT_EQ(memory_figures(), before);
}

TEST(HostLimits, LargeReservationsWorkWithLittleAddressSpace) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer cannot live with a limited address space";
  US_FRESH_PROCESS({"UNDERSTUDY_DEVICES", "1"});
  limit_process(RLIMIT_AS, status_bytes("VmSize") + 512 * kMiB);
  const DeviceSession session;
  void* const range = reserve(kTiB);
  const aclrtDrvMemHandle block = create_block(kGranule);
  for (void* const place : {range, at(range, kTiB - kGranule)}) {
    ASSERT_SUCCESS(aclrtMapMem(place, kGranule, 0, block, 0));
    copy_in(place, pattern(kGranule));
    EXPECT_TRUE(copy_out(place, kGranule) == pattern(kGranule));
    EXPECT_SUCCESS(aclrtUnmapMem(place));
  }
  EXPECT_SUCCESS(aclrtFreePhysical(block));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range));
}

// Growing a file beyond this limit raises SIGXFSZ, which would end the fresh process.
TEST(HostLimits, SmallFileSizeLimitRaisesNoSignal) {
  US_FRESH_PROCESS({"UNDERSTUDY_DEVICES", "1"});
  limit_process(RLIMIT_FSIZE, 4 * kMiB);
  const DeviceSession session;
  const auto is_defined = [](aclError code) {
    return code == ACL_SUCCESS || code == ACL_ERROR_RT_MEMORY_ALLOCATION;
  };
  constexpr size_t kSize = 16 * kMiB;
  const aclrtPhysicalMemProp property = block_property();
  aclrtDrvMemHandle block = nullptr;
  const aclError created = aclrtMallocPhysical(&block, kSize, &property, 0);
  EXPECT_TRUE(is_defined(created)) << created;
  if (created != ACL_SUCCESS) return;
  void* const range = reserve(kSize);
  ASSERT_SUCCESS(aclrtMapMem(range, kSize, 0, block, 0));
  const aclError set = aclrtMemset(range, kSize, 7, kSize);
  EXPECT_TRUE(is_defined(set)) << set;
  if (set == ACL_SUCCESS) {
    EXPECT_TRUE(copy_out(range, kSize) == std::vector<uint8_t>(kSize, 7));
  }
  EXPECT_SUCCESS(aclrtUnmapMem(range));
  EXPECT_SUCCESS(aclrtFreePhysical(block));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range));
}

// A mapping of this process as /proc/self/smaps describes it.
struct HostMapping {
  std::string header;
  size_t size;
  std::string flags;  // two letters each, with blanks around them
};

std::vector<HostMapping> host_mappings() {
  std::vector<HostMapping> mappings;
  std::ifstream file("/proc/self/smaps");
  for (std::string line; std::getline(file, line);) {
    unsigned long start = 0;
    unsigned long end = 0;
    if (sscanf(line.c_str(), "%lx-%lx ", &start, &end) == 2) {
      mappings.push_back({line, end - start, ""});
    } else if (line.starts_with("VmFlags:") && !mappings.empty()) {
      mappings.back().flags = line.substr(8) + " ";
    }
  }
  return mappings;
}

using HostMemory = DeviceTest;

TEST_F(HostMemory, LargeDeviceMappingsStayOutOfCoreDumpsAndForks) {
  const LiveMapping block(2 * kGiB);
  copy_in(block.data(), pattern(kPage));
  int large = 0;
  for (const HostMapping& mapping : host_mappings()) {
    if (mapping.size <= kGiB || mapping.header.find("/memfd:") == std::string::npos) continue;
    SCOPED_TRACE(mapping.header);
    EXPECT_NE(mapping.flags.find(" dd "), std::string::npos) << mapping.flags;
    EXPECT_NE(mapping.flags.find(" dc "), std::string::npos) << mapping.flags;
    ++large;
  }
  if (!kSanitized) {
    EXPECT_GE(large, 1) << "the device's storage is not where this test looks for it";
  }
}

// A sanitizer reports the fault itself and exits.
bool faulted(int status) {
  if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGSEGV;
  return kSanitized && WIFEXITED(status) && WEXITSTATUS(status) != 0;
}

TEST_F(HostMemory, HostLoadFromADeviceAddressFaults) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const LiveMapping block;
  copy_in(block.data(), pattern(kPage));
  ASSERT_FALSE(cpu_can_read(block.data()));
  EXPECT_EXIT((void)*static_cast<volatile uint8_t*>(block.data()), faulted, "");
}

TEST_F(HostMemory, HostLoadFromAReservedAddressFaults) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  void* const range = reserve(kGranule);
  ASSERT_FALSE(cpu_can_read(range));
  EXPECT_EXIT((void)*static_cast<volatile uint8_t*>(range), faulted, "");
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range));
}

TEST(HostPoison, FreshMemoryShowsThePatternBeforeAndAfterItIsUsedAgain) {
  US_FRESH_PROCESS({"UNDERSTUDY_POISON", "on"});
  const DeviceSession session;
  for (const aclrtMemAttr attribute : {ACL_HBM_MEM_HUGE, ACL_MEM_NORMAL}) {
    SCOPED_TRACE(attribute);
    std::vector<uint8_t> fresh;
    {
      const LiveMapping block(kGranule, block_property(attribute));
      fresh = copy_out(block.data(), kGranule);
      EXPECT_SUCCESS(aclrtMemset(block.data(), kGranule, 0, kGranule));
    }
    EXPECT_TRUE(std::any_of(fresh.begin(), fresh.end(), [](uint8_t byte) { return byte != 0; }));

    const LiveMapping recycled(kGranule, block_property(attribute));
    EXPECT_TRUE(copy_out(recycled.data(), kGranule) == fresh);
    copy_in(recycled.at(kPage), pattern(16));
    EXPECT_TRUE(copy_out(recycled.data(), kPage) ==
                std::vector<uint8_t>(fresh.begin(), fresh.begin() + kPage))
        << "the first write to a granule shows the pattern around it";
  }
}

}  // namespace
}  // namespace understudy_test
