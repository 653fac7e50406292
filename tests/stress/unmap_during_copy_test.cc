// SPDX-License-Identifier: Apache-2.0
//
// Copies run while another thread takes the mapping away and puts a new one in its place: each copy
// succeeds or answers 107000, and memory that was never its own does not change.
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "rules/live_mapping.h"
#include "stress/copy_answers.h"
#include "stress/threads.h"
#include "support/rule_test.h"
#include "support/sanitizers.h"

namespace understudy_test {
namespace {

using UnmapDuringCopy = DeviceTest;

const int kRounds = kSanitized ? 100 : 300;
constexpr size_t kBlockSize = kGranule;

aclrtDrvMemHandle map_new_block(void* place) {
  const aclrtDrvMemHandle block = create_block(kBlockSize);
  EXPECT_SUCCESS(aclrtMapMem(place, kBlockSize, 0, block, 0));
  return block;
}

// Takes the mapping at `target` away again and again. In between, a new block at `other` is likely
// to be given the storage that a late copy may still be writing to.
void replace_blocks(void* target, void* other, const CopyAnswers& answers) {
  aclrtDrvMemHandle block = map_new_block(target);
  for (int round = 0; round < kRounds && !testing::Test::HasFailure(); ++round) {
    wait_for_copies(answers, 2);
    EXPECT_SUCCESS(aclrtUnmapMem(target));
    EXPECT_SUCCESS(aclrtFreePhysical(block));

    const aclrtDrvMemHandle heir = map_new_block(other);
    EXPECT_SUCCESS(aclrtMemset(other, kBlockSize, 0x77, kBlockSize));
    wait_for_copies(answers, 2);
    EXPECT_TRUE(copy_out(other, kBlockSize) == std::vector<uint8_t>(kBlockSize, 0x77))
        << "a late copy wrote to a block that came after";
    EXPECT_SUCCESS(aclrtUnmapMem(other));
    EXPECT_SUCCESS(aclrtFreePhysical(heir));

    block = map_new_block(target);
  }
  EXPECT_SUCCESS(aclrtUnmapMem(target));
  EXPECT_SUCCESS(aclrtFreePhysical(block));
}

// `copies` are made on threads of their own, over and over, while the mapping comes and goes.
template <typename Copy>
void copy_while_blocks_are_replaced(int copiers, Copy copy) {
  const MemoryFigures before = memory_figures();
  {
    const Bystander bystander;
    void* const target = reserve(kBlockSize);
    void* const other = reserve(kBlockSize);
    std::atomic<bool> ended{false};
    CopyAnswers answers;
    run_on_threads(copiers + 1, [&](int index) {
      if (index == 0) {
        replace_blocks(target, other, answers);
        ended = true;
        return;
      }
      std::vector<uint8_t> host(kBlockSize, 0x11);
      while (!ended) answers.note(copy(target, host));
    });
    EXPECT_EQ(answers.unexpected, 0) << "for example " << answers.last_unexpected;
    bystander.expect_unchanged();
    EXPECT_SUCCESS(aclrtReleaseMemAddress(target));
    EXPECT_SUCCESS(aclrtReleaseMemAddress(other));
  }
  EXPECT_EQ(memory_figures(), before);
}

aclError copy_to(void* target, const std::vector<uint8_t>& host) {
  return aclrtMemcpy(target, kBlockSize, host.data(), kBlockSize, ACL_MEMCPY_HOST_TO_DEVICE);
}

aclError copy_from(const void* target, std::vector<uint8_t>& host) {
  return aclrtMemcpy(host.data(), kBlockSize, target, kBlockSize, ACL_MEMCPY_DEVICE_TO_HOST);
}

TEST_F(UnmapDuringCopy, CopiesToTheMapping) {
  copy_while_blocks_are_replaced(
      1, [](void* target, std::vector<uint8_t>& host) { return copy_to(target, host); });
}

TEST_F(UnmapDuringCopy, CopiesFromTheMapping) {
  copy_while_blocks_are_replaced(
      1, [](void* target, std::vector<uint8_t>& host) { return copy_from(target, host); });
}

TEST_F(UnmapDuringCopy, TwoThreadsCopyBothWaysAndSet) {
  copy_while_blocks_are_replaced(2, [](void* target, std::vector<uint8_t>& host) {
    const aclError to = copy_to(target, host);
    if (to != ACL_SUCCESS && to != ACL_ERROR_RT_PARAM_INVALID) return to;
    const aclError set = aclrtMemset(target, kBlockSize, 0x22, kBlockSize / 2);
    if (set != ACL_SUCCESS && set != ACL_ERROR_RT_PARAM_INVALID) return set;
    return copy_from(target, host);
  });
}

TEST_F(UnmapDuringCopy, TinyCopies) {
  copy_while_blocks_are_replaced(2, [](void* target, std::vector<uint8_t>& host) {
    const aclError to =
        aclrtMemcpy(at(target, kBlockSize - 8), 8, host.data(), 8, ACL_MEMCPY_HOST_TO_DEVICE);
    if (to != ACL_SUCCESS && to != ACL_ERROR_RT_PARAM_INVALID) return to;
    return aclrtMemcpy(host.data(), 8, target, 8, ACL_MEMCPY_DEVICE_TO_HOST);
  });
}

}  // namespace
}  // namespace understudy_test
