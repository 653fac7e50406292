// SPDX-License-Identifier: Apache-2.0
//
// Contexts: which one a thread has, creating, destroying and switching them, their parameters.
// Covers: CTX-01, CTX-02, CTX-03, CTX-04, CTX-05, CTX-06, CTX-07, CTX-08, CTX-09, CTX-10, CTX-11,
// CTX-12, CTX-13.
#include <vector>

#include "rules/runtime_support.h"

namespace understudy_test::runtime {
namespace {

class Context : public NoDeviceTest {};

// Clients that ignore the code read the pointer, so NULL is written (CLIENTS, trap 1).
void expect_no_context() {
  int mark = 0;
  aclrtContext context = &mark;
  EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtGetCurrentContext(&context));
  EXPECT_EQ(context, nullptr);
}

void expect_stale(aclrtContext context) {
  const aclError code = aclrtSetCurrentContext(context);
  EXPECT_TRUE(code == ACL_ERROR_RT_PARAM_INVALID || code == ACL_ERROR_RT_CONTEXT_NULL) << code;
  EXPECT_NE(recent_error().find("aclrtSetCurrentContext"), std::string::npos);
}

TEST_F(Context, CTX_01_TheLastOneMadeCurrentCounts) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const aclrtContext default_context = current_context();
  const aclrtContext first = create_context(0);
  EXPECT_EQ(current_context(), first);
  const aclrtContext second = create_context(1);
  EXPECT_EQ(current_context(), second);
  EXPECT_SUCCESS(aclrtSetCurrentContext(first));
  EXPECT_EQ(current_context(), first);
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_EQ(current_context(), default_context);
  EXPECT_SUCCESS(aclrtDestroyContext(first));
  EXPECT_SUCCESS(aclrtDestroyContext(second));
}

TEST_F(Context, CTX_02_ANewThreadStartsWithoutContext) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  on_new_thread([] { expect_no_context(); });
  const aclrtContext context = create_context(0);
  on_new_thread([] { expect_no_context(); });
  EXPECT_SUCCESS(aclrtDestroyContext(context));
}

TEST_F(Context, CTX_03_BadArgumentsAreRefusedAndTheThreadKeepsItsContext) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const aclrtContext before = current_context();
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCreateContext(nullptr, 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCreateContext(nullptr, -1));
  int mark = 0;
  for (int32_t id : bad_device_ids()) {
    SCOPED_TRACE(id);
    aclrtContext context = &mark;
    EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtCreateContext(&context, id));
    EXPECT_EQ(context, &mark);
  }
  EXPECT_EQ(current_context(), before);
}

TEST_F(Context, CTX_04_CreatingNeedsNoDeviceSetBefore) {
  on_new_thread([] {
    const aclrtContext context = create_context(2);
    EXPECT_EQ(current_context(), context);
    EXPECT_EQ(current_device(), 2);
    EXPECT_GT(free_bytes(), 0u);
    const MappedBlock block = map_new_block(2);
    copy_in(block.address, pattern(4 * kKiB));
    EXPECT_EQ(copy_out(block.address, 4 * kKiB), pattern(4 * kKiB));
    drop(block);
    EXPECT_SUCCESS(aclrtDestroyContext(context));
  });
}

TEST_F(Context, CTX_04_EachContextHasItsOwnDefaultStream) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const aclrtContext default_context = current_context();
  const aclrtStream default_context_stream = default_stream();
  const aclrtContext first = create_context(0);
  const aclrtStream first_stream = default_stream();
  const aclrtContext second = create_context(0);
  const aclrtStream second_stream = default_stream();
  EXPECT_NE(first, second);
  EXPECT_NE(first, default_context);
  EXPECT_NE(first_stream, second_stream);
  EXPECT_NE(first_stream, default_context_stream);
  EXPECT_NE(second_stream, default_context_stream);
  EXPECT_SUCCESS(aclrtSetCurrentContext(first));
  EXPECT_EQ(default_stream(), first_stream);
  EXPECT_SUCCESS(aclrtDestroyContext(first));
  EXPECT_SUCCESS(aclrtDestroyContext(second));
}

TEST_F(Context, CTX_05_DestroyRefusesNullAndTheDefaultContext) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const aclrtContext default_context = current_context();
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtDestroyContext(nullptr));
  EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtDestroyContext(default_context));
  EXPECT_EQ(current_context(), default_context);
  EXPECT_TRUE(default_context_exists(0));
  EXPECT_SUCCESS(aclrtSynchronizeDevice());
}

