// SPDX-License-Identifier: Apache-2.0
//
// aclrtMemcpyAsync and aclrtMemcpyAsyncWithCondition (ACOPY-17): what is checked before anything is
// queued, and which streams they take.
// Covers: ACOPY-01, ACOPY-02, ACOPY-03, ACOPY-04, ACOPY-05, ACOPY-17, GEN-02, GEN-03, GEN-04,
// GEN-05, GEN-06.
#include <cstdint>
#include <vector>

#include "rules/async_objects.h"

namespace understudy_test {
namespace {

class AsyncCopyArguments : public AsyncCopyTest {};
INSTANTIATE_TEST_SUITE_P(, AsyncCopyArguments, each_async_copy(), name_of_async_copy);

constexpr size_t kCount = 256;
constexpr int64_t kBadKinds[] = {6, 7, 8, 99, -1, INT32_MAX, INT32_MIN};

// Both sides of a copy that would be queued, and one that would be done at once.
class Sides {
 public:
  Sides() { put(); }

  void* device() const { return device_.data(); }
  void* locked() const { return locked_.data(); }
  void* heap() { return heap_.data(); }
  void put() {
    copy_in(device_.data(), pattern(kCount, 3));
    store(locked_.data(), pattern(kCount, 4));
    heap_ = pattern(kCount, 5);
  }
  void expect_unchanged() const {
    EXPECT_EQ(copy_out(device_.data(), kCount), pattern(kCount, 3));
    EXPECT_TRUE(holds(locked_.data(), pattern(kCount, 4)));
    EXPECT_EQ(heap_, pattern(kCount, 5));
  }
  void expect_locked_on_device() const {
    EXPECT_EQ(copy_out(device_.data(), kCount), pattern(kCount, 4));
  }

