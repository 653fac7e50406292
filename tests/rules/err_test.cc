// SPDX-License-Identifier: Apache-2.0
//
// Error texts and the last error code of a thread. Each test looks at a thread of its own, which
// starts with neither.
// Covers: ERR-01, ERR-02, ERR-03, ERR-04, ERR-05, ERR-06, ERR-07.
#include <functional>
#include <string>
#include <vector>

#include "rules/runtime_support.h"

namespace understudy_test::runtime {
namespace {

class Errors : public NoDeviceTest {};

void fail_outside() { EXPECT_EQ(aclrtGetDeviceCount(nullptr), ACL_ERROR_INVALID_PARAM); }
void fail_inside() { EXPECT_EQ(aclrtSetDevice(-1), ACL_ERROR_RT_INVALID_DEVICEID); }

TEST_F(Errors, ERR_01_WithoutAnErrorThereIsNoText) {
  on_new_thread([] {
    EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
    EXPECT_EQ(device_count(), 8u);
    EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
  });
}

TEST_F(Errors, ERR_01_TextsComeNewestFirstAndOnce) {
  on_new_thread([] {
    fail_inside();
    fail_outside();
    const std::string text = recent_error();
    const size_t newer = text.find("aclrtGetDeviceCount");
    const size_t older = text.find("aclrtSetDevice");
    ASSERT_NE(newer, std::string::npos) << text;
    ASSERT_NE(older, std::string::npos) << text;
    EXPECT_LT(newer, older) << text;
    EXPECT_EQ(aclGetRecentErrMsg(), nullptr) << "the texts were not cleared";
  });
}

TEST_F(Errors, ERR_01_ASuccessDoesNotClearTheTexts) {
  on_new_thread([] {
    fail_inside();
    EXPECT_EQ(device_count(), 8u);
    EXPECT_NE(recent_error().find("aclrtSetDevice"), std::string::npos);
  });
}

// A program that tries, falls back and goes on should not read of its trial later.
TEST_F(Errors, ERR_01_OlderTextsOfFunctionsThatSucceededSinceAreLeftOut) {
  on_new_thread([] {
    int32_t device = 0;
    fail_outside();
    EXPECT_EQ(aclrtGetDevice(nullptr), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQ(device_count(), 8u);
    fail_inside();
    const std::string text = recent_error();
    EXPECT_EQ(text.find("aclrtSetDevice: "), 0u) << text;
    EXPECT_EQ(text.find("aclrtGetDeviceCount"), std::string::npos) << text;
    EXPECT_NE(text.find("\naclrtGetDevice: "), std::string::npos) << text;
    EXPECT_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);

    // The newest is told even if its function succeeded meanwhile.
    (void)recent_error();
    fail_inside();
    fail_outside();
    EXPECT_EQ(device_count(), 8u);
    EXPECT_EQ(recent_error().find("aclrtGetDeviceCount: "), 0u);
  });
}

TEST_F(Errors, ERR_01_ManyErrorsKeepTheNewestInFront) {
  on_new_thread([] {
    for (int i = 0; i < 100'000; ++i) fail_inside();
    fail_outside();
    const std::string text = recent_error();
    EXPECT_LT(text.find("aclrtGetDeviceCount"), text.find("aclrtSetDevice"));
  });
}

TEST_F(Errors, ERR_01_EachThreadHasItsOwnTexts) {
  on_new_thread([] {
    fail_inside();
    on_new_thread([] {
      EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
      fail_outside();
    });
    const std::string text = recent_error();
    EXPECT_NE(text.find("aclrtSetDevice"), std::string::npos) << text;
    EXPECT_EQ(text.find("aclrtGetDeviceCount"), std::string::npos) << text;
  });
}

TEST_F(Errors, ERR_02_TheTextStaysUntilTheNextCall) {
  on_new_thread([] {
    fail_inside();
    const char* text = aclGetRecentErrMsg();
    ASSERT_NE(text, nullptr);
    const std::string copy = text;
    for (int i = 0; i < 100; ++i) fail_outside();
    on_new_thread([] {
      fail_outside();
      EXPECT_NE(aclGetRecentErrMsg(), nullptr);
    });
    EXPECT_EQ(text, copy);
    EXPECT_NE(recent_error(), copy);
  });
}

// A call that must fail, and the argument that its text must name.
struct Refusal {
  std::string call;
  std::string argument;
  std::function<aclError()> invoke;

  std::string function() const { return call.substr(0, call.find('(')); }
};
#define US_REFUSAL(argument, call)       \
  Refusal {                              \
#call, argument, [] { return call; } \
  }

// Places for the outputs of calls that write none.
char some_package[] = "no-such-package";
int32_t some_number = 0;
int64_t some_wide_number = 0;
uint32_t some_unsigned_number = 0;
aclrtContext some_context = nullptr;
aclrtMemUceInfo some_memory_error;

std::vector<Refusal> refusals() {
  return {
      US_REFUSAL("configPath", aclInit("/nonexistent/understudy/acl.json")),
      US_REFUSAL("cbFunc", aclInitCallbackRegister(ACL_REG_TYPE_OTHER, nullptr, nullptr)),
      US_REFUSAL("cbFunc", aclFinalizeCallbackRegister(ACL_REG_TYPE_OTHER, nullptr, nullptr)),
      US_REFUSAL("minorVersion", aclrtGetVersion(&some_number, nullptr, &some_number)),
      US_REFUSAL("pkgName", aclsysGetVersionStr(nullptr, some_package)),
      US_REFUSAL("pkgName", aclsysGetVersionNum(some_package, &some_number)),
      US_REFUSAL("version", aclsysGetCANNVersion(ACL_PKG_NAME_RUNTIME, nullptr)),
      US_REFUSAL("cannAttrList", aclGetCannAttributeList(nullptr, nullptr)),
      US_REFUSAL("cannAttr", aclGetCannAttribute(ACL_CANN_ATTR_UNDEFINED, &some_number)),
      US_REFUSAL("deviceInfo",
                 aclGetDeviceCapability(0, ACL_DEVICE_INFO_UNDEFINED, &some_wide_number)),
      US_REFUSAL("deviceId", aclrtSetDevice(-1)),
      US_REFUSAL("deviceId", aclrtResetDevice(-1)),
      US_REFUSAL("deviceId", aclrtResetDeviceForce(1000)),
      US_REFUSAL("deviceId", aclrtGetDevice(nullptr)),
      US_REFUSAL("count", aclrtGetDeviceCount(nullptr)),
      US_REFUSAL("runMode", aclrtGetRunMode(nullptr)),
      US_REFUSAL("timeout", aclrtSynchronizeDeviceWithTimeout(0)),
      US_REFUSAL("canAccessPeer", aclrtDeviceCanAccessPeer(nullptr, 0, 1)),
      US_REFUSAL("peerDeviceId", aclrtDeviceCanAccessPeer(&some_number, 0, 0)),
      US_REFUSAL("flags", aclrtDeviceEnablePeerAccess(1, 5)),
      US_REFUSAL("peerDeviceId", aclrtDeviceDisablePeerAccess(1000)),
      US_REFUSAL("pid", aclrtDeviceGetBareTgid(nullptr)),
      US_REFUSAL("status", aclrtDevicePeerAccessStatus(0, 1, nullptr)),
      US_REFUSAL("attr", aclrtGetDeviceInfo(0, enum_value<aclrtDevAttr>(9999), &some_wide_number)),
      US_REFUSAL("deviceId", aclrtGetDeviceCapability(-1, ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV,
                                                      &some_number)),
      US_REFUSAL("deviceStatus", aclrtQueryDeviceStatus(0, nullptr)),
      US_REFUSAL("utilizationInfo", aclrtGetDeviceUtilizationRate(0, nullptr)),
      US_REFUSAL("uuid", aclrtDeviceGetUuid(0, nullptr)),
      US_REFUSAL("userDevid", aclrtGetLogicDevIdByUserDevId(1000, &some_number)),
      US_REFUSAL("phyDevId", aclrtGetLogicDevIdByPhyDevId(1000, &some_number)),
      US_REFUSAL("active", aclrtGetPrimaryCtxState(0, nullptr, nullptr)),
      US_REFUSAL("flags", aclrtGetPrimaryCtxState(0, &some_unsigned_number, &some_number)),
      US_REFUSAL("value", aclrtGetDevicesTopo(0, 1, nullptr)),
      US_REFUSAL("regName", aclrtRegDeviceStateCallback(nullptr, nullptr, nullptr)),
      US_REFUSAL("context", aclrtCreateContext(nullptr, 0)),
      US_REFUSAL("deviceId", aclrtCreateContext(&some_context, -1)),
      US_REFUSAL("context", aclrtDestroyContext(nullptr)),
      US_REFUSAL("context", aclrtSetCurrentContext(address(0x1234))),
      US_REFUSAL("context", aclrtGetCurrentContext(nullptr)),
      US_REFUSAL("stream", aclrtCtxGetCurrentDefaultStream(nullptr)),
      US_REFUSAL("value", aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, nullptr)),
      US_REFUSAL("opt", aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &some_wide_number)),
      US_REFUSAL("value", aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, nullptr)),
      US_REFUSAL("level", aclrtPeekAtLastError(enum_value<aclrtLastErrLevel>(5))),
      US_REFUSAL("callback", aclrtExceptionInfoCallbackRegister(nullptr)),
      US_REFUSAL("retSize", aclrtGetMemUceInfo(0, &some_memory_error, 1, nullptr)),
      US_REFUSAL("memUceInfoArray", aclrtMemUceRepair(0, nullptr, 1)),
      US_REFUSAL("errorInfo", aclrtGetErrorVerbose(0, nullptr)),
      US_REFUSAL("actualTimeout", aclrtSetOpExecuteTimeOutV2(1, nullptr)),
      US_REFUSAL("taskId", aclrtGetThreadLastTaskId(nullptr)),
  };
}