TEST_F(Context, CTX_05_DestroyRefusesASecondTimeAndForeignHandles) {
  const aclrtContext context = create_context(0);
  EXPECT_SUCCESS(aclrtDestroyContext(context));
  EXPECT_NE(aclrtDestroyContext(context), ACL_SUCCESS);
  EXPECT_NE(recent_error().find("aclrtDestroyContext"), std::string::npos);
  int not_a_context = 0;
  EXPECT_NE(aclrtDestroyContext(&not_a_context), ACL_SUCCESS);
  EXPECT_NE(aclrtDestroyContext(address(0x1000)), ACL_SUCCESS);

  // A new context may come to lie where the old one was; the old handle must not reach it.
  std::vector<aclrtContext> successors;
  for (int i = 0; i < 8; ++i) successors.push_back(create_context(0));
  EXPECT_NE(aclrtDestroyContext(context), ACL_SUCCESS);
  for (aclrtContext successor : successors) EXPECT_SUCCESS(aclrtDestroyContext(successor));
}

TEST_F(Context, CTX_06_DestroyingTheCurrentContextLeavesTheThreadWithout) {
  on_new_thread([] {
    const aclrtContext context = create_context(0);
    EXPECT_SUCCESS(aclrtDestroyContext(context));
    expect_no_context();
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtSynchronizeDevice());
  });
}

TEST_F(Context, CTX_06_StreamsOfADestroyedContextAreStale) {
  const aclrtContext context = create_context(0);
  const aclrtStream stream = default_stream();
  EXPECT_TRUE(stream_is_usable(stream));
  EXPECT_SUCCESS(aclrtDestroyContext(context));
  const aclrtContext other = create_context(0);
  EXPECT_FALSE(stream_is_usable(stream));
  EXPECT_SUCCESS(aclrtDestroyContext(other));
}

TEST_F(Context, CTX_06_AnotherThreadMayLoseItsContext) {
  const aclrtContext context = create_context(0);
  on_new_thread([context] { EXPECT_SUCCESS(aclrtDestroyContext(context)); });
  aclrtContext left = nullptr;
  if (aclrtGetCurrentContext(&left) == ACL_SUCCESS) {
    EXPECT_NE(left, context);
  }
  EXPECT_NE(aclrtSynchronizeDevice(), ACL_SUCCESS);
}

TEST_F(Context, CTX_07_DestroyingAContextFreesNoDeviceMemory) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const aclrtContext default_context = current_context();
  const aclrtContext context = create_context(0);
  const MappedBlock block = map_new_block();
  copy_in(block.address, pattern(4 * kKiB));
  const MemoryFigures before = memory_figures();
  EXPECT_SUCCESS(aclrtDestroyContext(context));

  EXPECT_SUCCESS(aclrtSetCurrentContext(default_context));
  EXPECT_EQ(memory_figures(), before);
  EXPECT_EQ(copy_out(block.address, 4 * kKiB), pattern(4 * kKiB));
  drop(block);
}

TEST_F(Context, CTX_08_NullStaleAndForeignContextsCannotBeMadeCurrent) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const aclrtContext before = current_context();
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtSetCurrentContext(nullptr));
  EXPECT_EQ(current_context(), before);

  const aclrtContext destroyed = create_context(0);
  EXPECT_SUCCESS(aclrtDestroyContext(destroyed));
  ASSERT_SUCCESS(aclrtSetDevice(0));
  expect_stale(destroyed);
  int not_a_context = 0;
  expect_stale(&not_a_context);
  EXPECT_EQ(current_context(), before);
}

TEST_F(Context, CTX_08_TheContextOfAResetDeviceCannotBeMadeCurrent) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const aclrtContext of_first_device = current_context();
  ASSERT_SUCCESS(aclrtSetDevice(1));
  const aclrtContext of_second_device = current_context();
  EXPECT_SUCCESS(aclrtResetDevice(0));
  expect_stale(of_first_device);
  EXPECT_EQ(current_context(), of_second_device);
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_NE(current_context(), of_first_device) << "an old handle came to life again";
  expect_stale(of_first_device);
}

TEST_F(Context, CTX_09_AContextMadeByAnotherThreadSwitchesTheDevice) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  aclrtContext context = nullptr;
  on_new_thread([&context] { context = create_context(3); });
  EXPECT_SUCCESS(aclrtSetCurrentContext(context));
  EXPECT_EQ(current_device(), 3);
  EXPECT_EQ(current_context(), context);
  on_new_thread([context] {
    EXPECT_SUCCESS(aclrtSetCurrentContext(context));
    EXPECT_EQ(current_device(), 3);
  });
  EXPECT_SUCCESS(aclrtDestroyContext(context));
}

TEST_F(Context, CTX_10_GetNeedsAPointerAndAContext) {
  on_new_thread([] {
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetCurrentContext(nullptr));
    expect_no_context();
    ASSERT_SUCCESS(aclrtSetDevice(0));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetCurrentContext(nullptr));
  });
}

TEST_F(Context, CTX_10_AfterSetDeviceItIsTheDefaultContext) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const aclrtContext context = current_context();
  EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtDestroyContext(context));
  on_new_thread([context] {
    ASSERT_SUCCESS(aclrtSetDevice(0));
    EXPECT_EQ(current_context(), context);
  });
}

