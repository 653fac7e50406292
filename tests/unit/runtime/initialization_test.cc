// SPDX-License-Identifier: Apache-2.0
#include "runtime/initialization.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "unit/expect_result.h"
#include "unit/run_on_threads.h"

namespace understudy {
namespace {

using Callback = Initialization::Callback;
using Moment = Initialization::Moment;
using Multiplicity = Initialization::Multiplicity;

void first_function() {}
void second_function() {}

class InitializationTest : public testing::Test {
 protected:
  // Writes down each call of a callback, and lets the type `failing_type_` fail with 77.
  Initialization::Caller caller() {
    return [this](const Callback& callback, const std::string& text) {
      called_.push_back(callback.type);
      text_ = text;
      return callback.type == failing_type_ ? 77 : 0;
    };
  }
  Result<int32_t> init(const InitOptions& options = {}) { return state_.init(options, caller()); }
  Result<uint64_t> finalize_one() { return state_.finalize_one(caller()); }
  Result<uint64_t> finalize_all() { return state_.finalize_all(caller()); }
  Result<int32_t> add(Moment moment, int32_t type, AnyFunction function = first_function,
                      Multiplicity multiplicity = Multiplicity::kMany) {
    return state_.add_callback(moment, {type, function, nullptr}, multiplicity, caller());
  }

  static constexpr int32_t kNoType = -1;

