// SPDX-License-Identifier: Apache-2.0
//
// Snapshot of a process: arguments, states, the lock and the callbacks.
// Covers: SNAP-01, SNAP-02, SNAP-03, SNAP-04, SNAP-06, SNAP-07, SNAP-08, SNAP-09, SNAP-10, SNAP-11,
// SNAP-12, SNAP-13, SNAP-27, SNAP-28, SNAP-29, SNAP-30, SNAP-31.
#include <algorithm>
#include <array>
#include <atomic>
#include <string>

#include "rules/snapshot_objects.h"

namespace understudy_test {
namespace {

using Snapshot = SnapshotTest;

constexpr aclError kInner = ACL_ERROR_RT_PARAM_INVALID;
constexpr std::array kAllStates = {ProcessState::kRunning, ProcessState::kLocked,
                                   ProcessState::kBackedUp};

// ---- Arguments ----

TEST_F(Snapshot, SNAP_01_OnlyTheProcessItself) {
  for (const int pid : {0, -1, 1, getppid(), getpid() + 1}) {
    EXPECT_FAILS(kInner, aclrtSnapShotProcessLock(pid, nullptr));
    EXPECT_FAILS(kInner, aclrtSnapShotProcessBackup(pid, nullptr));
    EXPECT_FAILS(kInner, aclrtSnapShotProcessRestore(pid, nullptr));
    EXPECT_FAILS(kInner, aclrtSnapShotProcessUnlock(pid, nullptr));
  }
  expect_state(ProcessState::kRunning);
  int32_t bare = 0;
  EXPECT_SUCCESS(aclrtDeviceGetBareTgid(&bare));
  EXPECT_SUCCESS(aclrtSnapShotProcessLock(bare, nullptr));
  EXPECT_SUCCESS(aclrtSnapShotProcessUnlock(bare, nullptr));
}

TEST_F(Snapshot, SNAP_02_EverythingElseMustBeNull) {
  int anything = 0;
  aclrtSnapShotBackupArgs backup{};
  aclrtSnapShotRestoreArgs restore{};
  EXPECT_FAILS(kInner, aclrtSnapShotProcessLock(getpid(), &anything));
  expect_state(ProcessState::kRunning);
  EXPECT_SUCCESS(lock_process());
  EXPECT_FAILS(kInner, aclrtSnapShotProcessBackup(getpid(), &backup));
  expect_state(ProcessState::kLocked);
  EXPECT_SUCCESS(back_up_process());
  EXPECT_FAILS(kInner, aclrtSnapShotProcessRestore(getpid(), &restore));
  EXPECT_FAILS(kInner, aclrtSnapShotProcessUnlock(getpid(), &anything));
  expect_state(ProcessState::kBackedUp);
}

uint32_t succeed(int32_t, void*) { return 0; }
uint32_t succeed_too(int32_t, void*) { return 0; }

TEST_F(Snapshot, SNAP_03_CallbacksNeedAFunctionAndAStage) {
  const auto stage = ACL_RT_SNAPSHOT_LOCK_PRE;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtSnapShotCallbackRegister(stage, nullptr, nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtSnapShotCallbackUnregister(stage, nullptr));
  for (const int number : {-1, 6, 100}) {
    const auto bad = enum_value<aclrtSnapShotStage>(number);
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtSnapShotCallbackRegister(bad, nullptr, nullptr));
    EXPECT_FAILS(kInner, aclrtSnapShotCallbackRegister(bad, succeed, nullptr));
    EXPECT_FAILS(kInner, aclrtSnapShotCallbackUnregister(bad, succeed));
  }
}

TEST_F(Snapshot, SNAP_04_StatesRefuseWhatTheTableSays) {
  expect_state(ProcessState::kRunning);
  EXPECT_SUCCESS(lock_process());
  expect_state(ProcessState::kLocked);
  EXPECT_SUCCESS(back_up_process());
  expect_state(ProcessState::kBackedUp);
  EXPECT_SUCCESS(restore_process());
  expect_state(ProcessState::kLocked);
  EXPECT_SUCCESS(unlock_process());
  expect_state(ProcessState::kRunning);
  enter(ProcessState::kBackedUp);
  EXPECT_SUCCESS(unlock_process());
  expect_state(ProcessState::kRunning);
}

TEST(SnapshotAlone, SNAP_06_NeitherInitNorDeviceNorContextIsNeeded) {
  US_FRESH_PROCESS();
  EXPECT_SUCCESS(aclrtSnapShotCallbackRegister(
      ACL_RT_SNAPSHOT_LOCK_PRE, [](int32_t, void*) -> uint32_t { return 1; }, nullptr));
  EXPECT_SUCCESS(lock_process());  // no device is in use, so no callback runs
  EXPECT_SUCCESS(back_up_process());
  EXPECT_SUCCESS(restore_process());
  EXPECT_SUCCESS(unlock_process());
  expect_state(ProcessState::kRunning);
}

TEST_F(Snapshot, SNAP_07_CallsOfSeveralThreadsComeOneAfterTheOther) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 200;
  std::atomic<int> locked{0};
  std::atomic<int> inside{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        if (lock_process() != ACL_SUCCESS) continue;
        EXPECT_EQ(inside.fetch_add(1), 0);
        ++locked;
        inside.fetch_sub(1);
        EXPECT_SUCCESS(unlock_process());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(locked.load(), 0);
  expect_state(ProcessState::kRunning);
}

// ---- Products ----

struct SnapshotProduct {
  const char* product;
  const char* soc;
  bool has_snapshots;
};
class SnapshotProducts : public testing::TestWithParam<SnapshotProduct> {};
INSTANTIATE_TEST_SUITE_P(
    , SnapshotProducts,
    testing::Values(SnapshotProduct{"a3", "", true}, SnapshotProduct{"a2", "", true},
                    SnapshotProduct{"inf", "", false}, SnapshotProduct{"trn", "", false},
                    SnapshotProduct{"200i", "", false}, SnapshotProduct{"200i-rc", "", false},
                    SnapshotProduct{"950", "Ascend950PR_9599", true},
                    SnapshotProduct{"950", "Ascend950DT_9595", false},
                    SnapshotProduct{"ipv350", "", false}),
    [](const testing::TestParamInfo<SnapshotProduct>& row) {
      return test_name_of_product(std::string(row.param.product) + row.param.soc);
    });

TEST_P(SnapshotProducts, SNAP_01_SomeProductsHaveIt) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam().product}, {"UNDERSTUDY_SOC", GetParam().soc});
  constexpr aclError kUnsupported = ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
  if (GetParam().has_snapshots) {
    EXPECT_SUCCESS(lock_process());
    EXPECT_SUCCESS(back_up_process());
    EXPECT_SUCCESS(restore_process());
    EXPECT_SUCCESS(unlock_process());
    return;
  }
  // The product comes before the other arguments.
  EXPECT_FAILS(kUnsupported, aclrtSnapShotProcessLock(0, nullptr));
  expect_refused(kUnsupported, back_up_process);
  expect_refused(kUnsupported, restore_process);
  expect_refused(kUnsupported, unlock_process);
  EXPECT_FAILS(kUnsupported,
               aclrtSnapShotCallbackRegister(ACL_RT_SNAPSHOT_LOCK_PRE, succeed, nullptr));
  EXPECT_FAILS(kUnsupported, aclrtSnapShotCallbackUnregister(ACL_RT_SNAPSHOT_LOCK_PRE, succeed));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtSnapShotCallbackRegister(ACL_RT_SNAPSHOT_LOCK_PRE, nullptr, nullptr));
}

