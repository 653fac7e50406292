// SPDX-License-Identifier: Apache-2.0
//
// The end of what pools depend on: their device, the process's use of the library, contexts and
// streams; threads that use a pool while it ends; and fork. Nothing leaks, nothing hangs, and stale
// handles and addresses get their codes.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "acl/acl_understudy.h"
#include "rules/pool_objects.h"
#include "rules/runtime_support.h"
#include "support/fork_safety.h"

namespace understudy_test::pool {
namespace {

constexpr auto kThreshold = ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD;

void expect_ended(aclrtMemPool pool) {
  uint64_t value = 0;
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemPoolGetAttr(pool, kThreshold, &value));
  EXPECT_FAILS(ACL_ERROR_RT_INTERNAL_ERROR, aclrtMemPoolTrimTo(pool, 0));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemPoolDestroy(pool));
}

TEST(PoolEnd, AResetEndsThePoolsOfItsDevice) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a2"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const size_t before = free_bytes();
  TestPool here;
  const TestPool there(0, 1);  // of a device that is not reset
  void* used = nullptr;
  for (const auto reset : {aclrtResetDevice, aclrtResetDeviceForce}) {
    aclrtStream stream = nullptr;
    ASSERT_SUCCESS(aclrtCreateStream(&stream));
    TestPool pool;
    used = pool.allocate(6 * kMiB, stream);
    EXPECT_SUCCESS(aclrtMemsetAsync(used, kUnit, 1, kUnit, stream));
    (void)pool.allocate_and_free(4 * kMiB, stream);
    void* const elsewhere = there.allocate(kUnit, stream);
    const aclrtMemPool handle = pool.release();
    EXPECT_SUCCESS(reset(0));
    ASSERT_SUCCESS(aclrtSetDevice(0));
    EXPECT_EQ(free_bytes(), before);
    expect_ended(handle);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFree(used));
    EXPECT_EQ(there.used(), kUnit);
    EXPECT_SUCCESS(aclrtFree(elsewhere));
  }
  expect_ended(here.release());
}

TEST(PoolEnd, FinalizeEndsAllPools) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a2"});
  ASSERT_SUCCESS(aclInit(nullptr));
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const size_t before = free_bytes();
  aclrtStream stream = nullptr;
  ASSERT_SUCCESS(aclrtCreateStream(&stream));
  TestPool pool;
  TestPool other(0, 1);
  (void)pool.allocate(6 * kMiB, stream);
  (void)other.allocate(6 * kMiB, stream);
  ASSERT_SUCCESS(aclFinalize());
  expect_ended(pool.release());
  expect_ended(other.release());
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_EQ(free_bytes(), before);
}

TEST(PoolEnd, PoolsOutliveContextsAndStreams) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a2"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const aclrtContext own = runtime::current_context();
  const TestPool pool;
  const aclrtContext context = runtime::create_context();  // and makes it current
  ASSERT_SUCCESS(aclrtSetCurrentContext(context));
  aclrtStream stream = nullptr;
  ASSERT_SUCCESS(aclrtCreateStream(&stream));
  void* const kept = pool.allocate(kUnit, stream);
  void* const freed = pool.allocate_and_free(2 * kUnit, stream);
  ASSERT_SUCCESS(aclrtSetCurrentContext(own));
  ASSERT_SUCCESS(aclrtDestroyContext(context));
  EXPECT_EQ(pool.used(), kUnit);
  copy_in(kept, pattern(kUnit));
  EXPECT_EQ(copy_out(kept, kUnit), pattern(kUnit));
  // What its stream freed is anyone's now.
  const TestStream next;
  EXPECT_EQ(pool.allocate(2 * kUnit, next.get()), freed);
  EXPECT_SUCCESS(aclrtMemPoolFreeAsync(kept, next.get()));
}

TEST(PoolEnd, AHeldStreamDoesNotHoldUpTheEndOfAPool) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a2"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const size_t before = free_bytes();
  {
    const TestStream stream;
    Gate gate(stream.get());
    for (int round = 0; round < 3; ++round) {
      TestPool pool;
      (void)pool.allocate_and_free(kUnit, stream.get());
      (void)pool.allocate(kUnit, stream.get());
      pool.destroy();
    }
  }
  // The memory of all of them comes back with the next synchronisation.
  EXPECT_SUCCESS(aclrtSynchronizeDevice());
  EXPECT_EQ(free_bytes(), before);
}

