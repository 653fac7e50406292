// SPDX-License-Identifier: Apache-2.0
//
// Chapters of a few functions: data buffers, data types, log lines, memory of the media units.
#include "acl/ops/acl_dvpp.h"
#include "support/rule_test.h"

namespace understudy_test {
namespace {

TEST(DataBuffer, StandsForAnAddressAndASize) {
  int data = 0;
  aclDataBuffer* const buffer = aclCreateDataBuffer(&data, 5 * kGiB);
  ASSERT_NE(buffer, nullptr);
  EXPECT_EQ(aclGetDataBufferAddr(buffer), &data);
  EXPECT_EQ(aclGetDataBufferSizeV2(buffer), 5 * kGiB);
  EXPECT_EQ(aclGetDataBufferSize(buffer), kGiB);  // what 32 bits hold of it
  EXPECT_SUCCESS(aclUpdateDataBuffer(buffer, nullptr, 7));
  EXPECT_EQ(aclGetDataBufferAddr(buffer), nullptr);
  EXPECT_EQ(aclGetDataBufferSizeV2(buffer), 7U);
  EXPECT_SUCCESS(aclDestroyDataBuffer(buffer));
}

TEST(DataBuffer, MayBeEmpty) {
  aclDataBuffer* const buffer = aclCreateDataBuffer(nullptr, 0);
  ASSERT_NE(buffer, nullptr);
  EXPECT_EQ(aclGetDataBufferSizeV2(buffer), 0U);
  EXPECT_SUCCESS(aclDestroyDataBuffer(buffer));
}

TEST(DataBuffer, NothingElseIsOne) {
  int data = 0;
  aclDataBuffer* const stale = aclCreateDataBuffer(&data, 4);
  ASSERT_SUCCESS(aclDestroyDataBuffer(stale));
  aclDataBuffer* const live = aclCreateDataBuffer(&data, 4);
  for (aclDataBuffer* const none :
       {static_cast<aclDataBuffer*>(nullptr), stale, reinterpret_cast<aclDataBuffer*>(&data)}) {
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclDestroyDataBuffer(none));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclUpdateDataBuffer(none, &data, 9));
    EXPECT_EQ(aclGetDataBufferAddr(none), nullptr);
    EXPECT_EQ(aclGetDataBufferSize(none), 0U);
    EXPECT_EQ(aclGetDataBufferSizeV2(none), 0U);
  }
  EXPECT_EQ(aclGetDataBufferSizeV2(live), 4U);
  EXPECT_SUCCESS(aclDestroyDataBuffer(live));
}

TEST(DataType, HasTheSizeOfItsElements) {
  EXPECT_EQ(aclDataTypeSize(ACL_BOOL), 1U);
  EXPECT_EQ(aclDataTypeSize(ACL_BF16), 2U);
  EXPECT_EQ(aclDataTypeSize(ACL_FLOAT), 4U);
  EXPECT_EQ(aclDataTypeSize(ACL_COMPLEX32), 4U);
  EXPECT_EQ(aclDataTypeSize(ACL_DOUBLE), 8U);
  EXPECT_EQ(aclDataTypeSize(ACL_COMPLEX128), 16U);
}

TEST(DataType, HasNoneIfItIsNotWholeBytes) {
  for (const int type : {-1, 5, 13, 29, 30, 41, 42, 1 << 30}) {
    EXPECT_EQ(aclDataTypeSize(enum_value<aclDataType>(type)), 0U) << type;
  }
}

TEST(ApplicationLog, ErrorsAreWrittenToStandardError) {
  US_FRESH_PROCESS({"ASCEND_GLOBAL_LOG_LEVEL", "3"});
  testing::internal::CaptureStderr();
  ACL_APP_LOG(ACL_ERROR, "%d of %s", 3, "them");
  ACL_APP_LOG(ACL_WARNING, "%s", "nothing to see");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.rfind("[ERROR] APP(", 0), 0U) << text;
  EXPECT_NE(text.find("[small_chapters_test.cc:"), std::string::npos) << text;
  EXPECT_NE(text.find("TestBody: 3 of them\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("nothing to see"), std::string::npos) << text;
}

TEST(ApplicationLog, GoesToStandardOutputFromTheLevelThatIsAskedFor) {
  US_FRESH_PROCESS({"ASCEND_GLOBAL_LOG_LEVEL", "1"}, {"ASCEND_SLOG_PRINT_TO_STDOUT", "1"});
  testing::internal::CaptureStdout();
  ACL_APP_LOG(ACL_DEBUG, "%s", "too fine");
  ACL_APP_LOG(ACL_INFO, "%s", "worth it");
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_EQ(text.rfind("[INFO] APP(", 0), 0U) << text;
  EXPECT_EQ(text.find("too fine"), std::string::npos) << text;
}

TEST(ApplicationLog, OddArgumentsAreNoCrash) {
  aclAppLog(enum_value<aclLogLevel>(4), nullptr, nullptr, 0, "%s", "no such level");
  EXPECT_NE(recent_error().find("logLevel is 4"), std::string::npos);
  aclAppLog(ACL_ERROR, nullptr, nullptr, 0, "%s", "from nowhere");
}

using MediaMemory = DeviceTest;

TEST_F(MediaMemory, IsDeviceMemoryAtMultiplesOf128) {
  const MemoryFigures before = memory_figures();
  for (const size_t size : {size_t{1}, 100 * kKiB, 5 * kMiB}) {
    void* block = nullptr;
    ASSERT_SUCCESS(acldvppMalloc(&block, size));
    EXPECT_EQ(number(block) % 128, 0U);
    const std::vector<uint8_t> bytes = pattern(size);
    copy_in(block, bytes);
    EXPECT_TRUE(copy_out(block, size) == bytes);
    EXPECT_SUCCESS(acldvppFree(block));
  }
  EXPECT_TRUE(memory_figures() == before);
}

TEST_F(MediaMemory, OddArgumentsAreRefused) {
  void* block = &block;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, acldvppMalloc(nullptr, 1));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, acldvppMalloc(&block, 0));
  EXPECT_EQ(block, &block);
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, acldvppFree(nullptr));
}

}  // namespace
}  // namespace understudy_test