TEST_F(Errors, ERR_03_TheTextNamesTheFunctionAndTheArgument) {
  US_FRESH_PROCESS();
  ASSERT_SUCCESS(aclrtSetDevice(0));
  for (const Refusal& refusal : refusals()) {
    SCOPED_TRACE(refusal.call);
    (void)recent_error();
    EXPECT_NE(refusal.invoke(), ACL_SUCCESS);
    const std::string text = recent_error();
    EXPECT_NE(text.find(refusal.function()), std::string::npos) << text;
    EXPECT_NE(text.find(refusal.argument), std::string::npos) << text;
  }
}

TEST_F(Errors, ERR_03_TheTextNamesTheValue) {
  on_new_thread([] {
    EXPECT_EQ(aclrtSetDevice(12345), ACL_ERROR_RT_INVALID_DEVICEID);
    EXPECT_NE(recent_error().find("12345"), std::string::npos);
  });
}

aclError peek() { return aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL); }
aclError take() { return aclrtGetLastError(ACL_RT_THREAD_LEVEL); }

TEST_F(Errors, ERR_04_OnlyTheThreadLevelIsKnown) {
  on_new_thread([] {
    fail_inside();
    for (int64_t level : {-1, 1, 2, 0xFFFF}) {
      SCOPED_TRACE(level);
      const aclrtLastErrLevel unknown = enum_value<aclrtLastErrLevel>(level);
      EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtPeekAtLastError(unknown));
      EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetLastError(unknown));
    }
    EXPECT_EQ(peek(), ACL_ERROR_RT_INVALID_DEVICEID) << "a refused question cleared the code";
  });
}

