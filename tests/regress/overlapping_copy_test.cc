// SPDX-License-Identifier: Apache-2.0
//
// Copies whose ranges overlap across mappings once read what they had just written, and took bytes
// of untouched memory for bytes to keep.
#include <algorithm>

#include "support/rule_test.h"

namespace understudy_test {
namespace {

constexpr size_t kGranule = 2 * kMiB;
constexpr size_t kBlocks = 3;
constexpr uint8_t kPoison = 0xA5;

// Three blocks side by side in one reservation.
class Mappings {
 public:
  Mappings() {
    EXPECT_SUCCESS(aclrtSetDevice(0));
    base_ = reserve(kBlocks * kGranule);
    for (size_t i = 0; i < kBlocks; ++i) {
      blocks_.push_back(create_block(kGranule));
      EXPECT_SUCCESS(aclrtMapMem(at(base_, i * kGranule), kGranule, 0, blocks_[i], 0));
    }
  }
  ~Mappings() {
    for (size_t i = 0; i < kBlocks; ++i) {
      EXPECT_SUCCESS(aclrtUnmapMem(at(base_, i * kGranule)));
      EXPECT_SUCCESS(aclrtFreePhysical(blocks_[i]));
    }
    EXPECT_SUCCESS(aclrtReleaseMemAddress(base_));
    EXPECT_SUCCESS(aclrtResetDevice(0));
  }
  void* base() const { return base_; }
  void move(size_t to, size_t from, size_t count) {
    EXPECT_SUCCESS(
        aclrtMemcpy(at(base_, to), count, at(base_, from), count, ACL_MEMCPY_DEVICE_TO_DEVICE));
  }

 private:
  void* base_ = nullptr;
  std::vector<aclrtDrvMemHandle> blocks_;
};

TEST(OverlappingCopy, KeepsTheSourceInEitherDirection) {
  Mappings mapped;
  const std::vector<uint8_t> bytes = pattern(kBlocks * kGranule, 7);
  const size_t shift = kGranule / 2 + 4099;
  const size_t count = 2 * kGranule + 77;
  for (const bool upwards : {true, false}) {
    SCOPED_TRACE(upwards);
    copy_in(mapped.base(), bytes);
    const size_t from = upwards ? 13 : 13 + shift;
    const size_t to = upwards ? 13 + shift : 13;
    mapped.move(to, from, count);
    std::vector<uint8_t> expected = bytes;
    std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(from), count,
                expected.begin() + static_cast<ptrdiff_t>(to));
    EXPECT_EQ(copy_out(mapped.base(), expected.size()), expected);
  }
}

TEST(OverlappingCopy, UntouchedPartsOfTheSourceReadAsFreshMemory) {
  US_FRESH_PROCESS({"UNDERSTUDY_POISON", "on"});
  Mappings mapped;
  // The middle block stays untouched, the outer ones are written.
  const std::vector<uint8_t> bytes = pattern(kGranule, 3);
  copy_in(mapped.base(), bytes);
  copy_in(at(mapped.base(), 2 * kGranule), bytes);
  const size_t shift = kGranule / 2;
  mapped.move(shift, 0, 2 * kGranule + shift);
  std::vector<uint8_t> expected(kBlocks * kGranule, kPoison);
  std::copy_n(bytes.begin(), shift, expected.begin());
  std::copy_n(bytes.begin(), kGranule, expected.begin() + static_cast<ptrdiff_t>(shift));
  std::copy_n(bytes.begin(), shift,
              expected.begin() + static_cast<ptrdiff_t>(2 * kGranule + shift));
  EXPECT_EQ(copy_out(mapped.base(), expected.size()), expected);
}

}  // namespace
}  // namespace understudy_test
