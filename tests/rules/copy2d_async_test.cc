// SPDX-License-Identifier: Apache-2.0
//
// aclrtMemcpy2dAsync: its checks, the rows it moves, and when it moves them.
// Covers: COPY-13, COPY2D-01, COPY2D-02, COPY2D-03, COPY2D-04, COPY2D-05, COPY2D-06, COPY2D-07,
// COPY2D-08, GEN-03, GEN-05, GEN-06.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rules/async_objects.h"

namespace understudy_test {
namespace {

using Memcpy2dAsync = HostMemoryTest;

constexpr size_t kMostRows = 5242880;
constexpr size_t kWidestRow = 5000000;
constexpr size_t kFrame = 4 * kNormalPage;

struct Rows {
  size_t to, to_pitch, from, from_pitch, width, height;
};
constexpr Rows kPlain = {0, 96, 0, 80, 50, 8};
constexpr Rows kRowCases[] = {
    kPlain,
    {0, 50, 0, 50, 50, 8},
    {3, 97, 5, 101, 33, 7},
    {1, 2, 7, 3, 1, 200},
    {17, 1000, 1, 999, 998, 10},
    {63, 4097, 64, 4095, 4000, 3},
    {9, SIZE_MAX, 8, 100, 90, 1},
    {9, 100, 8, SIZE_MAX, 90, 1},
};

std::vector<uint8_t> with_rows(std::vector<uint8_t> to, const std::vector<uint8_t>& from,
                               const Rows& rows) {
  for (size_t row = 0; row < rows.height; ++row) {
    std::copy_n(from.begin() + static_cast<ptrdiff_t>(rows.from + row * rows.from_pitch),
                rows.width, to.begin() + static_cast<ptrdiff_t>(rows.to + row * rows.to_pitch));
  }
  return to;
}

aclError copy_rows(const Spot& to, const Spot& from, const Rows& rows, aclrtMemcpyKind kind,
                   aclrtStream stream) {
  return aclrtMemcpy2dAsync(at(to.start, rows.to), rows.to_pitch, at(from.start, rows.from),
                            rows.from_pitch, rows.width, rows.height, kind, stream);
}

// Two frames of each class, with known bytes; no padding behind those of the device.
class Frames {
 public:
  Frames() { put(); }

  Spot device(size_t i = 0) const { return {"device", Side::kDevice, device_[i].data()}; }
  Spot locked(size_t i = 0) const { return {"host", Side::kHost, locked_[i].data()}; }
  Spot heap(size_t i = 0) { return {"heap", Side::kUnregistered, heap_[i].data()}; }

  void put() {
    uint8_t seed = 80;
    for (const Spot& spot : all()) spot.put(pattern(kFrame, seed++));
  }
  void expect_unchanged() {
    uint8_t seed = 80;
    for (const Spot& spot : all()) EXPECT_TRUE(spot.has(pattern(kFrame, seed++))) << spot.name;
  }

 private:
  std::vector<Spot> all() { return {device(0), device(1), locked(0), locked(1), heap(0), heap(1)}; }

