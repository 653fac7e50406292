// SPDX-License-Identifier: Apache-2.0
//
// Callbacks around aclInit and aclFinalize. Registrations outlive a test: each has its own process.
// Covers: INIT-10, INIT-13, INIT-14.
#include <iterator>

#include "rules/runtime_support.h"

namespace understudy_test::runtime {
namespace {

constexpr aclRegisterCallbackType kSingleTypes[] = {
    ACL_REG_TYPE_ACL_MODEL,       ACL_REG_TYPE_ACL_OP_EXECUTOR, ACL_REG_TYPE_ACL_OP_CBLAS,
    ACL_REG_TYPE_ACL_OP_COMPILER, ACL_REG_TYPE_ACL_TDT_CHANNEL, ACL_REG_TYPE_ACL_TDT_QUEUE,
    ACL_REG_TYPE_ACL_DVPP,        ACL_REG_TYPE_ACL_RETR};

// A function per number, since a registration is known by its function. `userData` counts calls.
template <int kNumber>
aclError at_init(const char*, size_t, void* userData) {
  ++*static_cast<int*>(userData);
  return ACL_SUCCESS;
}
template <int kNumber>
aclError at_finalize(void* userData) {
  ++*static_cast<int*>(userData);
  return ACL_SUCCESS;
}

constexpr aclError kCallbackError = ACL_ERROR_RT_INTERNAL_ERROR;
aclError fail_at_init(const char*, size_t, void*) { return kCallbackError; }

TEST(InitCallback, INIT_13_NullCallbackIsRefused) {
  US_FRESH_PROCESS();
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclInitCallbackRegister(ACL_REG_TYPE_OTHER, nullptr, nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclFinalizeCallbackRegister(ACL_REG_TYPE_OTHER, nullptr, nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclInitCallbackUnRegister(ACL_REG_TYPE_OTHER, nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclFinalizeCallbackUnRegister(ACL_REG_TYPE_OTHER, nullptr));
}

TEST(InitCallback, INIT_13_ASecondRegistrationOfATypeIsRefusedAndTheFirstKept) {
  US_FRESH_PROCESS();
  int first = 0;
  int second = 0;
  for (aclRegisterCallbackType type : kSingleTypes) {
    SCOPED_TRACE(type);
    EXPECT_SUCCESS(aclInitCallbackRegister(type, at_init<1>, &first));
    EXPECT_FAILS(ACL_ERROR_INTERNAL_ERROR, aclInitCallbackRegister(type, at_init<2>, &second));
    EXPECT_SUCCESS(aclFinalizeCallbackRegister(type, at_finalize<1>, &first));
    EXPECT_FAILS(ACL_ERROR_INTERNAL_ERROR,
                 aclFinalizeCallbackRegister(type, at_finalize<2>, &second));
  }
  const int types = static_cast<int>(std::size(kSingleTypes));
  EXPECT_SUCCESS(aclInit(nullptr));
  EXPECT_EQ(first, types);
  EXPECT_SUCCESS(aclFinalize());
  EXPECT_EQ(first, 2 * types);
  EXPECT_EQ(second, 0);
}

TEST(InitCallback, INIT_13_TheTypeOtherTakesSeveral) {
  US_FRESH_PROCESS();
  int started = 0;
  int ended = 0;
  EXPECT_SUCCESS(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, at_init<1>, &started));
  EXPECT_SUCCESS(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, at_init<2>, &started));
  EXPECT_SUCCESS(aclFinalizeCallbackRegister(ACL_REG_TYPE_OTHER, at_finalize<1>, &ended));
  EXPECT_SUCCESS(aclFinalizeCallbackRegister(ACL_REG_TYPE_OTHER, at_finalize<2>, &ended));
  EXPECT_SUCCESS(aclInit(nullptr));
  EXPECT_EQ(started, 2);
  EXPECT_EQ(ended, 0);
  EXPECT_SUCCESS(aclFinalize());
  EXPECT_EQ(started, 2);
  EXPECT_EQ(ended, 2);
}

TEST(InitCallback, INIT_13_UnregisteringAnUnknownCallbackIsRefused) {
  US_FRESH_PROCESS();
  EXPECT_FAILS(ACL_ERROR_INTERNAL_ERROR,
               aclInitCallbackUnRegister(ACL_REG_TYPE_ACL_MODEL, at_init<1>));
  EXPECT_FAILS(ACL_ERROR_INTERNAL_ERROR,
               aclFinalizeCallbackUnRegister(ACL_REG_TYPE_ACL_MODEL, at_finalize<1>));
  int calls = 0;
  EXPECT_SUCCESS(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, at_init<1>, &calls));
  EXPECT_FAILS(ACL_ERROR_INTERNAL_ERROR, aclInitCallbackUnRegister(ACL_REG_TYPE_OTHER, at_init<2>));
  EXPECT_FAILS(ACL_ERROR_INTERNAL_ERROR,
               aclInitCallbackUnRegister(ACL_REG_TYPE_ACL_MODEL, at_init<1>));
  EXPECT_SUCCESS(aclInit(nullptr));
  EXPECT_EQ(calls, 1) << "a refused unregistration took the callback away";
  EXPECT_SUCCESS(aclFinalize());
}

TEST(InitCallback, INIT_13_AnUnregisteredCallbackIsNotCalledAndMayBeReplaced) {
  US_FRESH_PROCESS();
  int first = 0;
  int second = 0;
  EXPECT_SUCCESS(aclInitCallbackRegister(ACL_REG_TYPE_ACL_DVPP, at_init<1>, &first));
  EXPECT_SUCCESS(aclInitCallbackUnRegister(ACL_REG_TYPE_ACL_DVPP, at_init<1>));
  EXPECT_FAILS(ACL_ERROR_INTERNAL_ERROR,
               aclInitCallbackUnRegister(ACL_REG_TYPE_ACL_DVPP, at_init<1>));
  EXPECT_SUCCESS(aclInitCallbackRegister(ACL_REG_TYPE_ACL_DVPP, at_init<2>, &second));
  EXPECT_SUCCESS(aclFinalizeCallbackRegister(ACL_REG_TYPE_ACL_DVPP, at_finalize<1>, &first));
  EXPECT_SUCCESS(aclFinalizeCallbackUnRegister(ACL_REG_TYPE_ACL_DVPP, at_finalize<1>));
  EXPECT_SUCCESS(aclInit(nullptr));
  EXPECT_SUCCESS(aclFinalize());
  EXPECT_EQ(first, 0);
  EXPECT_EQ(second, 1);
}

TEST(InitCallback, INIT_10_FinalizeCallbacksRunWhenTheCountReachesZero) {
  US_FRESH_PROCESS();
  int ended = 0;
  EXPECT_SUCCESS(aclFinalizeCallbackRegister(ACL_REG_TYPE_OTHER, at_finalize<1>, &ended));
  ASSERT_SUCCESS(aclInit(nullptr));
  EXPECT_FAILS(ACL_ERROR_REPEAT_INITIALIZE, aclInit(nullptr));
  EXPECT_SUCCESS(aclFinalizeReference(nullptr));
  EXPECT_EQ(ended, 0);
  EXPECT_SUCCESS(aclFinalizeReference(nullptr));
  EXPECT_EQ(ended, 1);
}

TEST(InitCallback, INIT_14_ACallbackRegisteredAfterInitRunsAtOnce) {
  US_FRESH_PROCESS();
  int calls = 0;
  ASSERT_SUCCESS(aclInit(nullptr));
  EXPECT_SUCCESS(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, at_init<1>, &calls));
  EXPECT_EQ(calls, 1);
  EXPECT_SUCCESS(aclFinalize());
}