TEST_F(Errors, ERR_05_PeekKeepsAndGetResetsTheCode) {
  on_new_thread([] {
    EXPECT_EQ(peek(), ACL_SUCCESS);
    EXPECT_EQ(take(), ACL_SUCCESS);
    fail_inside();
    EXPECT_EQ(peek(), ACL_ERROR_RT_INVALID_DEVICEID);
    EXPECT_EQ(peek(), ACL_ERROR_RT_INVALID_DEVICEID);
    EXPECT_EQ(take(), ACL_ERROR_RT_INVALID_DEVICEID);
    EXPECT_EQ(peek(), ACL_SUCCESS);
    EXPECT_EQ(take(), ACL_SUCCESS);
  });
}

TEST_F(Errors, ERR_05_TheLatestInnerErrorOfEveryClassCounts) {
  on_new_thread([] {
    fail_inside();
    // Only A3 has this function.
    void* range = nullptr;
    EXPECT_EQ(aclrtReserveMemAddressNoUCMemory(&range, kGiB, 0, address(64 * kTiB), 0),
              ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    EXPECT_EQ(peek(), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    EXPECT_EQ(aclrtResetDevice(7), ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
    EXPECT_EQ(peek(), ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
    EXPECT_EQ(aclrtSynchronizeDevice(), ACL_ERROR_RT_CONTEXT_NULL);
    EXPECT_EQ(take(), ACL_ERROR_RT_CONTEXT_NULL);
  });
}

TEST_F(Errors, ERR_06_OuterErrorsAndSuccessesDoNotChangeTheCode) {
  on_new_thread([] {
    fail_outside();
    EXPECT_EQ(peek(), ACL_SUCCESS);
    fail_inside();
    fail_outside();
    EXPECT_EQ(device_count(), 8u);
    ASSERT_SUCCESS(aclrtSetDevice(0));
    EXPECT_EQ(peek(), ACL_ERROR_RT_INVALID_DEVICEID);
  });
}

TEST_F(Errors, ERR_06_ReadingTheTextsDoesNotChangeTheCode) {
  on_new_thread([] {
    fail_inside();
    EXPECT_NE(aclGetRecentErrMsg(), nullptr);
    EXPECT_EQ(peek(), ACL_ERROR_RT_INVALID_DEVICEID);
  });
}

TEST_F(Errors, ERR_07_EachThreadHasItsOwnCode) {
  on_new_thread([] {
    fail_inside();
    on_new_thread([] {
      EXPECT_EQ(peek(), ACL_SUCCESS);
      EXPECT_EQ(aclrtSynchronizeDevice(), ACL_ERROR_RT_CONTEXT_NULL);
      EXPECT_EQ(take(), ACL_ERROR_RT_CONTEXT_NULL);
    });
    EXPECT_EQ(peek(), ACL_ERROR_RT_INVALID_DEVICEID);
  });
}

}  // namespace
}  // namespace understudy_test::runtime
