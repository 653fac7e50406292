// SPDX-License-Identifier: Apache-2.0
//
// Memory that runs out, of the device and of the host, in the middle of mixed work: the call that
// meets the end answers 207001 and takes nothing, what still fits is still given, and what is freed
// can be had again to the last byte.
#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "rules/allocation_objects.h"
#include "rules/host_objects.h"
#include "support/rule_test.h"
#include "support/sanitizers.h"

namespace understudy_test {
namespace {

constexpr aclError kOutOfMemory = ACL_ERROR_RT_MEMORY_ALLOCATION;
const int kSteps = kSanitized ? 1500 : 6000;

enum class Kind { kDevice, kHost, kPhysical };

// Objects of all kinds, alive until they are dropped.
class Workload {
 public:
  explicit Workload(uint64_t seed) : random_(seed) {}
  ~Workload() { drop_some(1); }
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  size_t pick(size_t count) { return random_() % count; }

  aclError allocate(size_t size, aclrtMemMallocPolicy policy) {
    void* data = nullptr;
    return keep(Kind::kDevice, data, aclrtMalloc(&data, size, policy), size);
  }
  aclError allocate_on_host(size_t size) {
    void* data = nullptr;
    return keep(Kind::kHost, data, aclrtMallocHost(&data, size), size);
  }
  aclError create(size_t size, aclrtMemAttr attribute) {
    const aclrtPhysicalMemProp property = block_property(attribute);
    aclrtDrvMemHandle handle = nullptr;
    return keep(Kind::kPhysical, handle, aclrtMallocPhysical(&handle, size, &property, 0), size);
  }

  // One of them, of any kind and of a size that suits a device of 64 MiB.
  aclError allocate_something() {
    static constexpr aclrtMemAttr kAttributes[] = {ACL_HBM_MEM_HUGE, ACL_MEM_NORMAL};
    switch (pick(8)) {
      case 0:
        return allocate_on_host(1 + pick(64 * kKiB));
      case 1:
        return create((1 + pick(3)) * kGranule, kAttributes[pick(2)]);
      case 2:
        return allocate(kMiB + 1 + pick(8 * kMiB), kBasePolicies[pick(kBasePolicies.size())]);
      default:
        return allocate(1 + pick(700 * kKiB), kBasePolicies[pick(kBasePolicies.size())]);
    }
  }

  // One in `of` objects, at random.
  void drop_some(size_t of) {
    std::vector<Object> stay;
    for (const Object& object : objects_) {
      if (pick(of) != 0) {
        stay.push_back(object);
        continue;
      }
      switch (object.kind) {
        case Kind::kDevice:
          EXPECT_SUCCESS(aclrtFree(object.data));
          break;
        case Kind::kHost:
          EXPECT_SUCCESS(aclrtFreeHost(object.data));
          break;
        case Kind::kPhysical:
          EXPECT_SUCCESS(aclrtFreePhysical(object.data));
          break;
      }
    }
    objects_ = std::move(stay);
  }

  // A live allocation of the device, or nothing.
  std::pair<void*, size_t> some_allocation() {
    if (objects_.empty()) return {};
    const Object& object = objects_[pick(objects_.size())];
    if (object.kind != Kind::kDevice) return {};
    return {object.data, object.size};
  }

 private:
  struct Object {
    Kind kind;
    void* data;
    size_t size;
  };

  aclError keep(Kind kind, void*& data, aclError code, size_t size) {
    if (code == ACL_SUCCESS) objects_.push_back({kind, data, size});
    return code;
  }