TEST_F(Context, CTX_11_TheDefaultStreamNeedsAPointerAndAContext) {
  on_new_thread([] {
    int mark = 0;
    aclrtStream stream = &mark;
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCtxGetCurrentDefaultStream(nullptr));
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtCtxGetCurrentDefaultStream(&stream));
    EXPECT_EQ(stream, &mark);
  });
}

TEST_F(Context, CTX_11_NullStandsForTheDefaultStream) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const aclrtStream stream = default_stream();
  EXPECT_EQ(default_stream(), stream);
  constexpr aclrtDevResLimitType kCube = ACL_RT_DEV_RES_CUBE_CORE;
  EXPECT_SUCCESS(aclrtSetStreamResLimit(nullptr, kCube, 3));
  uint32_t value = 0;
  EXPECT_SUCCESS(aclrtGetStreamResLimit(stream, kCube, &value));
  EXPECT_EQ(value, 3u);
  EXPECT_SUCCESS(aclrtSetStreamResLimit(stream, kCube, 2));
  EXPECT_SUCCESS(aclrtGetStreamResLimit(nullptr, kCube, &value));
  EXPECT_EQ(value, 2u);
  EXPECT_SUCCESS(aclrtResetStreamResLimit(stream));
}

constexpr aclSysParamOpt kEveryOption[] = {ACL_OPT_DETERMINISTIC, ACL_OPT_ENABLE_DEBUG_KERNEL,
                                           ACL_OPT_STRONG_CONSISTENCY,
                                           ACL_OPT_ENABLE_KERNEL_EARLY_START};

TEST_F(Context, CTX_12_NullIsRefused) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, nullptr));
}

TEST_F(Context, CTX_12_WhatWasNeverSetIsAnErrorInAContextAndZeroInTheProcess) {
  US_FRESH_PROCESS();
  ASSERT_SUCCESS(aclrtSetDevice(0));
  for (aclSysParamOpt option : kEveryOption) {
    SCOPED_TRACE(option);
    int64_t value = 77;
    EXPECT_FAILS(ACL_ERROR_RT_SYSPARAMOPT_NOT_SET, aclrtCtxGetSysParamOpt(option, &value));
    EXPECT_EQ(value, 77);
    EXPECT_SUCCESS(aclrtGetSysParamOpt(option, &value));
    EXPECT_EQ(value, 0);
  }
}

TEST_F(Context, CTX_12_OptionsAreRememberedPerContext) {
  US_FRESH_PROCESS();
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const aclrtContext default_context = current_context();
  EXPECT_SUCCESS(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1));
  int64_t value = 77;
  EXPECT_SUCCESS(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
  EXPECT_EQ(value, 1);
  EXPECT_FAILS(ACL_ERROR_RT_SYSPARAMOPT_NOT_SET,
               aclrtCtxGetSysParamOpt(ACL_OPT_ENABLE_DEBUG_KERNEL, &value));

  const aclrtContext other = create_context(0);
  EXPECT_FAILS(ACL_ERROR_RT_SYSPARAMOPT_NOT_SET,
               aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
  EXPECT_SUCCESS(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 0));
  EXPECT_SUCCESS(aclrtSetCurrentContext(default_context));
  EXPECT_SUCCESS(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
  EXPECT_EQ(value, 1);
  EXPECT_SUCCESS(aclrtDestroyContext(other));
}

TEST_F(Context, CTX_13_EveryValueIsStored) {
  US_FRESH_PROCESS();
  ASSERT_SUCCESS(aclrtSetDevice(0));
  for (const aclSysParamOpt option : kEveryOption) {
    for (const int64_t given :
         {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{3}, int64_t{4}, int64_t{-1},
          std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
      SCOPED_TRACE(testing::Message() << "option " << option << ", value " << given);
      int64_t seen = 77;
      EXPECT_SUCCESS(aclrtCtxSetSysParamOpt(option, given));
      EXPECT_SUCCESS(aclrtCtxGetSysParamOpt(option, &seen));
      EXPECT_EQ(seen, given);
      EXPECT_SUCCESS(aclrtSetSysParamOpt(option, given));
      EXPECT_SUCCESS(aclrtGetSysParamOpt(option, &seen));
      EXPECT_EQ(seen, given);
    }
  }
}

TEST_F(Context, CTX_12_OptionsOfTheProcessAreRemembered) {
  US_FRESH_PROCESS();
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_SUCCESS(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1));
  int64_t value = 77;
  EXPECT_SUCCESS(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
  EXPECT_EQ(value, 1);
  EXPECT_SUCCESS(aclrtGetSysParamOpt(ACL_OPT_ENABLE_DEBUG_KERNEL, &value));
  EXPECT_EQ(value, 0);
  ASSERT_SUCCESS(aclrtSetDevice(1));
  EXPECT_SUCCESS(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
  EXPECT_EQ(value, 1);
}

}  // namespace
}  // namespace understudy_test::runtime
