// SPDX-License-Identifier: Apache-2.0
//
// Start and end of the library's use: aclInit, its configuration file, aclFinalize and its count.
// The state is one per process and remembers the first configuration: every test has its own.
// Covers: INIT-01, INIT-02, INIT-03, INIT-04, INIT-05, INIT-06, INIT-07, INIT-08, INIT-09, INIT-10,
// INIT-11, INIT-12, INIT-15, INIT-16.
#include <string>
#include <utility>

#include "rules/runtime_support.h"
#include "rules/temporary_file.h"

namespace understudy_test::runtime {
namespace {

// What aclFinalizeReference says is left after it took one away.
uint64_t references_after_one_less() {
  uint64_t left = 99;
  EXPECT_SUCCESS(aclFinalizeReference(&left));
  return left;
}

void expect_started_with_defaults(const char* path) {
  EXPECT_SUCCESS(aclInit(path));
  EXPECT_EQ(device_count(), 8u);
  EXPECT_SUCCESS(aclrtSetDevice(0));
  EXPECT_SUCCESS(aclrtResetDevice(0));
  EXPECT_SUCCESS(aclFinalize());
}

void expect_not_initialised() { EXPECT_FAILS(ACL_ERROR_REPEAT_FINALIZE, aclFinalize()); }

TEST(Init, INIT_01_NullPathMeansDefaults) {
  US_FRESH_PROCESS();
  expect_started_with_defaults(nullptr);
}

TEST(Init, INIT_01_EmptyPathMeansDefaults) {
  US_FRESH_PROCESS();
  expect_started_with_defaults("");
}

TEST(Init, INIT_01_FileWithAnEmptyObjectMeansDefaults) {
  US_FRESH_PROCESS();
  const TemporaryFile file("{}");
  expect_started_with_defaults(file.path().c_str());
}

TEST(Init, INIT_02_MissingFileIsRefused) {
  US_FRESH_PROCESS();
  EXPECT_FAILS(ACL_ERROR_INVALID_FILE, aclInit("/nonexistent/understudy/acl.json"));
  expect_not_initialised();
  EXPECT_SUCCESS(aclInit(nullptr));
  EXPECT_SUCCESS(aclFinalize());
}

TEST(Init, INIT_02_UnreadableFileIsRefused) {
  US_FRESH_PROCESS();
  const TemporaryDirectory directory;
  EXPECT_FAILS(ACL_ERROR_INVALID_FILE, aclInit(directory.path().c_str()));
  expect_not_initialised();
}

TEST(Init, INIT_02_MalformedJsonIsRefused) {
  US_FRESH_PROCESS();
  // The last one is deep enough to exhaust the stack of a parser that recurses without a limit.
  const std::string texts[] = {"{",  "not json", R"({"dump":})",
                               "{]", "{} {}",    std::string(500'000, '[')};
  for (const std::string& text : texts) {
    SCOPED_TRACE(text.substr(0, 20));
    const TemporaryFile file(text);
    EXPECT_NE(aclInit(file.path().c_str()), ACL_SUCCESS);
    EXPECT_NE(recent_error().find("aclInit"), std::string::npos);
    expect_not_initialised();
  }
  EXPECT_SUCCESS(aclInit(nullptr));
  EXPECT_SUCCESS(aclFinalize());
}

TEST(Init, INIT_03_SecondInitIsReportedYetCounted) {
  US_FRESH_PROCESS();
  ASSERT_SUCCESS(aclInit(nullptr));
  EXPECT_FAILS(ACL_ERROR_REPEAT_INITIALIZE, aclInit(nullptr));
  EXPECT_FAILS(ACL_ERROR_REPEAT_INITIALIZE, aclInit(nullptr));
  EXPECT_EQ(references_after_one_less(), 2u);
  EXPECT_EQ(references_after_one_less(), 1u);
  EXPECT_EQ(references_after_one_less(), 0u);
}

TEST(Init, INIT_04_InitWorksAgainAfterFinalize) {
  US_FRESH_PROCESS();
  const TemporaryFile file(R"({"err_msg_mode": "0"})");
  for (int round = 0; round < 3; ++round) {
    EXPECT_SUCCESS(aclInit(file.path().c_str()));
    EXPECT_SUCCESS(aclrtSetDevice(0));
    EXPECT_EQ(current_device(), 0);
    EXPECT_SUCCESS(aclFinalize());
    expect_not_initialised();
  }
}

TEST(Init, INIT_04_AnotherConfigurationThanTheFirstIsRefused) {
  US_FRESH_PROCESS();
  const TemporaryFile first(R"({"err_msg_mode": "0"})");
  const TemporaryFile second(R"({"err_msg_mode": "1"})");
  ASSERT_SUCCESS(aclInit(first.path().c_str()));
  ASSERT_SUCCESS(aclFinalize());
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclInit(second.path().c_str()));
  expect_not_initialised();
  EXPECT_SUCCESS(aclInit(first.path().c_str()));
  EXPECT_SUCCESS(aclFinalize());
}

TEST(Init, INIT_05_DefaultDeviceServesThreadsWithoutContext) {
  US_FRESH_PROCESS();
  const TemporaryFile file(R"({"defaultDevice": {"default_device": "1"}})");
  ASSERT_SUCCESS(aclInit(file.path().c_str()));
  on_new_thread([] { EXPECT_EQ(current_device(), 1); });
  on_new_thread([] {
    EXPECT_SUCCESS(aclrtSynchronizeDevice());
    EXPECT_EQ(current_device(), 1);
  });
  on_new_thread([] {
    EXPECT_GT(free_bytes(), 0u);
    EXPECT_NE(current_context(), nullptr);
  });
  EXPECT_SUCCESS(aclFinalize());
}

TEST(Init, INIT_05_AnExplicitDeviceComesBeforeTheDefaultDevice) {
  US_FRESH_PROCESS();
  const TemporaryFile file(R"({"defaultDevice": {"default_device": "1"}})");
  ASSERT_SUCCESS(aclInit(file.path().c_str()));
  on_new_thread([] {
    EXPECT_SUCCESS(aclrtSetDevice(2));
    EXPECT_EQ(current_device(), 2);
  });
  EXPECT_SUCCESS(aclFinalize());
}

TEST(Init, INIT_05_WithoutADefaultDeviceAThreadHasNone) {
  US_FRESH_PROCESS();
  ASSERT_SUCCESS(aclInit(nullptr));
  int32_t device = 77;
  EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtGetDevice(&device));
  EXPECT_EQ(device, 77);
  EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtSynchronizeDevice());
  EXPECT_SUCCESS(aclFinalize());
}

void fail_on_another_thread() {
  on_new_thread([] { EXPECT_EQ(aclrtSetDevice(-1), ACL_ERROR_RT_INVALID_DEVICEID); });
}

TEST(Init, INIT_06_ErrorTextsArePerThreadByDefault) {
  US_FRESH_PROCESS();
  ASSERT_SUCCESS(aclInit(nullptr));
  fail_on_another_thread();
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
  EXPECT_SUCCESS(aclFinalize());
}

TEST(Init, INIT_06_ModeZeroKeepsErrorTextsPerThread) {
  US_FRESH_PROCESS();
  const TemporaryFile file(R"({"err_msg_mode": "0"})");
  ASSERT_SUCCESS(aclInit(file.path().c_str()));
  fail_on_another_thread();
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
  EXPECT_SUCCESS(aclFinalize());
}

TEST(Init, INIT_06_ModeOneKeepsErrorTextsPerProcess) {
  US_FRESH_PROCESS();
  const TemporaryFile file(R"({"err_msg_mode": "1"})");
  ASSERT_SUCCESS(aclInit(file.path().c_str()));
  fail_on_another_thread();
  EXPECT_NE(recent_error().find("aclrtSetDevice"), std::string::npos);
  on_new_thread([] { EXPECT_EQ(aclGetRecentErrMsg(), nullptr) << "the text was read already"; });
  EXPECT_SUCCESS(aclFinalize());
}

TEST(Init, INIT_07_DeviceAndMemoryCallsNeedNoInit) {
  US_FRESH_PROCESS();
  EXPECT_EQ(device_count(), 8u);
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_NE(default_stream(), nullptr);
  const MappedBlock block = map_new_block();
  copy_in(block.address, pattern(4 * kKiB));
  EXPECT_EQ(copy_out(block.address, 4 * kKiB), pattern(4 * kKiB));
  drop(block);
  EXPECT_SUCCESS(aclrtSynchronizeDevice());
  EXPECT_SUCCESS(aclrtResetDevice(0));
}

TEST(Init, INIT_08_FinalizeReleasesEverythingHoweverOftenInitWasCalled) {
  US_FRESH_PROCESS();
  ASSERT_SUCCESS(aclInit(nullptr));
  EXPECT_FAILS(ACL_ERROR_REPEAT_INITIALIZE, aclInit(nullptr));
  EXPECT_FAILS(ACL_ERROR_REPEAT_INITIALIZE, aclInit(nullptr));
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_SUCCESS(aclFinalize());
  EXPECT_FALSE(default_context_exists(0));
  uint64_t left = 77;
  EXPECT_FAILS(ACL_ERROR_REPEAT_FINALIZE, aclFinalizeReference(&left));
  EXPECT_SUCCESS(aclInit(nullptr));
  EXPECT_EQ(references_after_one_less(), 0u);
}

TEST(Init, INIT_09_FinalizeWithoutInitIsReported) {
  US_FRESH_PROCESS();
  expect_not_initialised();
  ASSERT_SUCCESS(aclInit(nullptr));
  EXPECT_SUCCESS(aclFinalize());
  expect_not_initialised();
  expect_not_initialised();
}

TEST(Init, INIT_10_ReferencesAreTakenAwayOneByOne) {
  US_FRESH_PROCESS();
  ASSERT_SUCCESS(aclInit(nullptr));
  EXPECT_FAILS(ACL_ERROR_REPEAT_INITIALIZE, aclInit(nullptr));
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_EQ(references_after_one_less(), 1u);
  EXPECT_TRUE(default_context_exists(0)) << "released although a reference is left";
  EXPECT_EQ(current_device(), 0);
  EXPECT_EQ(references_after_one_less(), 0u);
  EXPECT_FALSE(default_context_exists(0));
}

TEST(Init, INIT_10_AtZeroFinalizeReferenceIsReported) {
  US_FRESH_PROCESS();
  uint64_t left = 77;
  EXPECT_FAILS(ACL_ERROR_REPEAT_FINALIZE, aclFinalizeReference(&left));
  ASSERT_SUCCESS(aclInit(nullptr));
  EXPECT_EQ(references_after_one_less(), 0u);
  EXPECT_FAILS(ACL_ERROR_REPEAT_FINALIZE, aclFinalizeReference(&left));
  EXPECT_FAILS(ACL_ERROR_REPEAT_FINALIZE, aclFinalizeReference(nullptr));
}

TEST(Init, INIT_11_TheCountMayBeIgnored) {
  US_FRESH_PROCESS();
  ASSERT_SUCCESS(aclInit(nullptr));
  EXPECT_FAILS(ACL_ERROR_REPEAT_INITIALIZE, aclInit(nullptr));
  EXPECT_SUCCESS(aclFinalizeReference(nullptr));
  EXPECT_EQ(references_after_one_less(), 0u);
}

TEST(Init, INIT_12_FinalizeSurvivesWhatIsStillAlive) {
  US_FRESH_PROCESS();
  ASSERT_SUCCESS(aclInit(nullptr));
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const aclrtContext context = create_context(1);
  const aclrtStream stream = default_stream();
  const MappedBlock mapped = map_new_block();
  copy_in(mapped.address, pattern(4 * kKiB));
  const aclrtDrvMemHandle unmapped = create_block(kBlockSize);
  EXPECT_SUCCESS(aclFinalize());

  // Clients clean up in any order (CLIENTS, trap 3): these may say no, but must not crash.
  (void)aclrtSetCurrentContext(context);
  (void)aclrtDestroyContext(context);
  (void)stream_is_usable(stream);
  (void)aclrtUnmapMem(mapped.address);
  (void)aclrtFreePhysical(mapped.handle);
  (void)aclrtFreePhysical(unmapped);
  (void)aclrtReleaseMemAddress(mapped.address);
  EXPECT_EQ(device_count(), 8u);
  EXPECT_SUCCESS(aclrtSetDevice(0));
}

// ---- Nesting ----

std::string nested(char open, char close, int depth) {
  std::string text = R"({"a":)";
  const int inner = open == '{' ? depth - 1 : depth;  // the text itself is one object
  for (int i = 0; i < inner; ++i) text += open == '{' ? R"({"a":)" : "[";
  text += '1';
  return text + std::string(static_cast<size_t>(inner), close) + '}';
}

TEST(Init, INIT_15_ElevenBracketsInsideEachOtherAreRefused) {
  US_FRESH_PROCESS();
  for (const auto& [open, close] : {std::pair('{', '}'), std::pair('[', ']')}) {
    for (const int depth : {11, 12, 40, 100'000}) {
      SCOPED_TRACE(testing::Message() << open << " " << depth);
      const TemporaryFile file(nested(open, close, depth));
      EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclInit(file.path().c_str()));
      expect_not_initialised();
    }
  }
}

TEST(Init, INIT_15_TenObjectsAreRead) {
  US_FRESH_PROCESS();
  const TemporaryFile file(nested('{', '}', 10));
  EXPECT_SUCCESS(aclInit(file.path().c_str()));
  EXPECT_SUCCESS(aclFinalize());
}

TEST(Init, INIT_15_TenArraysInAnObjectAreRead) {
  US_FRESH_PROCESS();
  const TemporaryFile file(nested('[', ']', 10));
  EXPECT_SUCCESS(aclInit(file.path().c_str()));
  EXPECT_SUCCESS(aclFinalize());
}

TEST(InitOnIpv350, INIT_08_INIT_16_FinalizeTakesOneAwayAndMayBeCalledTooOften_C10) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "ipv350"});
  ASSERT_SUCCESS(aclInit(nullptr));
  EXPECT_FAILS(ACL_ERROR_REPEAT_INITIALIZE, aclInit(nullptr));
  aclrtContext context = create_context();
  EXPECT_SUCCESS(aclFinalize());
  EXPECT_EQ(current_context(), context) << "one use is left";
  EXPECT_SUCCESS(aclFinalize());
  EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtGetCurrentContext(&context));
  for (int i = 0; i < 3; ++i) EXPECT_SUCCESS(aclFinalize());
  EXPECT_FAILS(ACL_ERROR_REPEAT_FINALIZE, aclFinalizeReference(nullptr));
  EXPECT_SUCCESS(aclInit(nullptr));
  EXPECT_SUCCESS(aclFinalize());
}

}  // namespace
}  // namespace understudy_test::runtime
