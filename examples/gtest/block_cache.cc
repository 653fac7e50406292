// SPDX-License-Identifier: Apache-2.0
//
// Tests of a small class that owns device memory, with GoogleTest: each of them fails if it leaves
// something on the device, and shows what the software NPU said if it fails. On a real device the
// same tests run without that.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "acl/acl.h"
#include "understudy/gtest_listener.h"

namespace {

// Blocks of device memory of one size, kept for reuse.
class BlockCache {
 public:
  explicit BlockCache(size_t block_size) : block_size_(block_size) {}
  ~BlockCache() {
    for (void* const block : free_) aclrtFree(block);
  }
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  void* take() {
    void* block = nullptr;
    if (free_.empty()) {
      return aclrtMalloc(&block, block_size_, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS ? block
                                                                                        : nullptr;
    }
    block = free_.back();
    free_.pop_back();
    return block;
  }
  void give_back(void* block) { free_.push_back(block); }

 private:
  const size_t block_size_;
  std::vector<void*> free_;
};

class BlockCacheTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS); }
  void TearDown() override { EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS); }
};

TEST_F(BlockCacheTest, ABlockIsReused) {
  BlockCache cache(2 << 20);
  void* const first = cache.take();
  ASSERT_NE(first, nullptr);
  cache.give_back(first);
  EXPECT_EQ(cache.take(), first);
  cache.give_back(first);
}

TEST_F(BlockCacheTest, BlocksHoldWhatIsWritten) {
  BlockCache cache(64 << 10);
  void* const block = cache.take();
  const std::vector<uint8_t> written(4096, 7);
  std::vector<uint8_t> read(written.size());
  ASSERT_EQ(aclrtMemcpy(block, 64 << 10, written.data(), written.size(), ACL_MEMCPY_HOST_TO_DEVICE),
            ACL_SUCCESS);
  ASSERT_EQ(aclrtMemcpy(read.data(), read.size(), block, read.size(), ACL_MEMCPY_DEVICE_TO_HOST),
            ACL_SUCCESS);
  EXPECT_EQ(read, written);
  cache.give_back(block);
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  understudy::testing::private_server();
  understudy::testing::install();
  if (aclInit(nullptr) != ACL_SUCCESS) return 1;
  const int outcome = RUN_ALL_TESTS();
  aclFinalize();
  return outcome;
}