// ---- The lock. Which functions it holds: tests/regress/snapshot_classes_test.cc ----

TEST_F(Snapshot, SNAP_08_HeldCallsOfManyThreadsGoOnAfterUnlock) {
  for (const bool is_backed_up : {false, true}) {
    enter(is_backed_up ? ProcessState::kBackedUp : ProcessState::kLocked);
    constexpr uint64_t kThreads = 8;
    std::vector<std::unique_ptr<HeldCall>> calls;
    std::array<void*, kThreads> blocks{};
    for (uint64_t i = 0; i < kThreads; ++i) {
      calls.push_back(std::make_unique<HeldCall>([&blocks, i]() -> aclError {
        const aclError set = aclrtSetDevice(0);
        return set != ACL_SUCCESS ? set : aclrtMalloc(&blocks[i], kMiB, ACL_MEM_MALLOC_HUGE_FIRST);
      }));
    }
    HeldCall::wait_for(kThreads);
    for (void* block : blocks) EXPECT_EQ(block, nullptr);
    EXPECT_SUCCESS(unlock_process());
    for (auto& call : calls) EXPECT_SUCCESS(call->code());
    EXPECT_EQ(held_calls(), 0u);
    for (void* block : blocks) EXPECT_SUCCESS(aclrtFree(block));
    for (uint64_t i = 0; i < kThreads; ++i) EXPECT_SUCCESS(aclrtResetDevice(0));
  }
}

