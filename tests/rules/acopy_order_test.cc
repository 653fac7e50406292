// SPDX-License-Identifier: Apache-2.0
//
// aclrtMemcpyAsync and aclrtMemcpyAsyncWithCondition (ACOPY-17): when a copy takes effect, behind
// what, and which bytes arrive.
// Covers: ACOPY-06, ACOPY-07, ACOPY-08, ACOPY-12, ACOPY-13, ACOPY-16, ACOPY-17.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "rules/async_objects.h"

namespace understudy_test {
namespace {

class AsyncCopyOrder : public AsyncCopyTest {};
INSTANTIATE_TEST_SUITE_P(, AsyncCopyOrder, each_async_copy(), name_of_async_copy);

constexpr size_t kLarge = 8 * kMiB;

TEST_P(AsyncCopyOrder, ACOPY_06_ACOPY_12_ACOPY_17_LargeCopiesAreCompleteOnceSynchronised) {
  const HostBlock source(kLarge);
  const HostBlock target(kLarge);
  const DeviceBlock first(kLarge);
  const DeviceBlock second(kLarge);
  store(source.data(), pattern(kLarge, 9));
  store(target.data(), pattern(kLarge, 10));
  const TestStream stream;
  EXPECT_SUCCESS(
      copy(first.data(), source.data(), kLarge, ACL_MEMCPY_HOST_TO_DEVICE, stream.get()));
  EXPECT_SUCCESS(
      copy(second.data(), first.data(), kLarge, ACL_MEMCPY_DEVICE_TO_DEVICE, stream.get()));
  EXPECT_SUCCESS(
      copy(target.data(), second.data(), kLarge, ACL_MEMCPY_DEVICE_TO_HOST, stream.get()));
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_TRUE(holds(target.data(), pattern(kLarge, 9)));
  EXPECT_TRUE(holds(source.data(), pattern(kLarge, 9)));
}

// A source is read when its copy runs: what an earlier task puts there is what arrives.
TEST_P(AsyncCopyOrder, ACOPY_08_ACOPY_12_EachTaskSeesWhatTheEarlierOnesDid) {
  constexpr size_t kSlot = 100;
  constexpr size_t kRounds = 50;
  const DeviceBlock device(kSlot);
  const DeviceBlock copies(kSlot * kRounds);
  const HostBlock locked(kSlot);
  const HostBlock results(kSlot * kRounds);
  const TestStream stream;
  {
    Gate gate(stream.get());
    for (size_t i = 0; i < kRounds; ++i) {
      const auto value = static_cast<int32_t>(i + 1);
      EXPECT_SUCCESS(aclrtMemsetAsync(device.data(), kSlot, value, kSlot, stream.get()));
      EXPECT_SUCCESS(
          copy(locked.data(), device.data(), kSlot, ACL_MEMCPY_DEVICE_TO_HOST, stream.get()));
      EXPECT_SUCCESS(copy(copies.at(i * kSlot), locked.data(), kSlot, ACL_MEMCPY_HOST_TO_DEVICE,
                          stream.get()));
      EXPECT_SUCCESS(copy(results.at(i * kSlot), copies.at(i * kSlot), kSlot,
                          ACL_MEMCPY_DEVICE_TO_HOST, stream.get()));
    }
  }
  EXPECT_SUCCESS(finish(stream.get()));
  for (size_t i = 0; i < kRounds; ++i) {
    EXPECT_TRUE(
        holds(results.at(i * kSlot), std::vector<uint8_t>(kSlot, static_cast<uint8_t>(i + 1))))
        << i;
  }
}

TEST_P(AsyncCopyOrder, ACOPY_08_LastOfSeveralCopiesToOnePlaceStays) {
  const HostBlock sources(16 * kPage);
  const DeviceBlock device(kPage);
  const TestStream stream;
  for (size_t i = 0; i < 16; ++i) {
    store(sources.at(i * kPage), pattern(kPage, static_cast<uint8_t>(i)));
    EXPECT_SUCCESS(
        copy(device.data(), sources.at(i * kPage), kPage, ACL_MEMCPY_HOST_TO_DEVICE, stream.get()));
  }
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_TRUE(copy_out(device.data(), kPage) == pattern(kPage, 15));
}

TEST_P(AsyncCopyOrder, ACOPY_08_OtherStreamsDoNotWait) {
  const HostBlock source(kPage);
  const DeviceBlock held_target(kPage);
  const DeviceBlock target(kPage);
  store(source.data(), pattern(kPage, 11));
  copy_in(held_target.data(), pattern(kPage, 12));
  const TestStream held;
  const TestStream other;
  Gate gate(held.get());
  EXPECT_SUCCESS(
      copy(held_target.data(), source.data(), kPage, ACL_MEMCPY_HOST_TO_DEVICE, held.get()));
  EXPECT_SUCCESS(copy(target.data(), source.data(), kPage, ACL_MEMCPY_HOST_TO_DEVICE, other.get()));
  EXPECT_SUCCESS(finish(other.get()));
  EXPECT_TRUE(copy_out(target.data(), kPage) == pattern(kPage, 11));
  EXPECT_TRUE(copy_out(held_target.data(), kPage) == pattern(kPage, 12));
}

// ---- With a side the library does not know ----

// Queues enough behind the gate that a copy which does not wait for it comes too early.
void queue_large_sets(const DeviceBlock& block, int32_t last_value, aclrtStream stream) {
  for (const int32_t value : {1, 2, last_value}) {
    EXPECT_SUCCESS(aclrtMemsetAsync(block.data(), block.size(), value, block.size(), stream));
  }
}

TEST_P(AsyncCopyOrder, ACOPY_07_ACOPY_17_CopyToOrdinaryMemoryIsDoneBehindTheQueue) {
  const DeviceBlock device(kLarge);
  copy_in(device.data(), pattern(kPage, 13));
  const TestStream created;
  for (const aclrtStream stream : {created.get(), aclrtStream{nullptr}}) {
    std::vector<uint8_t> heap = pattern(kPage, 14);
    Gate gate(stream);
    queue_large_sets(device, 0x77, stream);
    EXPECT_SUCCESS(while_opening(gate, [&] {
      return copy(heap.data(), device.at(kLarge - kPage), kPage, ACL_MEMCPY_DEVICE_TO_HOST, stream);
    }));
    EXPECT_TRUE(heap == std::vector<uint8_t>(kPage, 0x77));
    EXPECT_EQ(stream_status(stream), ACL_STREAM_STATUS_COMPLETE);
  }
}

TEST_P(AsyncCopyOrder, ACOPY_07_ACOPY_17_CopyFromOrdinaryMemoryIsDoneBehindTheQueue) {
  const DeviceBlock device(kLarge);
  const TestStream created;
  for (const aclrtStream stream : {created.get(), aclrtStream{nullptr}}) {
    std::vector<uint8_t> heap = pattern(kPage, 15);
    Gate gate(stream);
    queue_large_sets(device, 0x78, stream);
    EXPECT_SUCCESS(while_opening(gate, [&] {
      return copy(device.at(kLarge - kPage), heap.data(), kPage, ACL_MEMCPY_HOST_TO_DEVICE, stream);
    }));
    // The source may be used again at once, and no queued set comes after the copy.
    std::fill(heap.begin(), heap.end(), uint8_t{0});
    EXPECT_EQ(stream_status(stream), ACL_STREAM_STATUS_COMPLETE);
    EXPECT_TRUE(copy_out(device.at(kLarge - kPage), kPage) == pattern(kPage, 15));
    EXPECT_TRUE(copy_out(device.data(), kPage) == std::vector<uint8_t>(kPage, 0x78));
  }
}

TEST_P(AsyncCopyOrder, ACOPY_07_ACOPY_16_KindThatNamesTheDeviceTwiceIsDoneBehindTheQueueToo) {
  const DeviceBlock device(kLarge);
  const TestStream stream;
  std::vector<uint8_t> heap = pattern(kPage, 16);
  Gate gate(stream.get());
  queue_large_sets(device, 0x79, stream.get());
  EXPECT_SUCCESS(while_opening(gate, [&] {
    return copy(heap.data(), device.at(kLarge - kPage), kPage, ACL_MEMCPY_DEVICE_TO_DEVICE,
                stream.get());
  }));
  EXPECT_TRUE(heap == std::vector<uint8_t>(kPage, 0x79));
  heap = pattern(kPage, 17);
  EXPECT_SUCCESS(
      copy(device.data(), heap.data(), kPage, ACL_MEMCPY_DEVICE_TO_DEVICE, stream.get()));
  EXPECT_TRUE(copy_out(device.data(), kPage) == pattern(kPage, 17));
}

TEST_P(AsyncCopyOrder, ACOPY_07_OnlyItsOwnStreamIsDrained) {
  const DeviceBlock device(kPage);
  std::vector<uint8_t> heap = pattern(kPage, 18);
  std::vector<uint8_t> back(kPage);
  const TestStream created;
  const TestStream other;
  const struct {
    aclrtStream held, used;
  } cases[] = {{other.get(), created.get()}, {nullptr, created.get()}, {other.get(), nullptr}};
  for (const auto& streams : cases) {
    Gate gate(streams.held);
    EXPECT_SUCCESS(while_held(gate, [&] {
      return copy(device.data(), heap.data(), kPage, ACL_MEMCPY_HOST_TO_DEVICE, streams.used);
    }));
    EXPECT_SUCCESS(while_held(gate, [&] {
      return copy(back.data(), device.data(), kPage, ACL_MEMCPY_DEVICE_TO_HOST, streams.used);
    }));
    EXPECT_TRUE(back == heap);
  }
}

// ---- Any address ----

TEST_P(AsyncCopyOrder, ACOPY_13_AnyByteAddressAndLengthIsValidOnBothSides) {
  constexpr size_t kFrame = 4 * kPage;
  const DeviceBlock device_source(kFrame);
  const DeviceBlock device_target(kFrame);
  const HostBlock host_source(kFrame);
  const HostBlock host_target(kFrame);
  std::vector<uint8_t> heap_source(kFrame);
  const Spot pairs[][2] = {
      {{"device", Side::kDevice, device_source.data()},
       {"device", Side::kDevice, device_target.data()}},
      {{"host", Side::kHost, host_source.data()}, {"device", Side::kDevice, device_target.data()}},
      {{"device", Side::kDevice, device_source.data()}, {"host", Side::kHost, host_target.data()}},
      {{"heap", Side::kUnregistered, heap_source.data()},
       {"device", Side::kDevice, device_target.data()}}};
  const struct {
    size_t to, from, count;
  } pieces[] = {{0, 1, 1},        {1, 0, 1},        {3, 5, 7},
                {63, 62, 65},     {4095, 4093, 2},  {4093, 1, 4099},
                {8191, 4097, 33}, {17, 8190, 8193}, {kFrame - 1, kFrame - 1, 1}};
  const TestStream stream;
  for (const auto& [source, target] : pairs) {
    for (const auto& piece : pieces) {
      SCOPED_TRACE(testing::Message() << source.name << " + " << piece.from << " to " << target.name
                                      << " + " << piece.to << ", " << piece.count << " bytes");
      const std::vector<uint8_t> from = pattern(kFrame, 31);
      std::vector<uint8_t> expected = pattern(kFrame, 77);
      source.put(from);
      target.put(expected);
      EXPECT_SUCCESS(copy(at(target.start, piece.to), at(source.start, piece.from), piece.count,
                          ACL_MEMCPY_DEFAULT, stream.get()));
      EXPECT_SUCCESS(finish(stream.get()));
      std::copy_n(from.begin() + static_cast<ptrdiff_t>(piece.from), piece.count,
                  expected.begin() + static_cast<ptrdiff_t>(piece.to));
      EXPECT_TRUE(target.has(expected));
      EXPECT_TRUE(source.has(from)) << "the source changed";
    }
  }
}

}  // namespace
}  // namespace understudy_test