TEST(InitCallback, INIT_14_ACallbackRegisteredBeforeInitWaitsForIt) {
  US_FRESH_PROCESS();
  int calls = 0;
  EXPECT_SUCCESS(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, at_init<1>, &calls));
  EXPECT_EQ(calls, 0);
  ASSERT_SUCCESS(aclInit(nullptr));
  EXPECT_EQ(calls, 1);
  EXPECT_SUCCESS(aclFinalize());
}

TEST(InitCallback, INIT_14_AnErrorOfACallbackBecomesTheResultOfInit) {
  US_FRESH_PROCESS();
  EXPECT_SUCCESS(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, fail_at_init, nullptr));
  EXPECT_FAILS(kCallbackError, aclInit(nullptr));
}

// Callbacks may use the library: none is called while it holds a lock of its own.
aclError use_the_library(const char*, size_t, void* userData) {
  *static_cast<uint32_t*>(userData) = device_count();
  return ACL_SUCCESS;
}

TEST(InitCallback, INIT_14_ACallbackMayCallTheLibrary) {
  US_FRESH_PROCESS();
  uint32_t count = 0;
  EXPECT_SUCCESS(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, use_the_library, &count));
  ASSERT_SUCCESS(aclInit(nullptr));
  EXPECT_EQ(count, 8u);
  EXPECT_SUCCESS(aclFinalize());
}

}  // namespace
}  // namespace understudy_test::runtime