TEST_F(Snapshot, SNAP_09_QueriesAndSynchronisationsRun) {
  const TestStream stream;
  const TestEvent event;
  const DeviceBlock block(kMiB);
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), stream.get()));
  for (const ProcessState state : {ProcessState::kLocked, ProcessState::kBackedUp}) {
    enter(state);
    size_t free = 0;
    size_t total = 0;
    int32_t device = -1;
    aclrtPtrAttributes attributes;
    EXPECT_SUCCESS(aclrtGetDevice(&device));
    EXPECT_SUCCESS(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
    EXPECT_SUCCESS(aclrtPointerGetAttributes(block.data(), &attributes));
    EXPECT_SUCCESS(aclrtSynchronizeStream(stream.get()));
    EXPECT_SUCCESS(aclrtSynchronizeEvent(event.get()));
    EXPECT_SUCCESS(aclrtSynchronizeDevice());
    EXPECT_EQ(stream_status(stream.get()), ACL_STREAM_STATUS_COMPLETE);
    EXPECT_SUCCESS(unlock_process());
  }
}

TEST_F(Snapshot, SNAP_10_OuterFaultsAreAnsweredAtOnce) {
  EXPECT_SUCCESS(lock_process());
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMalloc(nullptr, 1, ACL_MEM_MALLOC_HUGE_FIRST));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtFree(nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemcpy(nullptr, 1, "x", 1, ACL_MEMCPY_DEFAULT));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCreateStream(nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMapMem(nullptr, 1, 0, nullptr, 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtReduceAsync(nullptr, nullptr, 4, enum_value<aclrtReduceKind>(10), ACL_FLOAT,
                                nullptr, nullptr));
  expect_state(ProcessState::kLocked);
}

TEST_F(Snapshot, SNAP_11_TheThreadThatLockedIsHeldToo) {
  void* block = nullptr;
  const LockedCall call =
      call_while_locked([&] { return aclrtMalloc(&block, kMiB, ACL_MEM_MALLOC_HUGE_FIRST); });
  EXPECT_TRUE(call.waited);
  EXPECT_SUCCESS(call.code);
  EXPECT_SUCCESS(aclrtFree(block));
}