  Initialization state_;
  std::vector<int32_t> called_;
  std::string text_;
  int32_t failing_type_ = kNoType;
};

using Types = std::vector<int32_t>;

TEST_F(InitializationTest, EveryUseIsCountedAlthoughTheSecondIsAnError) {
  EXPECT_EQ(value_of(init()), 0);
  EXPECT_TRUE(fails_with(init(), ErrorCode::kAlreadyInitialized));
  EXPECT_TRUE(fails_with(init(), ErrorCode::kAlreadyInitialized));
  EXPECT_EQ(value_of(finalize_one()), 2u);
  EXPECT_EQ(value_of(finalize_one()), 1u);
  EXPECT_EQ(value_of(finalize_one()), 0u);
  EXPECT_TRUE(fails_with(finalize_one(), ErrorCode::kAlreadyFinalized));
}

TEST_F(InitializationTest, FinalizeAllEndsAllUsesAtOnce) {
  EXPECT_TRUE(fails_with(finalize_all(), ErrorCode::kAlreadyFinalized));
  EXPECT_EQ(value_of(init()), 0);
  EXPECT_FALSE(init().ok());
  EXPECT_EQ(value_of(finalize_all()), 0u);
  EXPECT_TRUE(fails_with(finalize_all(), ErrorCode::kAlreadyFinalized));
  EXPECT_EQ(value_of(init()), 0);
}

// What other threads do while a callback of the first use runs, and then fails.
TEST_F(InitializationTest, AFailedInitLeavesUsesThatWereCountedMeanwhile) {
  EXPECT_EQ(value_of(add(Moment::kInit, 1)), 0);
  const auto another_init = [&](const Callback&, const std::string&) {
    EXPECT_TRUE(fails_with(init(), ErrorCode::kAlreadyInitialized));
    return 77;
  };
  EXPECT_EQ(value_of(state_.init({}, another_init)), 77);
  EXPECT_EQ(value_of(finalize_one()), 0u);
  EXPECT_TRUE(fails_with(finalize_one(), ErrorCode::kAlreadyFinalized));
}

TEST_F(InitializationTest, AFailedInitThatWasFinalizedMeanwhileCountsNothing) {
  EXPECT_EQ(value_of(add(Moment::kInit, 1)), 0);
  const auto finalize_meanwhile = [&](const Callback&, const std::string&) {
    EXPECT_EQ(value_of(finalize_all()), 0u);
    return 77;
  };
  EXPECT_EQ(value_of(state_.init({}, finalize_meanwhile)), 77);
  EXPECT_TRUE(fails_with(finalize_one(), ErrorCode::kAlreadyFinalized));
  EXPECT_EQ(value_of(init()), 0);
}

TEST_F(InitializationTest, OtherOptionsThanTheFirstTimeAreRefusedAndNotCounted) {
  InitOptions other;
  other.content = R"({"a":1})";
  EXPECT_EQ(value_of(init()), 0);
  EXPECT_TRUE(fails_with(init(other), ErrorCode::kInvalidArgument));
  EXPECT_EQ(value_of(finalize_one()), 0u);
  EXPECT_TRUE(fails_with(init(other), ErrorCode::kInvalidArgument));
  EXPECT_EQ(value_of(init()), 0);
}

TEST_F(InitializationTest, CallbacksRunAtTheFirstInitAndTheLastFinalize) {
  value_of(add(Moment::kInit, 1));
  value_of(add(Moment::kInit, 2));
  value_of(add(Moment::kFinalize, 3));
  EXPECT_EQ(called_, Types{});
  EXPECT_TRUE(is_ok(init()));
  EXPECT_EQ(called_, (Types{1, 2}));
  EXPECT_FALSE(init().ok());
  EXPECT_TRUE(is_ok(finalize_one()));
  EXPECT_EQ(called_, (Types{1, 2}));
  EXPECT_TRUE(is_ok(finalize_one()));
  EXPECT_EQ(called_, (Types{1, 2, 3}));
}

TEST_F(InitializationTest, CallbacksSeeTheTextOfTheFile) {
  InitOptions options;
  options.text = "{ }";
  value_of(add(Moment::kInit, 1));
  value_of(add(Moment::kFinalize, 2));
  EXPECT_TRUE(is_ok(init(options)));
  EXPECT_EQ(text_, "{ }");
  text_.clear();
  EXPECT_TRUE(is_ok(finalize_one()));
  EXPECT_EQ(text_, "{ }");
}

TEST_F(InitializationTest, FailedCallbackMakesInitReturnItsCodeAndCountNothing) {
  value_of(add(Moment::kInit, 1));
  value_of(add(Moment::kInit, 2));
  failing_type_ = 1;
  EXPECT_EQ(value_of(init()), 77);
  EXPECT_EQ(called_, Types{1});
  EXPECT_TRUE(fails_with(finalize_one(), ErrorCode::kAlreadyFinalized));
  failing_type_ = kNoType;
  EXPECT_EQ(value_of(init()), 0);
}

TEST_F(InitializationTest, OptionsOfAnInitThatFailedDoNotCountAsTheFirst) {
  InitOptions other;
  other.content = R"({"a":1})";
  value_of(add(Moment::kInit, 1));
  failing_type_ = 1;
  EXPECT_EQ(value_of(init(other)), 77);
  failing_type_ = kNoType;
  EXPECT_EQ(value_of(init()), 0);
  EXPECT_TRUE(is_ok(finalize_one()));
  EXPECT_TRUE(fails_with(init(other), ErrorCode::kInvalidArgument));
}

TEST_F(InitializationTest, InitCallbackThatComesLateRunsAtOnce) {
  EXPECT_TRUE(is_ok(init()));
  EXPECT_EQ(value_of(add(Moment::kInit, 1)), 0);
  EXPECT_EQ(called_, Types{1});
  failing_type_ = 2;
  EXPECT_EQ(value_of(add(Moment::kInit, 2)), 77);
  EXPECT_EQ(value_of(add(Moment::kFinalize, 3)), 0);
  EXPECT_EQ(called_, (Types{1, 2}));
}

TEST_F(InitializationTest, TypeThatTakesOneCallbackRefusesASecond) {
  value_of(add(Moment::kInit, 1, first_function, Multiplicity::kOne));
  EXPECT_TRUE(fails_with(add(Moment::kInit, 1, second_function, Multiplicity::kOne),
                         ErrorCode::kCallbackRefused));
  // Another type, or the other moment, is another matter.
  EXPECT_TRUE(is_ok(add(Moment::kInit, 2, first_function, Multiplicity::kOne)));
  EXPECT_TRUE(is_ok(add(Moment::kFinalize, 1, first_function, Multiplicity::kOne)));
  EXPECT_TRUE(is_ok(init()));
  EXPECT_EQ(called_, (Types{1, 2}));
}

TEST_F(InitializationTest, RemovedCallbackIsFoundByTypeAndFunction) {
  value_of(add(Moment::kInit, 1, first_function));
  EXPECT_TRUE(fails_with(state_.remove_callback(Moment::kInit, 1, second_function),
                         ErrorCode::kCallbackRefused));
  EXPECT_TRUE(fails_with(state_.remove_callback(Moment::kInit, 2, first_function),
                         ErrorCode::kCallbackRefused));
  EXPECT_TRUE(fails_with(state_.remove_callback(Moment::kFinalize, 1, first_function),
                         ErrorCode::kCallbackRefused));
  EXPECT_TRUE(is_ok(state_.remove_callback(Moment::kInit, 1, first_function)));
  EXPECT_TRUE(fails_with(state_.remove_callback(Moment::kInit, 1, first_function),
                         ErrorCode::kCallbackRefused));
  EXPECT_TRUE(is_ok(init()));
  EXPECT_EQ(called_, Types{});
}

TEST_F(InitializationTest, CallbackMayCallBack) {
  value_of(add(Moment::kInit, 1));
  Result<int32_t> again = 0;
  EXPECT_EQ(value_of(state_.init({},
                                 [&](const Callback&, const std::string&) {
                                   again = state_.init({}, caller());
                                   return 0;
                                 })),
            0);
  EXPECT_TRUE(fails_with(again, ErrorCode::kAlreadyInitialized));
  EXPECT_EQ(value_of(finalize_one()), 1u);
}

TEST_F(InitializationTest, OneOfManyThreadsIsTheFirst) {
  std::atomic<int> first{0};
  run_on_threads(4, [&](int) {
    const auto nothing = [](const Callback&, const std::string&) { return 0; };
    if (state_.init({}, nothing).ok()) ++first;
  });
  EXPECT_EQ(first, 1);
  EXPECT_EQ(value_of(finalize_one()), 3u);
}

}  // namespace
}  // namespace understudy