  std::mt19937_64 random_;
  std::vector<Object> objects_;
};

// All that is left of a kind of pages can be had, and one page more cannot.
void expect_exactly_the_rest_fits(aclrtMemAttr kind, aclrtMemMallocPolicy policy, size_t page) {
  const size_t left = free_bytes(kind);
  void* data = nullptr;
  EXPECT_EQ(aclrtMallocAlign32(&data, left + page, policy), kOutOfMemory);
  if (left == 0) return;
  EXPECT_SUCCESS(aclrtMallocAlign32(&data, left, policy));
  EXPECT_EQ(free_bytes(kind), 0u);
  EXPECT_SUCCESS(aclrtFree(data));
  EXPECT_EQ(free_bytes(kind), left);
}

void run_into_the_end_of_the_device(uint64_t seed) {
  const DeviceSession session;
  const MemoryFigures before = memory_figures();
  int refusals = 0;
  {
    Workload work(seed);
    for (int step = 0; step < kSteps && !testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE(testing::Message() << "step " << step << " of seed " << seed);
      const MemoryFigures figures = memory_figures();
      const aclError code = work.allocate_something();
      if (code == ACL_SUCCESS) continue;
      ASSERT_EQ(code, kOutOfMemory) << recent_error();
      EXPECT_EQ(memory_figures(), figures);
      expect_exactly_the_rest_fits(ACL_HBM_MEM_NORMAL, ACL_MEM_MALLOC_NORMAL_ONLY, kNormalPage);
      expect_exactly_the_rest_fits(ACL_HBM_MEM_HUGE, ACL_MEM_MALLOC_HUGE_ONLY, kHugePage);
      EXPECT_EQ(memory_figures(), figures);
      ++refusals;
      if (refusals % 10 == 0) work.drop_some(3);
    }
  }
  EXPECT_GT(refusals, kSteps / 20);
  EXPECT_EQ(memory_figures(), before);
}

#define US_SMALL_DEVICE() \
  US_FRESH_PROCESS({"UNDERSTUDY_MEMORY", "64M"}, {"UNDERSTUDY_NORMAL_MEMORY", "16M"})

TEST(OutOfMemory, MixedWorkOnASmallDeviceWithSeed1) {
  US_SMALL_DEVICE();
  run_into_the_end_of_the_device(1);
}

TEST(OutOfMemory, MixedWorkOnASmallDeviceWithSeed2) {
  US_SMALL_DEVICE();
  run_into_the_end_of_the_device(2);
}

#undef US_SMALL_DEVICE

// ---- Host memory that runs out when it is touched ----

constexpr size_t kBudget = 64 * kMiB;

#define US_SMALL_BUDGET() \
  US_FRESH_PROCESS({"UNDERSTUDY_HOST_BUDGET", "64M"}, {"UNDERSTUDY_MEMORY", "2G"})

// Nothing is lost as long as all of the budget can be used at once.
void expect_whole_budget_is_there() {
  const DeviceBlock block(kBudget, ACL_MEM_MALLOC_HUGE_ONLY, kMallocAlign32);
  EXPECT_SUCCESS(aclrtMemset(block.data(), kBudget, 0x42, kBudget));
  EXPECT_EQ(copy_out(block.at(kBudget - 1), 1)[0], 0x42);
}

void expect_set_fails_until_memory_is_freed(size_t size, aclrtMemMallocPolicy policy) {
  SCOPED_TRACE(testing::Message() << "blocks of " << size);
  const MemoryFigures before = memory_figures();
  {
    std::vector<std::unique_ptr<DeviceBlock>> blocks;
    const size_t more_than_fit = 2 * kBudget / size;
    for (size_t i = 0; i < more_than_fit; ++i) {
      blocks.push_back(std::make_unique<DeviceBlock>(size, policy, kMallocAlign32));
    }
    const MemoryFigures allocated = memory_figures();
    size_t filled = 0;
    aclError code = ACL_SUCCESS;
    while (filled < blocks.size()) {
      code = aclrtMemset(blocks[filled]->data(), size, static_cast<int32_t>(filled), size);
      if (code != ACL_SUCCESS) break;
      ++filled;
    }
    ASSERT_EQ(code, kOutOfMemory);
    EXPECT_EQ(memory_figures(), allocated);
    EXPECT_FAILS(kOutOfMemory, aclrtMemset(blocks[filled]->data(), size, 1, size));
    for (size_t i = 0; i < filled; ++i) {
      EXPECT_EQ(copy_out(blocks[i]->at(size - 1), 1)[0], static_cast<uint8_t>(i)) << i;
    }
    void* const refused = blocks[filled]->data();
    // Half of them, so that whole granules become free also where blocks share them.
    for (size_t i = 0; i < filled / 2; ++i) blocks[i].reset();
    EXPECT_SUCCESS(aclrtMemset(refused, size, 0x55, size));
    EXPECT_TRUE(copy_out(refused, size) == std::vector<uint8_t>(size, 0x55));
  }
  EXPECT_EQ(memory_figures(), before);
  expect_whole_budget_is_there();
}

TEST(OutOfMemory, SetOfALargeBlockFailsUntilHostMemoryIsFreed) {
  US_SMALL_BUDGET();
  const DeviceSession session;
  expect_set_fails_until_memory_is_freed(4 * kMiB, ACL_MEM_MALLOC_HUGE_ONLY);
}

TEST(OutOfMemory, SetOfASmallBlockFailsUntilHostMemoryIsFreed) {
  US_SMALL_BUDGET();
  const DeviceSession session;
  for (const size_t size : {64 * kKiB, 680 * kKiB, kMiB}) {
    expect_set_fails_until_memory_is_freed(size, ACL_MEM_MALLOC_NORMAL_ONLY);
  }
}

TEST(OutOfMemory, HostBlocksAndDeviceMemoryShareTheBudget) {
  US_SMALL_BUDGET();
  const DeviceSession session;
  const MemoryFigures before = memory_figures();
  {
    const DeviceBlock device(kBudget / 2, ACL_MEM_MALLOC_HUGE_ONLY, kMallocAlign32);
    EXPECT_SUCCESS(aclrtMemset(device.data(), kBudget / 2, 1, kBudget / 2));
    const HostBlock host(kBudget / 2);
    void* more = nullptr;
    for (const size_t size : {size_t{1}, 3 * kMiB, kBudget}) {
      EXPECT_FAILS(kOutOfMemory, aclrtMallocHost(&more, size));
    }
    EXPECT_EQ(more, nullptr);
  }
  EXPECT_EQ(memory_figures(), before);
  { const HostBlock all_of_it(kBudget); }
  expect_whole_budget_is_there();
}

TEST(OutOfMemory, MixedWorkLosesNothingOfTheBudget) {
  US_SMALL_BUDGET();
  const DeviceSession session;
  const MemoryFigures before = memory_figures();
  int refusals = 0;
  {
    Workload work(7);
    for (int step = 0; step < kSteps / 3 && !testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE(step);
      const MemoryFigures figures = memory_figures();
      aclError code = work.pick(3) == 0
                          ? work.allocate_on_host(1 + work.pick(4 * kMiB))
                          : work.allocate(1 + work.pick(3 * kMiB), ACL_MEM_MALLOC_HUGE_FIRST);
      if (const auto [data, size] = work.some_allocation();
          code == ACL_SUCCESS && data != nullptr) {
        code = aclrtMemset(data, size, step & 0xFF, size);
      } else if (code != ACL_SUCCESS) {
        EXPECT_EQ(memory_figures(), figures);
      }
      if (code == ACL_SUCCESS) continue;
      ASSERT_EQ(code, kOutOfMemory) << recent_error();
      ++refusals;
      work.drop_some(4);
    }
  }
  EXPECT_GT(refusals, 10);
  EXPECT_EQ(memory_figures(), before);
  expect_whole_budget_is_there();
}

#undef US_SMALL_BUDGET

}  // namespace
}  // namespace understudy_test