TEST(PoolEnd, AChildHasNoPoolsOfItsParent) {
  US_SKIP_UNLESS_THREADS_MAY_FORK();
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a2"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const TestStream stream;
  TestPool pool;
  void* const data = pool.allocate(kUnit, stream.get());
  copy_in(data, pattern(kUnit));
  const pid_t child = fork();
  if (child == 0) {
    if (aclrtSetDevice(0) != ACL_SUCCESS) _exit(1);
    uint64_t value = 0;
    const aclError unknown = ACL_ERROR_RT_PARAM_INVALID;
    if (aclrtMemPoolGetAttr(pool.get(), kThreshold, &value) != unknown) _exit(2);
    if (aclrtMemPoolDestroy(pool.get()) != unknown) _exit(3);
    aclrtStream own = nullptr;
    if (aclrtCreateStream(&own) != ACL_SUCCESS) _exit(4);
    if (aclrtMemPoolFreeAsync(data, own) != unknown) _exit(5);
    if (aclrtFree(data) != unknown) _exit(6);
    void* mine = nullptr;
    if (aclrtMemPoolMallocAsync(&mine, 1, pool.get(), own) != ACL_ERROR_RT_INTERNAL_ERROR) _exit(7);
    const aclrtMemPoolProps props = properties();
    aclrtMemPool fresh = nullptr;
    if (aclrtMemPoolCreate(&fresh, &props) != ACL_SUCCESS) _exit(8);
    if (aclrtMemPoolMallocAsync(&mine, 1, fresh, own) != ACL_SUCCESS) _exit(9);
    if (aclrtMemset(mine, kUnit, 1, kUnit) != ACL_SUCCESS) _exit(10);
    _exit(aclrtResetDevice(0) == ACL_SUCCESS ? 0 : 11);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "the step of the child that went wrong";
  EXPECT_EQ(copy_out(data, kUnit), pattern(kUnit));
  EXPECT_SUCCESS(aclrtMemPoolFreeAsync(data, stream.get()));
}

// Threads that allocate and free while pools are destroyed, trimmed and their device is reset.
TEST(PoolEnd, ThreadsThatUseAPoolWhileItEnds) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a2"}, {"UNDERSTUDY_MEMORY", "1G"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const size_t before = free_bytes();
  constexpr int kRounds = 30;
  for (int round = 0; round < kRounds && !testing::Test::HasFailure(); ++round) {
    TestPool pool(64 * kMiB);
    const aclrtMemPool handle = pool.get();
    std::atomic<bool> ended{false};
    std::vector<std::thread> threads;
    for (int n = 0; n < 3; ++n) {
      threads.emplace_back([&, n] {
        ASSERT_SUCCESS(aclrtSetDevice(0));
        aclrtStream stream = nullptr;
        ASSERT_SUCCESS(aclrtCreateStream(&stream));
        for (int calls = 0; calls < 300; ++calls) {
          void* data = nullptr;
          const size_t size = kUnit * static_cast<size_t>(1 + (calls + n) % 5);
          const aclError code = aclrtMemPoolMallocAsync(&data, size, handle, stream);
          if (code != ACL_SUCCESS) {
            EXPECT_EQ(code, ACL_ERROR_RT_INTERNAL_ERROR);
            if (ended) break;
            continue;
          }
          const aclError freed =
              calls % 3 == 0 ? aclrtFree(data) : aclrtMemPoolFreeAsync(data, stream);
          if (freed != ACL_SUCCESS) {
            EXPECT_EQ(freed, ACL_ERROR_RT_PARAM_INVALID);
          }
          if (calls % 7 == 0) (void)aclrtMemPoolTrimTo(handle, kUnit);
          if (calls % 11 == 0) (void)aclrtSynchronizeStream(stream);
        }
        EXPECT_SUCCESS(aclrtDestroyStream(stream));
        EXPECT_SUCCESS(aclrtResetDevice(0));
      });
    }
    if (round % 2 == 0) std::this_thread::yield();
    pool.destroy();
    ended = true;
    for (std::thread& each : threads) each.join();
  }
  EXPECT_SUCCESS(aclrtSynchronizeDevice());
  EXPECT_EQ(free_bytes(), before);
}

}  // namespace
}  // namespace understudy_test::pool
