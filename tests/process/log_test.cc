// SPDX-License-Identifier: Apache-2.0
//
// What went wrong, told as it happens: the text of each level, and where it goes.
#include <sys/syscall.h>

#include <regex>
#include <string>

#include "process/log_objects.h"
#include "rules/callback_objects.h"
#include "rules/stream_tasks.h"
#include "support/refused_calls.h"

namespace understudy_test::logged {
namespace {

std::string stdout_of(const std::function<void()>& body) {
  testing::internal::CaptureStdout();
  body();
  return testing::internal::GetCapturedStdout();
}

// ---- Levels ----

TEST(LogOff, IsTheDefaultAndSilent) {
  US_FRESH_PROCESS();
  EXPECT_EQ(stderr_of([] {
              fail_once();
              EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
              fail_once();
            }),
            "");
}

TEST(LogError, TellsTheSentenceThatTheCallLeaves) {
  US_FRESH_PROCESS({"UNDERSTUDY_LOG", "error"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  void* const range = reserve(2 * kMiB);
  const aclrtDrvMemHandle block = create_block(2 * kMiB);
  ASSERT_SUCCESS(aclrtMapMem(range, 2 * kMiB, 0, block, 0));
  aclError code = ACL_SUCCESS;
  const std::string told = stderr_of([&] { code = aclrtUnmapMem(at(range, kMiB)); });
  const std::string sentence = recent_error();
  EXPECT_NE(sentence.find("aclrtUnmapMem: 0x"), std::string::npos) << sentence;
  EXPECT_EQ(told, prefix() + "error " + std::to_string(code) + " " + sentence);
}

TEST(LogError, TellsOfCallsBeforeTheFirstThatNeedsADevice) {
  US_FRESH_PROCESS({"UNDERSTUDY_LOG", "error"});
  EXPECT_EQ(stderr_of(fail_once), prefix() + "error 100000 aclrtFree: devPtr is NULL\n");
}

TEST(LogError, TellsNothingOfCallsThatSucceed) {
  US_FRESH_PROCESS({"UNDERSTUDY_LOG", "error"});
  EXPECT_EQ(stderr_of([] { EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS); }), "");
}

TEST(LogError, GivesTheCodeThatACallbackGave) {
  US_FRESH_PROCESS({"UNDERSTUDY_LOG", "call"});
  const aclInitCallbackFunc refuse = [](const char*, size_t, void*) -> aclError { return 123; };
  ASSERT_SUCCESS(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, refuse, nullptr));
  const Lines told = lines_of(stderr_of([] { EXPECT_EQ(aclInit(nullptr), 123); }));
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0], prefix() + "error 123 aclInit: a callback returned 123");
  EXPECT_EQ(told[1].rfind(prefix() + "call 123 aclInit ", 0), 0U) << told[1];
}