TEST_F(Snapshot, SNAP_11_AHeldCallFindsWhatIsTrueAfterUnlock) {
  // The stream is destroyed while a call that names it waits, by a call that was held before it.
  aclrtStream stream = nullptr;
  aclrtContext context = nullptr;
  EXPECT_SUCCESS(aclrtCreateStream(&stream));
  EXPECT_SUCCESS(aclrtGetCurrentContext(&context));
  EXPECT_SUCCESS(lock_process());
  const auto in_context = [context](auto body) {
    return [context, body]() -> aclError {
      EXPECT_SUCCESS(aclrtSetCurrentContext(context));
      return body();
    };
  };
  HeldCall destroy(in_context([=] { return aclrtDestroyStream(stream); }));
  HeldCall::wait_for(1);
  HeldCall wait(in_context([=] {
    aclrtEvent event = nullptr;
    EXPECT_SUCCESS(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    return aclrtDestroyEvent(event);
  }));
  HeldCall::wait_for(2);
  EXPECT_SUCCESS(unlock_process());
  EXPECT_SUCCESS(destroy.code());
  EXPECT_SUCCESS(wait.code());
}

// Holds a call of class W under way, in a callback of the program.
class CallUnderWay {
 public:
  CallUnderWay() {
    EXPECT_SUCCESS(aclrtRegDeviceStateCallback("under way", stop, this));
    call_ = std::async(std::launch::async, [] { return aclrtSetDevice(1); });
    reached_.get_future().wait();
  }
  ~CallUnderWay() {
    end();
    EXPECT_SUCCESS(aclrtRegDeviceStateCallback("under way", nullptr, nullptr));
    EXPECT_SUCCESS(aclrtResetDevice(1));
  }
  CallUnderWay(const CallUnderWay&) = delete;
  CallUnderWay& operator=(const CallUnderWay&) = delete;

  void end() {
    if (!call_.valid()) return;
    ended_.set_value();
    EXPECT_SUCCESS(call_.get());
  }

 private:
  static void stop(uint32_t device, aclrtDeviceState state, void* self) {
    if (device != 1 || state != ACL_RT_DEVICE_STATE_SET_PRE) return;
    auto* const call = static_cast<CallUnderWay*>(self);
    call->reached_.set_value();
    call->ended_.get_future().wait();
    // Part of the call, which the lock waits for: it is not held.
    void* block = nullptr;
    EXPECT_SUCCESS(aclrtMallocHost(&block, 4096) == ACL_ERROR_RT_CONTEXT_NULL
                       ? ACL_SUCCESS
                       : aclrtFreeHost(block));
    (void)recent_error();
  }

  std::promise<void> reached_;
  std::promise<void> ended_;
  std::future<aclError> call_;
};

TEST_F(Snapshot, SNAP_12_LockWaitsForCallsUnderWay) {
  CallUnderWay call;
  std::future<aclError> locked = std::async(std::launch::async, lock_process);
  // The lock is being made: further calls wait already.
  std::atomic<bool> ends{false};
  HeldCall held([&] {
    aclError code = ACL_SUCCESS;
    while (!ends.load() && code == ACL_SUCCESS) {
      code = aclrtSetDevice(0);
      if (code == ACL_SUCCESS) code = aclrtResetDevice(0);
    }
    return code;
  });
  HeldCall::wait_for(1);
  EXPECT_NE(locked.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  call.end();
  EXPECT_SUCCESS(locked.get());
  expect_state(ProcessState::kLocked);
  ends.store(true);
  EXPECT_SUCCESS(unlock_process());
  EXPECT_SUCCESS(held.code());
}

TEST_F(Snapshot, SNAP_12_ACallThatDoesNotEndLetsTheLockFail) {
  CallUnderWay call;
  std::future<aclError> locked = std::async(std::launch::async, lock_process);
  HeldCall held([] { return aclrtSetDevice(0); });
  EXPECT_EQ(locked.get(), ACL_ERROR_SNAPSHOT_LOCK_TIMEOUT);
  EXPECT_SUCCESS(held.code());  // goes on
  expect_state(ProcessState::kRunning);
  call.end();
  EXPECT_SUCCESS(lock_process());
  EXPECT_SUCCESS(unlock_process());
  EXPECT_SUCCESS(aclrtResetDevice(0));
}

TEST_F(Snapshot, SNAP_13_QueuedTasksGoOnWhileLocked) {
  const TestStream stream;
  const DeviceBlock block(kMiB);
  const HostBlock out(kMiB);
  Gate gate(stream.get());
  EXPECT_SUCCESS(aclrtMemsetAsync(block.data(), kMiB, 7, kMiB, stream.get()));
  EXPECT_SUCCESS(aclrtMemcpyAsync(out.data(), kMiB, block.data(), kMiB, ACL_MEMCPY_DEVICE_TO_HOST,
                                  stream.get()));
  EXPECT_SUCCESS(lock_process());
  EXPECT_EQ(stream_status(stream.get()), ACL_STREAM_STATUS_NOT_READY);
  gate.open();
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_TRUE(holds(out.data(), std::vector<uint8_t>(kMiB, 7)));
  EXPECT_SUCCESS(unlock_process());
}

// ---- Callbacks ----

struct Call {
  int stage;
  int32_t device;
  const void* arguments;
  friend bool operator==(const Call&, const Call&) = default;
};
std::vector<Call> calls_made;
int refusing_stage = -1;
std::function<void(int stage)> also;

template <int kStage>
uint32_t note_call(int32_t device, void* arguments) {
  calls_made.push_back({kStage, device, arguments});
  if (also) also(kStage);
  return kStage == refusing_stage ? 77 : 0;
}
template <int kStage>
uint32_t note_call_behind(int32_t device, void* arguments) {
  calls_made.push_back({kStage + 100, device, arguments});
  return 0;
}

class SnapshotCallbacks : public SnapshotTest {
 protected:
  void SetUp() override {
    SnapshotTest::SetUp();
    calls_made.clear();
    refusing_stage = -1;
    also = nullptr;
    change<0>();
    change<1>();
    change<2>();
    change<3>();
    change<4>();
    change<5>();
  }
  void TearDown() override {
    also = nullptr;
    refusing_stage = -1;
    SnapshotTest::TearDown();
    adds_ = false;
    change<0>();
    change<1>();
    change<2>();
    change<3>();
    change<4>();
    change<5>();
  }
  static void refuse(int stage) {
    refusing_stage = stage;
    calls_made.clear();
  }
  // All stages of all four calls, once around.
  static aclError go_around() {
    for (const auto step : {lock_process, back_up_process, restore_process, unlock_process}) {
      if (const aclError code = step(); code != ACL_SUCCESS) return code;
    }
    return ACL_SUCCESS;
  }

  int first_ = 1;
  int second_ = 2;

 private:
  template <int kStage>
  void change() {
    const auto stage = static_cast<aclrtSnapShotStage>(kStage);
    if (adds_) {
      EXPECT_SUCCESS(aclrtSnapShotCallbackRegister(stage, note_call<kStage>, &first_));
      EXPECT_SUCCESS(aclrtSnapShotCallbackRegister(stage, note_call_behind<kStage>, &second_));
    } else {
      EXPECT_SUCCESS(aclrtSnapShotCallbackUnregister(stage, note_call<kStage>));
      EXPECT_SUCCESS(aclrtSnapShotCallbackUnregister(stage, note_call_behind<kStage>));
    }
  }
  bool adds_ = true;
};

TEST_F(SnapshotCallbacks, SNAP_27_EachOncePerDeviceInTheOrderOfRegistration) {
  ASSERT_SUCCESS(aclrtSetDevice(3));
  const std::thread::id self = std::this_thread::get_id();
  also = [&](int) { EXPECT_EQ(std::this_thread::get_id(), self); };
  EXPECT_SUCCESS(go_around());
  std::vector<Call> expected;
  for (int stage = 0; stage < 6; ++stage) {
    expected.push_back({stage, 0, &first_});
    expected.push_back({stage, 3, &first_});
    expected.push_back({stage + 100, 0, &second_});
    expected.push_back({stage + 100, 3, &second_});
  }
  EXPECT_EQ(calls_made, expected);
  ASSERT_SUCCESS(aclrtResetDevice(3));
  ASSERT_SUCCESS(aclrtSetDevice(0));
  ASSERT_SUCCESS(aclrtResetDevice(0));
}

TEST_F(SnapshotCallbacks, SNAP_27_NoDeviceInUseMeansNoCallback) {
  EXPECT_SUCCESS(aclrtResetDeviceForce(0));
  EXPECT_SUCCESS(go_around());
  EXPECT_TRUE(calls_made.empty());
  EXPECT_SUCCESS(aclrtSetDevice(0));
}

TEST_F(SnapshotCallbacks, SNAP_27_AContextIsAUseOfItsDevice) {
  aclrtContext context = nullptr;
  EXPECT_SUCCESS(aclrtCreateContext(&context, 2));
  EXPECT_SUCCESS(lock_process());
  EXPECT_TRUE(std::any_of(calls_made.begin(), calls_made.end(),
                          [](const Call& call) { return call.device == 2; }));
  EXPECT_SUCCESS(unlock_process());
  EXPECT_SUCCESS(aclrtDestroyContext(context));
  EXPECT_SUCCESS(aclrtSetDevice(0));
  EXPECT_SUCCESS(aclrtResetDevice(0));
}

TEST_F(SnapshotCallbacks, SNAP_27_TheStagesSeeTheProcessAsTheTableSays) {
  const DeviceBlock block(10 * kMiB, ACL_MEM_MALLOC_HUGE_ONLY);
  const size_t held = free_bytes();
  std::vector<size_t> free;
  also = [&](int) { free.push_back(free_bytes()); };
  EXPECT_SUCCESS(go_around());
  const size_t given = held + rounded_up(10 * kMiB + 32, kHugePage);
  EXPECT_EQ(free, (std::vector<size_t>{held, held, given, given, held, held}));
}

TEST_F(SnapshotCallbacks, SNAP_28_ARefusalEndsTheCallAndChangesNothing) {
  const DeviceBlock block(10 * kMiB, ACL_MEM_MALLOC_HUGE_ONLY);
  copy_in(block.data(), pattern(kMiB));
  const MemoryFigures held = memory_figures();
  constexpr aclError kRefused = ACL_ERROR_SNAPSHOT_CALLBACK_FAILED;

  refuse(0);
  expect_refused(kRefused, lock_process);
  EXPECT_EQ(calls_made, (std::vector<Call>{{0, 0, &first_}}));
  refuse(-1);
  expect_state(ProcessState::kRunning);
  EXPECT_SUCCESS(lock_process());

  for (const int stage : {1, 2}) {
    refuse(stage);
    expect_refused(kRefused, back_up_process);
    EXPECT_EQ(calls_made.back(), (Call{stage, 0, &first_}));
    EXPECT_EQ(memory_figures(), held);
    refuse(-1);
    expect_state(ProcessState::kLocked);
  }
  EXPECT_SUCCESS(back_up_process());
  const MemoryFigures given = memory_figures();
  EXPECT_FALSE(given == held);

  for (const int stage : {3, 4}) {
    refuse(stage);
    expect_refused(kRefused, restore_process);
    EXPECT_EQ(calls_made.back(), (Call{stage, 0, &first_}));
    EXPECT_EQ(memory_figures(), given);
    refuse(-1);
    expect_state(ProcessState::kBackedUp);
  }
  EXPECT_SUCCESS(restore_process());
  EXPECT_EQ(memory_figures(), held);

  refuse(5);
  expect_refused(kRefused, unlock_process);
  EXPECT_EQ(calls_made, (std::vector<Call>{{5, 0, &first_}}));
  refuse(-1);
  expect_state(ProcessState::kRunning);
  EXPECT_EQ(copy_out(block.data(), kMiB), pattern(kMiB));
}

TEST_F(SnapshotCallbacks, SNAP_04_NoCallbackRunsWhereTheStateRefuses) {
  for (const ProcessState state : kAllStates) {
    enter(state);
    calls_made.clear();
    expect_state(state);
    EXPECT_TRUE(calls_made.empty());
    (void)unlock_process();
    (void)recent_error();
  }
}

TEST_F(SnapshotCallbacks, SNAP_29_OncePerStage) {
  for (const ProcessState state : kAllStates) {
    enter(state);
    EXPECT_FAILS(ACL_ERROR_SNAPSHOT_REGISTER_CALLBACK_FAILED,
                 aclrtSnapShotCallbackRegister(ACL_RT_SNAPSHOT_LOCK_PRE, note_call<0>, nullptr));
    EXPECT_SUCCESS(aclrtSnapShotCallbackRegister(ACL_RT_SNAPSHOT_LOCK_PRE, succeed, nullptr));
    EXPECT_SUCCESS(aclrtSnapShotCallbackRegister(ACL_RT_SNAPSHOT_UNLOCK_POST, succeed, nullptr));
    EXPECT_SUCCESS(aclrtSnapShotCallbackUnregister(ACL_RT_SNAPSHOT_LOCK_PRE, succeed));
    EXPECT_SUCCESS(aclrtSnapShotCallbackUnregister(ACL_RT_SNAPSHOT_UNLOCK_POST, succeed));
    (void)unlock_process();
    (void)recent_error();
  }
}

TEST_F(SnapshotCallbacks, SNAP_30_WhatIsNotRegisteredCannotBeTakenOut) {
  EXPECT_FAILS(kInner, aclrtSnapShotCallbackUnregister(ACL_RT_SNAPSHOT_LOCK_PRE, succeed_too));
  EXPECT_FAILS(kInner, aclrtSnapShotCallbackUnregister(ACL_RT_SNAPSHOT_LOCK_PRE, note_call<1>));
  EXPECT_SUCCESS(aclrtSnapShotCallbackUnregister(ACL_RT_SNAPSHOT_LOCK_PRE, note_call<0>));
  EXPECT_SUCCESS(lock_process());
  EXPECT_EQ(calls_made, (std::vector<Call>{{100, 0, &second_}}));
  EXPECT_SUCCESS(unlock_process());
  EXPECT_SUCCESS(aclrtSnapShotCallbackRegister(ACL_RT_SNAPSHOT_LOCK_PRE, note_call<0>, &first_));
}

TEST_F(SnapshotCallbacks, SNAP_30_ACallbackMayTakeItselfOut) {
  ASSERT_SUCCESS(aclrtSetDevice(1));
  also = [](int stage) {
    if (stage != 0) return;
    EXPECT_SUCCESS(aclrtSnapShotCallbackUnregister(ACL_RT_SNAPSHOT_LOCK_PRE, note_call<0>));
  };
  EXPECT_SUCCESS(lock_process());
  EXPECT_EQ(calls_made,
            (std::vector<Call>{{0, 0, &first_}, {100, 0, &second_}, {100, 1, &second_}}));
  also = nullptr;
  EXPECT_SUCCESS(unlock_process());
  EXPECT_SUCCESS(aclrtSnapShotCallbackRegister(ACL_RT_SNAPSHOT_LOCK_PRE, note_call<0>, &first_));
  ASSERT_SUCCESS(aclrtResetDevice(1));
  ASSERT_SUCCESS(aclrtSetDevice(0));
  ASSERT_SUCCESS(aclrtResetDevice(0));
}

// What the rules leave open ends all the same: the calls are refused.
TEST_F(SnapshotCallbacks, SNAP_31_CallsOfACallbackAreRefusedAndNothingHangs) {
  also = [](int stage) {
    if (stage == 5) return;
    expect_refused(kLockRefused, lock_process);
    expect_refused(kBackupRefused, back_up_process);
    expect_refused(kRestoreRefused, restore_process);
    expect_refused(kUnlockRefused, unlock_process);
  };
  EXPECT_SUCCESS(go_around());
  expect_state(ProcessState::kRunning);
}

TEST_F(SnapshotCallbacks, SNAP_31_TheFirstAndTheLastStageMayMakeCalls) {
  int rounds = 0;
  also = [&](int stage) {
    if (stage != 0 && stage != 5) return;
    DeviceBlock(kMiB).free();
    if (stage == 5 && ++rounds == 1) {
      EXPECT_SUCCESS(lock_process());
    }
  };
  EXPECT_SUCCESS(lock_process());
  EXPECT_SUCCESS(unlock_process());
  expect_state(ProcessState::kLocked);
  EXPECT_SUCCESS(unlock_process());
}

TEST_F(SnapshotCallbacks, SNAP_28_ACallbackThatThrowsChangesNothing) {
  for (const int stage : {0, 1, 2, 3, 4}) {
    SCOPED_TRACE(stage);
    enter(stage == 0   ? ProcessState::kRunning
          : stage <= 2 ? ProcessState::kLocked
                       : ProcessState::kBackedUp);
    const MemoryFigures before = memory_figures();
    also = [&](int reached) {
      if (reached == stage) throw std::runtime_error("no");
    };
    EXPECT_NE(stage == 0   ? lock_process()
              : stage <= 2 ? back_up_process()
                           : restore_process(),
              ACL_SUCCESS);
    also = nullptr;
    EXPECT_EQ(memory_figures(), before);
    expect_state(stage == 0   ? ProcessState::kRunning
                 : stage <= 2 ? ProcessState::kLocked
                              : ProcessState::kBackedUp);
    (void)unlock_process();
    (void)recent_error();
  }
}

}  // namespace
}  // namespace understudy_test