 private:
  DeviceBlock device_{kCount};
  HostBlock locked_{kCount};
  std::vector<uint8_t> heap_;
};

aclrtStream default_stream() {
  aclrtStream stream = nullptr;
  EXPECT_SUCCESS(aclrtCtxGetCurrentDefaultStream(&stream));
  return stream;
}

uint32_t last_task() {
  uint32_t task = UINT32_MAX;
  EXPECT_SUCCESS(aclrtGetThreadLastTaskId(&task));
  return task;
}

TEST_P(AsyncCopyArguments, ACOPY_01_ACOPY_17_ZeroBytesSucceedBeforeAnyOtherCheck) {
  Sides sides;
  const TestStream stream;
  const BadStreams bad;
  const auto succeed = [&] {
    for (const aclrtStream any : {stream.get(), aclrtStream{nullptr}, bad.destroyed()}) {
      for (const int64_t kind : {0, 1, 5, 6, 99, -1}) {
        const auto any_kind = enum_value<aclrtMemcpyKind>(kind);
        EXPECT_SUCCESS(copy(nullptr, nullptr, 0, any_kind, any));
        EXPECT_SUCCESS(copy(sides.device(), sides.locked(), 0, any_kind, any));
        EXPECT_SUCCESS(copy(sides.heap(), sides.locked(), 0, any_kind, any));
        EXPECT_SUCCESS(GetParam().call(sides.device(), kCount, sides.heap(), 0, any_kind, any));
      }
    }
  };
  succeed();
  on_bare_thread(succeed);
  EXPECT_SUCCESS(finish(stream.get()));
  sides.expect_unchanged();
}

TEST_P(AsyncCopyArguments, ACOPY_02_ACOPY_17_NullPointerIsRefusedFirst) {
  Sides sides;
  const TestStream stream;
  const BadStreams bad;
  const auto refuse = [&] {
    for (const aclrtStream any : {stream.get(), aclrtStream{nullptr}, bad.destroyed()}) {
      for (const size_t room : {size_t{0}, kCount}) {
        expect_refused(ACL_ERROR_INVALID_PARAM, nullptr, room, sides.locked(), kCount,
                       ACL_MEMCPY_HOST_TO_DEVICE, any);
        expect_refused(ACL_ERROR_INVALID_PARAM, sides.device(), room, nullptr, kCount,
                       ACL_MEMCPY_DEVICE_TO_DEVICE, any);
        expect_refused(ACL_ERROR_INVALID_PARAM, nullptr, room, nullptr, kCount, ACL_MEMCPY_DEFAULT,
                       any);
      }
    }
  };
  refuse();
  on_bare_thread(refuse);
  EXPECT_SUCCESS(finish(stream.get()));
  sides.expect_unchanged();
}

TEST_P(AsyncCopyArguments, ACOPY_02_ACOPY_17_UnknownKindIsRefusedFirst) {
  Sides sides;
  const TestStream stream;
  const BadStreams bad;
  const auto refuse = [&] {
    for (const int64_t kind : kBadKinds) {
      const auto bad_kind = enum_value<aclrtMemcpyKind>(kind);
      for (const aclrtStream any : {stream.get(), bad.destroyed()}) {
        expect_refused(ACL_ERROR_INVALID_PARAM, sides.device(), kCount, sides.locked(), kCount,
                       bad_kind, any);
        expect_refused(ACL_ERROR_INVALID_PARAM, sides.heap(), 0, sides.device(), kCount, bad_kind,
                       any);
        expect_refused(ACL_ERROR_INVALID_PARAM, sides.heap(), kCount, sides.locked(), kCount,
                       bad_kind, any);
      }
    }
  };
  refuse();
  on_bare_thread(refuse);
  EXPECT_SUCCESS(finish(stream.get()));
  sides.expect_unchanged();
}

TEST_P(AsyncCopyArguments, ACOPY_02_GEN_02_OuterRefusalIsNotTheLastError) {
  Sides sides;
  (void)aclrtGetLastError(ACL_RT_THREAD_LEVEL);
  EXPECT_EQ(copy(nullptr, sides.locked(), kCount, ACL_MEMCPY_DEFAULT, nullptr),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS);
  EXPECT_EQ(GetParam().call(sides.device(), 1, sides.locked(), 2, ACL_MEMCPY_DEFAULT, nullptr),
            ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_PARAM_INVALID);
}

TEST_P(AsyncCopyArguments, ACOPY_03_ACOPY_17_TooLittleRoomIsRefusedAndMovesNothing) {
  Sides sides;
  const DeviceBlock other(kCount);
  const TestStream stream;
  for (const aclrtStream any : {stream.get(), aclrtStream{nullptr}, default_stream()}) {
    for (const size_t room : {size_t{0}, size_t{1}, kCount - 1}) {
      SCOPED_TRACE(room);
      constexpr auto kCode = ACL_ERROR_RT_PARAM_INVALID;
      expect_refused(kCode, sides.device(), room, sides.locked(), kCount, ACL_MEMCPY_HOST_TO_DEVICE,
                     any);
      expect_refused(kCode, sides.device(), room, sides.heap(), kCount, ACL_MEMCPY_HOST_TO_DEVICE,
                     any);
      expect_refused(kCode, sides.locked(), room, sides.device(), kCount, ACL_MEMCPY_DEVICE_TO_HOST,
                     any);
      expect_refused(kCode, sides.heap(), room, sides.device(), kCount, ACL_MEMCPY_DEFAULT, any);
      expect_refused(kCode, sides.device(), room, other.data(), kCount, ACL_MEMCPY_DEVICE_TO_DEVICE,
                     any);
      expect_refused(kCode, sides.device(), room, sides.locked(), kCount,
                     ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE, any);
      EXPECT_SUCCESS(finish(any));
    }
  }
  sides.expect_unchanged();
}

TEST_P(AsyncCopyArguments, ACOPY_03_AbsurdlyLargeRoomIsNoMistake) {
  Sides sides;
  const TestStream stream;
  EXPECT_SUCCESS(GetParam().call(sides.device(), SIZE_MAX, sides.locked(), kCount,
                                 ACL_MEMCPY_HOST_TO_DEVICE, stream.get()));
  EXPECT_SUCCESS(finish(stream.get()));
  sides.expect_locked_on_device();
}

TEST_P(AsyncCopyArguments, ACOPY_04_GEN_03_ThreadWithoutContextIsRefusedBeforeTheStream) {
  Sides sides;
  const TestStream stream;
  const BadStreams bad;
  on_bare_thread([&] {
    for (const aclrtStream any : {stream.get(), aclrtStream{nullptr}, bad.destroyed()}) {
      expect_refused(ACL_ERROR_RT_CONTEXT_NULL, sides.device(), kCount, sides.locked(), kCount,
                     ACL_MEMCPY_HOST_TO_DEVICE, any);
      expect_refused(ACL_ERROR_RT_CONTEXT_NULL, sides.heap(), kCount, sides.device(), kCount,
                     ACL_MEMCPY_DEVICE_TO_HOST, any);
    }
  });
  EXPECT_SUCCESS(finish(stream.get()));
  sides.expect_unchanged();
}

// Whichever name queued the gate, the copy of the other one stands behind it.
TEST_P(AsyncCopyArguments, ACOPY_04_GEN_04_NullIsTheDefaultStream) {
  Sides sides;
  const aclrtStream null = nullptr;
  const struct {
    aclrtStream gate, copy;
  } cases[] = {{null, default_stream()}, {default_stream(), null}, {null, null}};
  for (const auto& names : cases) {
    sides.put();
    Gate gate(names.gate);
    EXPECT_SUCCESS(while_held(gate, [&] {
      return copy(sides.device(), sides.locked(), kCount, ACL_MEMCPY_HOST_TO_DEVICE, names.copy);
    }));
    EXPECT_EQ(stream_status(null), ACL_STREAM_STATUS_NOT_READY);
    EXPECT_EQ(stream_status(default_stream()), ACL_STREAM_STATUS_NOT_READY);
    sides.expect_unchanged();
    gate.open();
    EXPECT_SUCCESS(finish(null));
    sides.expect_locked_on_device();
  }
}

TEST_P(AsyncCopyArguments, ACOPY_04_GEN_05_GEN_06_OtherStreamsAreRefused) {
  Sides sides;
  BadStreams bad;
  const auto expect_refused_from = [&](void* to, const void* from, aclrtMemcpyKind kind) {
    bad.expect_refused(GetParam().name,
                       [&](aclrtStream stream) { return copy(to, from, kCount, kind, stream); });
  };
  expect_refused_from(sides.device(), sides.locked(), ACL_MEMCPY_HOST_TO_DEVICE);
  expect_refused_from(sides.locked(), sides.device(), ACL_MEMCPY_DEFAULT);
  expect_refused_from(sides.device(), sides.heap(), ACL_MEMCPY_HOST_TO_DEVICE);
  expect_refused_from(sides.heap(), sides.device(), ACL_MEMCPY_DEVICE_TO_HOST);
  expect_refused_from(sides.device(), sides.locked(), ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE);
  sides.expect_unchanged();
}

// The table would refuse a heap onto itself; a drained stream would let it wait.
TEST_P(AsyncCopyArguments, ACOPY_05_ACOPY_17_CopyOntoItselfSucceedsAndQueuesNothing) {
  Sides sides;
  const TestStream stream;
  const TestStream idle;
  Gate gate(stream.get());
  const uint32_t before = last_task();
  for (const int64_t kind : {0, 1, 2, 3, 4, 5}) {
    SCOPED_TRACE(kind);
    const auto any = enum_value<aclrtMemcpyKind>(kind);
    for (void* const memory : {sides.device(), sides.locked(), sides.heap()}) {
      EXPECT_SUCCESS(copy(memory, memory, kCount, any, idle.get()));
      EXPECT_SUCCESS(
          while_held(gate, [&] { return copy(memory, memory, kCount, any, stream.get()); }));
    }
  }
  EXPECT_EQ(last_task(), before);
  EXPECT_EQ(stream_status(idle.get()), ACL_STREAM_STATUS_COMPLETE);
  sides.expect_unchanged();
}

}  // namespace
}  // namespace understudy_test
