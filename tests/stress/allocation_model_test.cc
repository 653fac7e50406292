// SPDX-License-Identifier: Apache-2.0
//
// Long random sequences of allocations, frees, sets, copies and registrations, valid and not, made
// on the real library and on a simple model of it; codes, ranges, figures and bytes must agree.
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "rules/allocation_objects.h"
#include "rules/host_objects.h"
#include "support/rule_test.h"
#include "support/sanitizers.h"

namespace understudy_test {
namespace {

const int kSteps = kSanitized ? 3000 : 12000;
constexpr aclError kInvalidParam = ACL_ERROR_RT_PARAM_INVALID;
constexpr aclError kAlreadyRegistered = 507910;
constexpr aclError kNotRegistered = 507911;
constexpr size_t kMostBlocks = 60;
constexpr size_t kWindow = 512;  // bytes at either end of a block that the model remembers
constexpr size_t kOwnPages = 32;

struct Block {
  size_t size = 0;  // what may be used
  size_t page = 0;  // 0: on the host
  size_t charged = 0;
  std::vector<uint8_t> head;
  std::vector<uint8_t> tail;

  // The remembered bytes from an offset on.
  uint8_t* at(size_t offset) {
    return offset < head.size() ? &head[offset] : &tail[offset - (size - tail.size())];
  }
};

class RandomAllocations {
 public:
  explicit RandomAllocations(uint64_t seed)
      : seed_(seed),
        random_(seed),
        normal_(free_bytes(ACL_HBM_MEM_NORMAL)),
        huge_(free_bytes(ACL_HBM_MEM_HUGE)) {}

  void run() {
    for (step_ = 0; step_ < kSteps && !testing::Test::HasFailure(); ++step_) {
      SCOPED_TRACE(testing::Message() << "step " << step_ << " of seed " << seed_);
      make_a_call();
      EXPECT_EQ(free_bytes(ACL_HBM_MEM_NORMAL), normal_);
      EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE), huge_);
    }
    for (const auto& [start, size] : registered_) {
      EXPECT_SUCCESS(aclrtHostUnregister(address(start)));
    }
    while (!blocks_.empty()) free_block(blocks_.begin()->first);
  }

 private:
  size_t pick(size_t count) { return random_() % count; }
  auto some_block() {
    return std::next(blocks_.begin(), static_cast<ptrdiff_t>(pick(blocks_.size())));
  }

  void make_a_call() {
    if (blocks_.empty()) return allocate();
    switch (pick(12)) {
      case 0:
      case 1:
        return allocate();
      case 2:
        return allocate_on_host();
      case 3:
        return free_block(some_block()->first);
      case 4:
        return free_wrongly();
      case 5:
        return set();
      case 6:
        return write();
      case 7:
        return read();
      case 8:
        return copy();
      case 9:
        return ask();
      case 10:
        return register_own();
      default:
        return unregister_own();
    }
  }

  // ---- Allocation ----

  // What the policy table gives: the page size, or 0 if memory does not suffice.
  size_t page_for(aclrtMemMallocPolicy policy, size_t asked, size_t usable) const {
    const bool normal_fits = rounded_up(usable, kNormalPage) <= normal_;
    const bool huge_fits = rounded_up(usable, kHugePage) <= huge_;
    switch (policy) {
      case ACL_MEM_MALLOC_NORMAL_ONLY:
        return normal_fits ? kNormalPage : 0;
      case ACL_MEM_MALLOC_HUGE_ONLY:
        return huge_fits ? kHugePage : 0;
      default:
        if (asked > kMiB && huge_fits) return kHugePage;
        return normal_fits ? kNormalPage : 0;
    }
  }