TEST(LogError, TellsOfATaskWhenItFailsAndOfTheCallThatReturnsIt) {
  US_FRESH_PROCESS({"UNDERSTUDY_LOG", "error"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  TestStream stream;
  FailingTask task;
  const Lines told = lines_of(stderr_of([&] {
    task.queue_on(stream.get());
    EXPECT_EQ(aclrtSynchronizeStream(stream.get()), ACL_ERROR_RT_SYS_DMA);
  }));
  int32_t id = -1;
  ASSERT_SUCCESS(aclrtStreamGetId(stream.get(), &id));
  ASSERT_EQ(told.size(), 2U) << told[0];
  const std::string what = "task 1 of stream " + std::to_string(id) + " failed: ";
  EXPECT_NE(told[0].find("error 507013 device 0: " + what), std::string::npos) << told[0];
  EXPECT_NE(told[1].find("error 507013 aclrtSynchronizeStream: " + what), std::string::npos)
      << told[1];
}

TEST(LogError, TellsOnceOfATaskThatAnExceptionCallbackIsToldOfToo) {
  US_FRESH_PROCESS({"UNDERSTUDY_LOG", "error"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  ASSERT_SUCCESS(aclrtExceptionInfoCallbackRegister([](aclrtExceptionInfo*) {}));
  TestStream stream;
  FailingTask task;
  const std::string told = stderr_of([&] {
    task.queue_on(stream.get());
    EXPECT_EQ(aclrtSynchronizeStream(stream.get()), ACL_ERROR_RT_SYS_DMA);
  });
  EXPECT_EQ(lines_of(told).size(), 2U) << told;
}

void nothing(void*) {}

TEST(LogWarn, TellsOfCallbacksThatNeverRun) {
  US_FRESH_PROCESS({"UNDERSTUDY_LOG", "warn"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  TestStream stream;
  ASSERT_SUCCESS(aclrtSubscribeReport(callbacks::this_thread(), stream.get()));
  ASSERT_SUCCESS(aclrtLaunchCallback(nothing, address(5), ACL_CALLBACK_NO_BLOCK, stream.get()));
  ASSERT_SUCCESS(aclrtSynchronizeStream(stream.get()));
  const std::string told = stderr_of([&] {
    EXPECT_EQ(aclrtUnSubscribeReport(callbacks::this_thread(), stream.get()), ACL_SUCCESS);
  });
  EXPECT_NE(told.find("] warn the callback 0x"), std::string::npos) << told;
  EXPECT_NE(told.find(" with the argument 0x5 is dropped and never runs\n"), std::string::npos);
}

TEST(LogWarn, TellsOfHostMemoryThatIsNotLocked) {
  US_FRESH_PROCESS({"UNDERSTUDY_LOG", "warn"}, {"UNDERSTUDY_BACKING", "small"});
  if (!refuse_system_call(SYS_mlock2, EPERM)) GTEST_SKIP() << "no filter of system calls here";
  ASSERT_SUCCESS(aclrtSetDevice(0));
  void* data = nullptr;
  const std::string told =
      stderr_of([&] { EXPECT_EQ(aclrtMallocHost(&data, 2 * kMiB), ACL_SUCCESS); });
  EXPECT_EQ(told, prefix() +
                      "warn host_lock=best_effort: the host cannot lock 2 MiB (errno 1); "
                      "allocations in it are present and not locked\n");
  EXPECT_SUCCESS(aclrtFreeHost(data));
}

TEST(LogWarn, TellsOnceOfLargePagesThatTheKernelDoesNotGive) {
  constexpr int kCollapse = 25;  // MADV_COLLAPSE, which older headers lack
  US_FRESH_PROCESS({"UNDERSTUDY_LOG", "warn"}, {"UNDERSTUDY_BACKING", "thp"});
  if (!refuse_advice(kCollapse, EINVAL)) GTEST_SKIP() << "no filter of system calls here";
  ASSERT_SUCCESS(aclrtSetDevice(0));
  void* data = nullptr;
  ASSERT_SUCCESS(aclrtMalloc(&data, 8 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST));
  const Lines told = lines_of(stderr_of([&] {
    EXPECT_EQ(aclrtMemset(data, 4 * kMiB, 1, 2 * kMiB), ACL_SUCCESS);
    EXPECT_EQ(aclrtMemset(at(data, 4 * kMiB), 4 * kMiB, 1, 2 * kMiB), ACL_SUCCESS);
  }));
  ASSERT_EQ(told.size(), 1U);
  EXPECT_NE(told[0].find("] warn the host cannot make 2 MiB pages for "), std::string::npos);
  EXPECT_NE(told[0].find("; 4 KiB pages are used"), std::string::npos) << told[0];
  EXPECT_SUCCESS(aclrtFree(data));
}

TEST(LogCall, TellsFunctionCodeAndDurationOfEveryCall) {
  US_FRESH_PROCESS({"UNDERSTUDY_LOG", "call"});
  const Lines told = lines_of(stderr_of([] {
    EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    fail_once();
    (void)aclGetRecentErrMsg();
  }));
  ASSERT_EQ(told.size(), 4U);
  const std::regex set(R"(understudy\[\d+/\d+\] call 0 aclrtSetDevice \d+ ns)");
  const std::regex freed(R"(understudy\[\d+/\d+\] call 100000 aclrtFree \d+ ns)");
  const std::regex text(R"(understudy\[\d+/\d+\] call 0 aclGetRecentErrMsg \d+ ns)");
  EXPECT_TRUE(std::regex_match(told[0], set)) << told[0];
  EXPECT_TRUE(std::regex_match(told[1], failed_free())) << told[1];
  EXPECT_TRUE(std::regex_match(told[2], freed)) << told[2];
  EXPECT_TRUE(std::regex_match(told[3], text)) << told[3];
}

// ---- The variables of the hardware ----

TEST(LogOfTheHardware, IsPrintedToStandardOutputIfBothVariablesSaySo) {
  US_FRESH_PROCESS({"ASCEND_GLOBAL_LOG_LEVEL", "3"}, {"ASCEND_SLOG_PRINT_TO_STDOUT", "1"});
  std::string errors;
  const std::string told = stdout_of([&] { errors = stderr_of(fail_once); });
  EXPECT_EQ(told, prefix() + "error 100000 aclrtFree: devPtr is NULL\n");
  EXPECT_EQ(errors, "");
}

TEST(LogOfTheHardware, IsSilentWithTheLevelAlone) {
  US_FRESH_PROCESS({"ASCEND_GLOBAL_LOG_LEVEL", "0"});
  std::string errors;
  EXPECT_EQ(stdout_of([&] { errors = stderr_of(fail_once); }), "");
  EXPECT_EQ(errors, "");
}

TEST(LogOfTheHardware, GivesWayToTheProjectsOwnSetting) {
  US_FRESH_PROCESS({"ASCEND_GLOBAL_LOG_LEVEL", "0"}, {"ASCEND_SLOG_PRINT_TO_STDOUT", "1"},
                   {"UNDERSTUDY_LOG", "off"});
  EXPECT_EQ(stdout_of(fail_once), "");
}

// ---- Configuration ----

TEST(LogConfiguration, MayBeInTheFile) {
  US_FRESH_PROCESS();
  const OwnFile config("config");
  const OwnFile log("log");
  std::ofstream(config.path()) << "log = \"error\"\nlog_file = \"" << log.path() << "\"\n";
  setenv("UNDERSTUDY_CONFIG", config.path().c_str(), 1);
  EXPECT_EQ(stderr_of(fail_once), "");
  ASSERT_EQ(log.lines().size(), 1U);
  EXPECT_TRUE(std::regex_match(log.lines()[0], failed_free()));
}

TEST(LogConfiguration, ThatIsWrongIsToldOfWhereTheEnvironmentAsksForALog) {
  US_FRESH_PROCESS({"UNDERSTUDY_LOG", "error"}, {"UNDERSTUDY_DEVICES", "99"});
  const std::string told = stderr_of([] { EXPECT_EQ(aclrtSetDevice(0), ACL_ERROR_INVALID_PARAM); });
  EXPECT_EQ(told, prefix() +
                      "error 100000 aclrtSetDevice: configuration key devices has the value \"99\" "
                      "(UNDERSTUDY_DEVICES); allowed: 1 to 32\n");
}

TEST(LogConfiguration, LevelThatIsWrongIsToldOf) {
  US_FRESH_PROCESS({"UNDERSTUDY_LOG", "eror"});
  const std::string told = stderr_of([] { EXPECT_EQ(aclrtSetDevice(0), ACL_ERROR_INVALID_PARAM); });
  EXPECT_EQ(told, prefix() +
                      "error 100000 aclrtSetDevice: configuration key log has the value \"eror\" "
                      "(UNDERSTUDY_LOG); allowed: off, error, warn, call\n");
}

TEST(LogConfiguration, FileMustHaveAPathFromTheRoot) {
  US_FRESH_PROCESS({"UNDERSTUDY_LOG_FILE", "understudy.log"});
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtSetDevice(0));
  setenv("UNDERSTUDY_LOG_FILE", "/dev/null", 1);
  EXPECT_SUCCESS(aclrtSetDevice(0));
}

TEST(LogConfiguration, IsReadAnewByTheFirstCallThatNeedsADevice) {
  US_FRESH_PROCESS({"UNDERSTUDY_LOG", "off"});
  EXPECT_EQ(stderr_of(fail_once), "");
  setenv("UNDERSTUDY_LOG", "error", 1);
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_NE(stderr_of(fail_once), "");
}

}  // namespace
}  // namespace understudy_test::logged