  DeviceBlock device_[2] = {DeviceBlock(kFrame, ACL_MEM_MALLOC_HUGE_FIRST, kMallocAlign32),
                            DeviceBlock(kFrame, ACL_MEM_MALLOC_HUGE_FIRST, kMallocAlign32)};
  HostBlock locked_[2] = {HostBlock(kFrame), HostBlock(kFrame)};
  std::vector<uint8_t> heap_[2] = {std::vector<uint8_t>(kFrame), std::vector<uint8_t>(kFrame)};
};

void expect_refused(aclError code, void* to, size_t to_pitch, const void* from, size_t from_pitch,
                    size_t width, size_t height, aclrtMemcpyKind kind, aclrtStream stream) {
  SCOPED_TRACE(testing::Message() << height << " rows of " << width << " bytes, pitches "
                                  << to_pitch << " and " << from_pitch << ", kind " << kind);
  EXPECT_FAILS(code,
               aclrtMemcpy2dAsync(to, to_pitch, from, from_pitch, width, height, kind, stream));
}

// ---- Checks ----

TEST_F(Memcpy2dAsync, COPY2D_01_NoRowsOrNoWidthSucceedBeforeAnyOtherCheck) {
  Frames frames;
  const TestStream stream;
  const BadStreams bad;
  const auto succeed = [&] {
    for (const aclrtStream any : {stream.get(), aclrtStream{nullptr}, bad.destroyed()}) {
      for (const auto& [width, height] :
           {std::pair<size_t, size_t>{0, 0}, {0, 5}, {5, 0}, {0, SIZE_MAX}, {SIZE_MAX, 0}}) {
        EXPECT_SUCCESS(aclrtMemcpy2dAsync(nullptr, 0, nullptr, 0, width, height,
                                          enum_value<aclrtMemcpyKind>(99), any));
        EXPECT_SUCCESS(aclrtMemcpy2dAsync(frames.device().start, 0, frames.locked().start, 0, width,
                                          height, ACL_MEMCPY_HOST_TO_DEVICE, any));
      }
    }
  };
  succeed();
  on_bare_thread(succeed);
  EXPECT_SUCCESS(finish(stream.get()));
  frames.expect_unchanged();
}

TEST_F(Memcpy2dAsync, COPY2D_02_COPY2D_03_WrongArgumentsAreRefusedFirst) {
  Frames frames;
  void* const device = frames.device().start;
  void* const host = frames.locked().start;
  const TestStream stream;
  const BadStreams bad;
  constexpr auto kCode = ACL_ERROR_INVALID_PARAM;
  constexpr auto kKind = ACL_MEMCPY_HOST_TO_DEVICE;
  const auto refuse = [&] {
    for (const aclrtStream any : {stream.get(), bad.destroyed()}) {
      expect_refused(kCode, nullptr, 96, host, 96, 50, 8, kKind, any);
      expect_refused(kCode, device, 96, nullptr, 96, 50, 8, kKind, any);
      expect_refused(kCode, device, 49, host, 96, 50, 8, kKind, any);
      expect_refused(kCode, device, 96, host, 49, 50, 8, kKind, any);
      expect_refused(kCode, device, 96, host, 96, SIZE_MAX, kMostRows + 1, kKind, any);
      for (const int64_t kind : {int64_t{0}, int64_t{5}, int64_t{6}, int64_t{7}, int64_t{8},
                                 int64_t{-1}, int64_t{INT32_MAX}}) {
        expect_refused(kCode, device, 96, host, 96, 50, 8, enum_value<aclrtMemcpyKind>(kind), any);
      }
    }
  };
  refuse();
  on_bare_thread(refuse);
  EXPECT_SUCCESS(finish(stream.get()));
  frames.expect_unchanged();
}

TEST_F(Memcpy2dAsync, COPY2D_04_TooManyRowsOrTooWideRowsAreRefused) {
  const DeviceBlock device(kMostRows + 32);
  const DeviceBlock other(kMostRows + 32);
  const HostBlock locked(kMostRows + 32);
  const TestStream stream;
  copy_in(device.data(), pattern(kPage, 86));
  for (const auto& [width, height] :
       {std::pair<size_t, size_t>{1, kMostRows + 1}, {kWidestRow + 1, 1}}) {
    for (void* const from : {locked.data(), other.data()}) {
      expect_refused(ACL_ERROR_RT_PARAM_INVALID, device.data(), width, from, width, width, height,
                     ACL_MEMCPY_DEFAULT, stream.get());
    }
  }
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_TRUE(copy_out(device.data(), kPage) == pattern(kPage, 86));
  for (const auto& [width, height] : {std::pair<size_t, size_t>{1, kMostRows}, {kWidestRow, 1}}) {
    EXPECT_SUCCESS(aclrtMemcpy2dAsync(device.data(), width, locked.data(), width, width, height,
                                      ACL_MEMCPY_HOST_TO_DEVICE, stream.get()));
  }
  EXPECT_SUCCESS(finish(stream.get()));
}

TEST_F(Memcpy2dAsync, COPY2D_07_GEN_03_GEN_05_GEN_06_OtherStreamsAreRefused) {
  Frames frames;
  const TestStream stream;
  BadStreams bad;
  for (const Spot& from : {frames.locked(), frames.heap(), frames.device(1)}) {
    SCOPED_TRACE(from.name);
    bad.expect_refused("aclrtMemcpy2dAsync", [&](aclrtStream other) {
      return copy_rows(frames.device(), from, kPlain, ACL_MEMCPY_DEFAULT, other);
    });
    on_bare_thread([&] {
      expect_refused(ACL_ERROR_RT_CONTEXT_NULL, frames.device().start, 96, from.start, 96, 50, 8,
                     ACL_MEMCPY_DEFAULT, stream.get());
    });
  }
  EXPECT_SUCCESS(finish(stream.get()));
  frames.expect_unchanged();
}

TEST_F(Memcpy2dAsync, COPY2D_06_COPY2D_07_RowsWithinTheHostAreRefused) {
  Frames frames;
  const TestStream stream;
  const std::pair<Spot, Spot> pairs[] = {{frames.locked(0), frames.locked(1)},
                                         {frames.locked(), frames.heap()},
                                         {frames.heap(), frames.locked()},
                                         {frames.heap(0), frames.heap(1)}};
  for (const auto& [to, from] : pairs) {
    SCOPED_TRACE(testing::Message() << from.name << " to " << to.name);
    expect_refused(ACL_ERROR_RT_PARAM_INVALID, to.start, 96, from.start, 96, 50, 8,
                   ACL_MEMCPY_DEFAULT, stream.get());
  }
  EXPECT_SUCCESS(finish(stream.get()));
  frames.expect_unchanged();
}

// ---- Rows ----

struct Direction {
  Spot to, from;
  aclrtMemcpyKind kind;
};

// The three directions between known memory.
std::vector<Direction> queued_directions(const Frames& frames) {
  return {{frames.device(), frames.locked(), ACL_MEMCPY_HOST_TO_DEVICE},
          {frames.locked(), frames.device(), ACL_MEMCPY_DEVICE_TO_HOST},
          {frames.device(0), frames.device(1), ACL_MEMCPY_DEVICE_TO_DEVICE}};
}

TEST_F(Memcpy2dAsync, COPY2D_05_COPY2D_07_RowsMoveInStreamOrderAndBytesBetweenThemStay) {
  const Frames frames;
  const TestStream created;
  for (const Direction& direction : queued_directions(frames)) {
    for (const aclrtMemcpyKind kind : {direction.kind, ACL_MEMCPY_DEFAULT}) {
      for (const Rows& rows : kRowCases) {
        SCOPED_TRACE(testing::Message()
                     << direction.from.name << " to " << direction.to.name << ", kind " << kind
                     << ", " << rows.height << " rows of " << rows.width << " bytes");
        const aclrtStream stream = kind == ACL_MEMCPY_DEFAULT ? nullptr : created.get();
        const std::vector<uint8_t> source = pattern(kFrame, 87);
        const std::vector<uint8_t> target = pattern(kFrame, 88);
        direction.from.put(source);
        direction.to.put(target);
        Gate gate(stream);
        EXPECT_SUCCESS(while_held(
            gate, [&] { return copy_rows(direction.to, direction.from, rows, kind, stream); }));
        EXPECT_EQ(stream_status(stream), ACL_STREAM_STATUS_NOT_READY);
        EXPECT_TRUE(direction.to.has(target)) << "moved before its turn";
        gate.open();
        EXPECT_SUCCESS(finish(stream));
        EXPECT_TRUE(direction.to.has(with_rows(target, source, rows)));
        EXPECT_TRUE(direction.from.has(source));
      }
    }
  }
}

TEST_F(Memcpy2dAsync, COPY2D_07_OrdinaryMemoryIsMovedBehindTheQueueAndOnReturn) {
  constexpr size_t kLarge = 8 * kMiB;
  const DeviceBlock busy(kLarge);
  Frames frames;
  const TestStream created;
  for (const aclrtStream stream : {created.get(), aclrtStream{nullptr}}) {
    for (const bool in : {true, false}) {
      SCOPED_TRACE(in ? "in" : "out");
      frames.put();
      Gate gate(stream);
      for (const int32_t value : {1, 2, 3}) {
        EXPECT_SUCCESS(aclrtMemsetAsync(busy.data(), kLarge, value, kLarge, stream));
      }
      EXPECT_SUCCESS(aclrtMemsetAsync(frames.device().start, kFrame, 4, kFrame, stream));
      const Spot to = in ? frames.device() : frames.heap();
      const Spot from = in ? frames.heap() : frames.device();
      const auto kind = in ? ACL_MEMCPY_HOST_TO_DEVICE : ACL_MEMCPY_DEVICE_TO_HOST;
      EXPECT_SUCCESS(
          while_opening(gate, [&] { return copy_rows(to, from, kPlain, kind, stream); }));
      const std::vector<uint8_t> device(kFrame, 4);
      const std::vector<uint8_t> heap = pattern(kFrame, 84);
      EXPECT_EQ(stream_status(stream), ACL_STREAM_STATUS_COMPLETE);
      EXPECT_TRUE(to.has(in ? with_rows(device, heap, kPlain) : with_rows(heap, device, kPlain)));
    }
  }
}

TEST_F(Memcpy2dAsync, COPY2D_07_COPY_13_RowsThatLeaveTheAllocationFailOnTheStreamAndNoneIsMoved) {
  Frames frames;
  const TestStream stream;
  const Rows outside[] = {{kFrame - 450 + 1, 200, 0, 50, 50, 3}, {0, 2 * kFrame, 0, 50, 50, 2}};
  for (const Rows& rows : outside) {
    for (const Spot& far : {frames.locked(), frames.device(1)}) {
      SCOPED_TRACE(testing::Message() << far.name << ", pitch " << rows.to_pitch);
      const Rows back = {rows.from,     rows.from_pitch, rows.to,
                         rows.to_pitch, rows.width,      rows.height};
      EXPECT_SUCCESS(copy_rows(frames.device(), far, rows, ACL_MEMCPY_DEFAULT, stream.get()));
      expect_task_failed(stream.get());
      EXPECT_SUCCESS(copy_rows(far, frames.device(), back, ACL_MEMCPY_DEFAULT, stream.get()));
      expect_task_failed(stream.get());
      frames.expect_unchanged();
    }
  }
  for (const size_t pitch : {SIZE_MAX, SIZE_MAX / 2, size_t{1} << 63}) {
    SCOPED_TRACE(pitch);
    expect_fails_sooner_or_later(
        copy_rows(frames.device(0), frames.device(1), {0, pitch, 0, 1, 1, 3}, ACL_MEMCPY_DEFAULT,
                  stream.get()),
        stream.get());
    frames.expect_unchanged();
  }
}

// ---- Products ----

class Memcpy2dAsyncOnProduct : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, Memcpy2dAsyncOnProduct,
                         testing::Values("a2", "a3", "inf", "trn", "200i", "950", "200i-rc",
                                         "ipv350"),
                         host_product_name);

TEST_P(Memcpy2dAsyncOnProduct, COPY2D_03_COPY2D_07_COPY2D_08_RowsAreMovedOrRefused) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()}, {"UNDERSTUDY_MEMORY", "8G"});
  const ContextSession session;
  const DeviceBlock first(kFrame);
  const DeviceBlock second(kFrame);
  copy_in(first.data(), pattern(kFrame, 1));
  copy_in(second.data(), pattern(kFrame, 2));
  const Spot from = {"first", Side::kDevice, first.data()};
  const Spot to = {"second", Side::kDevice, second.data()};
  const TestStream stream;
  constexpr auto kKind = ACL_MEMCPY_DEVICE_TO_DEVICE;
  expect_refused(ACL_ERROR_INVALID_PARAM, nullptr, 96, first.data(), 96, 50, 8, kKind,
                 stream.get());
  if (GetParam() == "200i-rc" || GetParam() == "ipv350") {
    const auto refuse = [&] {
      constexpr auto kCode = ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
      expect_refused(kCode, to.start, 96, from.start, 96, 50, 8, kKind, stream.get());
      expect_refused(kCode, to.start, 96, from.start, 96, 50, kMostRows + 1, kKind, stream.get());
    };
    refuse();
    on_bare_thread(refuse);
    EXPECT_TRUE(to.has(pattern(kFrame, 2)));
  } else if (GetParam() == "inf" || GetParam() == "trn" || GetParam() == "200i") {
    expect_refused(ACL_ERROR_INVALID_PARAM, to.start, 96, from.start, 96, 50, 8, kKind,
                   stream.get());
    on_bare_thread([&] {
      expect_refused(ACL_ERROR_INVALID_PARAM, to.start, 96, from.start, 96, 50, 8, kKind,
                     stream.get());
    });
    EXPECT_SUCCESS(finish(stream.get()));
    EXPECT_TRUE(to.has(pattern(kFrame, 2)));
  } else {
    EXPECT_SUCCESS(copy_rows(to, from, kPlain, kKind, stream.get()));
    EXPECT_SUCCESS(finish(stream.get()));
    EXPECT_TRUE(to.has(with_rows(pattern(kFrame, 2), pattern(kFrame, 1), kPlain)));
  }
}

}  // namespace
}  // namespace understudy_test