  void allocate() {
    static constexpr aclrtMemMallocPolicy kPolicies[] = {
        ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEM_MALLOC_NORMAL_ONLY, ACL_MEM_MALLOC_HUGE_ONLY};
    static constexpr size_t kLimits[] = {100, 5000, 70'000, kMiB + 2, 6 * kMiB};
    const size_t asked = 1 + pick(kLimits[pick(std::size(kLimits))]);
    const aclrtMemMallocPolicy policy = kPolicies[pick(std::size(kPolicies))];
    const size_t usable = padded_size(kMalloc, asked);
    const size_t page = blocks_.size() < kMostBlocks ? page_for(policy, asked, usable) : 0;
    if (blocks_.size() >= kMostBlocks) return free_block(some_block()->first);
    void* data = untouched_address();
    const aclError code = aclrtMalloc(&data, asked, policy);
    ASSERT_EQ(code, page != 0 ? ACL_SUCCESS : ACL_ERROR_RT_MEMORY_ALLOCATION) << recent_error();
    if (page == 0) {
      EXPECT_EQ(data, untouched_address());
      return;
    }
    const size_t charged = rounded_up(usable, page);
    (page == kNormalPage ? normal_ : huge_) -= charged;
    enter(data, {usable, page, charged, {}, {}});
  }

  void allocate_on_host() {
    if (blocks_.size() >= kMostBlocks) return;
    const size_t size = 1 + pick(pick(4) == 0 ? 4 * kMiB : 20'000);
    void* data = nullptr;
    ASSERT_SUCCESS(aclrtMallocHost(&data, size));
    enter(data, {size, 0, 0, {}, {}});
  }

  void enter(void* data, Block block) {
    const uint64_t start = number(data);
    const auto next = blocks_.lower_bound(start);
    EXPECT_TRUE(next == blocks_.end() || start + block.size <= next->first) << "overlap";
    EXPECT_TRUE(next == blocks_.begin() ||
                std::prev(next)->first + std::prev(next)->second.size <= start)
        << "overlap";
    block.head.resize(std::min(kWindow, block.size), 0);
    block.tail.resize(std::min(kWindow, block.size - block.head.size()), 0);
    EXPECT_SUCCESS(aclrtMemset(data, block.size, 0, block.head.size()));
    if (!block.tail.empty()) {
      void* const tail = at(data, block.size - block.tail.size());
      EXPECT_SUCCESS(aclrtMemset(tail, block.tail.size(), 0, block.tail.size()));
    }
    stale_.push_back(start);
    if (stale_.size() > 100) stale_.erase(stale_.begin());
    blocks_[start] = std::move(block);
  }

  void free_block(uint64_t start) {
    const Block& block = blocks_.at(start);
    const bool host = block.page == 0;
    // The other kind's function does not free it.
    EXPECT_EQ(host ? aclrtFree(address(start)) : aclrtFreeHost(address(start)), kInvalidParam);
    EXPECT_SUCCESS(host ? aclrtFreeHost(address(start)) : aclrtFree(address(start)));
    if (!host) (block.page == kNormalPage ? normal_ : huge_) += block.charged;
    blocks_.erase(start);
  }

  void free_wrongly() {
    const uint64_t start =
        stale_.empty() || pick(2) == 0 ? some_block()->first + 64 : stale_[pick(stale_.size())];
    if (blocks_.contains(start)) return;
    EXPECT_EQ(aclrtFree(address(start)), kInvalidParam);
    EXPECT_EQ(aclrtFreeHost(address(start)), kInvalidParam);
  }

  // ---- Bytes ----

  struct Part {
    uint64_t start;
    size_t count;
    uint8_t* model;
  };
  // Some bytes in the head or in the tail of a block.
  Part some_part() {
    auto& [start, block] = *some_block();
    const bool head = block.tail.empty() || pick(2) == 0;
    const size_t room = head ? block.head.size() : block.tail.size();
    const size_t offset = pick(room);
    const size_t from_start = offset + (head ? 0 : block.size - block.tail.size());
    return {start + from_start, 1 + pick(room - offset), block.at(from_start)};
  }

  void set() {
    const Part part = some_part();
    const auto value = static_cast<uint8_t>(random_());
    EXPECT_SUCCESS(aclrtMemset(address(part.start), part.count, value, part.count));
    memset(part.model, value, part.count);
  }

  void write() {
    if (pick(4) == 0) return write_behind_the_end();
    const Part part = some_part();
    const std::vector<uint8_t> bytes = pattern(part.count, static_cast<uint8_t>(random_()));
    copy_in(address(part.start), bytes);
    memcpy(part.model, bytes.data(), bytes.size());
  }

  void write_behind_the_end() {
    const auto& [start, block] = *some_block();
    if (block.page == 0) return;
    const size_t inside = pick(std::min<size_t>(block.size, 64) + 1);
    const std::vector<uint8_t> bytes(inside + 1 + pick(64), 0xEE);
    void* const to = address(start + block.size - inside);
    // With no byte inside it may be the start of a neighbour.
    if (inside == 0) return;
    EXPECT_EQ(aclrtMemcpy(to, bytes.size(), bytes.data(), bytes.size(), ACL_MEMCPY_HOST_TO_DEVICE),
              kInvalidParam);
    EXPECT_EQ(aclrtMemset(to, bytes.size(), 0xEE, bytes.size()), kInvalidParam);
  }

  void read() {
    const Part part = some_part();
    const std::vector<uint8_t> bytes = copy_out(address(part.start), part.count);
    EXPECT_EQ(memcmp(bytes.data(), part.model, part.count), 0);
  }

  void copy() {
    const Part from = some_part();
    const Part to = some_part();
    const size_t count = std::min(from.count, to.count);
    EXPECT_SUCCESS(aclrtMemcpy(address(to.start), count, address(from.start), count,
                               ACL_MEMCPY_DEVICE_TO_DEVICE));
    memmove(to.model, from.model, count);
  }

  // ---- Questions ----

  void ask() {
    const auto& [start, block] = *some_block();
    expect_address_range(address(start + pick(block.size)), address(start), block.size);
    if (block.page == 0) return expect_at_host(address(start));
    expect_at_device(address(start + block.size - 1), 0, static_cast<uint32_t>(block.page));
    const uint64_t stale = stale_[pick(stale_.size())];
    const auto next = blocks_.upper_bound(stale);
    const bool live =
        next != blocks_.begin() && stale < std::prev(next)->first + std::prev(next)->second.size;
    if (!live) expect_no_address_range(address(stale));
  }

  // ---- Registration of memory of the test's own ----

  void register_own() {
    const size_t first = pick(kOwnPages);
    const size_t count = 1 + pick(std::min<size_t>(kOwnPages - first, 6));
    const uint64_t start = number(own_.at(first * kPage));
    const size_t size = count * kPage - pick(kPage);
    bool overlaps = false;
    for (const auto& [other, other_size] : registered_) {
      overlaps = overlaps || (start < other + other_size && other < start + size);
    }
    void* device = nullptr;
    const aclError code =
        aclrtHostRegister(address(start), size, ACL_HOST_REGISTER_MAPPED, &device);
    ASSERT_EQ(code, overlaps ? kAlreadyRegistered : ACL_SUCCESS) << recent_error();
    if (!overlaps) registered_[start] = size;
  }

  void unregister_own() {
    const uint64_t start = number(own_.at(pick(kOwnPages) * kPage));
    const bool known = registered_.erase(start) == 1;
    EXPECT_EQ(aclrtHostUnregister(address(start)), known ? ACL_SUCCESS : kNotRegistered);
  }

  const uint64_t seed_;
  int step_ = 0;
  std::mt19937_64 random_;
  size_t normal_;
  size_t huge_;
  std::map<uint64_t, Block> blocks_;  // by start
  std::vector<uint64_t> stale_;       // starts of blocks, dead or alive
  const OwnMemory own_{kOwnPages * kPage};
  std::map<uint64_t, size_t> registered_;
};

void compare_with_the_model(uint64_t seed) {
  const DeviceSession session;
  const MemoryFigures before = memory_figures();
  RandomAllocations(seed).run();
  EXPECT_EQ(memory_figures(), before);
}

#define US_SMALL_DEVICE() \
  US_FRESH_PROCESS({"UNDERSTUDY_MEMORY", "64M"}, {"UNDERSTUDY_NORMAL_MEMORY", "16M"})

TEST(AllocationModel, AgreesWithSeed1) {
  US_SMALL_DEVICE();
  compare_with_the_model(1);
}

TEST(AllocationModel, AgreesWithSeed2) {
  US_SMALL_DEVICE();
  compare_with_the_model(2);
}

TEST(AllocationModel, AgreesWithSeed20260101) {
  US_SMALL_DEVICE();
  compare_with_the_model(20260101);
}

#undef US_SMALL_DEVICE

}  // namespace
}  // namespace understudy_test
