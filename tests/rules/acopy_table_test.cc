// SPDX-License-Identifier: Apache-2.0
//
// aclrtMemcpyAsync and aclrtMemcpyAsyncWithCondition (ACOPY-17): what the classes of both sides and
// the kind make of a copy, and the kind that captures its source.
// Covers: ACOPY-06, ACOPY-09, ACOPY-10, ACOPY-11, ACOPY-16, ACOPY-17.
#include <cstdint>
#include <vector>

#include "rules/async_objects.h"

namespace understudy_test {
namespace {

class AsyncCopyTable : public AsyncCopyTest {};
INSTANTIATE_TEST_SUITE_P(, AsyncCopyTable, each_async_copy(), name_of_async_copy);

constexpr aclrtMemcpyKind kKinds[] = {ACL_MEMCPY_HOST_TO_HOST, ACL_MEMCPY_HOST_TO_DEVICE,
                                      ACL_MEMCPY_DEVICE_TO_HOST, ACL_MEMCPY_DEVICE_TO_DEVICE,
                                      ACL_MEMCPY_DEFAULT};
constexpr auto kCaptured = ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE;

// Whether the table accepts the kind.
bool is_accepted(Side from, Side to, aclrtMemcpyKind kind) {
  if (kind == ACL_MEMCPY_DEFAULT) return true;
  const bool from_known = from != Side::kUnregistered;
  const bool to_known = to != Side::kUnregistered;
  if (from_known == to_known) return true;
  // The kind has to fit the side that is known.
  const bool kind_from_device =
      kind == ACL_MEMCPY_DEVICE_TO_HOST || kind == ACL_MEMCPY_DEVICE_TO_DEVICE;
  const bool kind_to_device =
      kind == ACL_MEMCPY_HOST_TO_DEVICE || kind == ACL_MEMCPY_DEVICE_TO_DEVICE;
  return from_known ? kind_from_device == (from == Side::kDevice)
                    : kind_to_device == (to == Side::kDevice);
}

aclError expected_code(Side from, Side to, aclrtMemcpyKind kind) {
  if (!is_accepted(from, to, kind)) return ACL_ERROR_RT_PARAM_INVALID;
  if (from != Side::kDevice && to != Side::kDevice) return ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
  return ACL_SUCCESS;
}

// Calls the body with each pair of different places.
template <typename Body>
void for_each_pair(const std::vector<Spot>& spots, Body body) {
  uint8_t seed = 1;
  for (const Spot& from : spots) {
    for (const Spot& to : spots) {
      if (from.start == to.start) continue;
      SCOPED_TRACE(testing::Message() << from.name << " to " << to.name);
      const std::vector<uint8_t> source = pattern(Spots::kSize, seed++);
      const std::vector<uint8_t> target = pattern(Spots::kSize, seed++);
      from.put(source);
      to.put(target);
      body(from, to, source, target);
    }
  }
}

TEST_P(AsyncCopyTable, ACOPY_09_ACOPY_10_ACOPY_16_ACOPY_17_ClassesAndKindDecide) {
  Spots spots;
  const DeviceBlock second_device(Spots::kSize);
  const HostBlock second_host(Spots::kSize);
  std::vector<Spot> all = spots.all();
  all.push_back({"second device memory", Side::kDevice, second_device.data()});
  all.push_back({"second host memory", Side::kHost, second_host.data()});
  const TestStream stream;
  for (const aclrtMemcpyKind kind : kKinds) {
    SCOPED_TRACE(testing::Message() << "kind " << kind);
    for_each_pair(
        all, [&](const Spot& from, const Spot& to, const auto& source, const auto& target) {
          const aclError expected = expected_code(from.side, to.side, kind);
          if (expected == ACL_SUCCESS) {
            EXPECT_SUCCESS(copy(to, from, kind, stream.get()));
            const bool known = from.side != Side::kUnregistered && to.side != Side::kUnregistered;
            if (known) {
              EXPECT_SUCCESS(finish(stream.get()));
            }
            EXPECT_TRUE(to.has(source));
          } else {
            expect_refused(expected, to.start, Spots::kSize, from.start, Spots::kSize, kind,
                           stream.get());
            EXPECT_SUCCESS(finish(stream.get()));
            EXPECT_TRUE(to.has(target));
          }
          EXPECT_TRUE(from.has(source)) << "the source changed";
        });
  }
}

TEST_P(AsyncCopyTable, ACOPY_06_ACOPY_09_KnownMemoryIsCopiedInStreamOrderWhateverTheKind) {
  Spots spots;
  const TestStream stream;
  for (const aclrtMemcpyKind kind : kKinds) {
    SCOPED_TRACE(testing::Message() << "kind " << kind);
    for_each_pair(
        spots.all(), [&](const Spot& from, const Spot& to, const auto& source, const auto& target) {
          const bool known = from.side != Side::kUnregistered && to.side != Side::kUnregistered;
          if (!known || expected_code(from.side, to.side, kind) != ACL_SUCCESS) return;
          Gate gate(stream.get());
          EXPECT_SUCCESS(while_held(gate, [&] { return copy(to, from, kind, stream.get()); }));
          EXPECT_EQ(stream_status(stream.get()), ACL_STREAM_STATUS_NOT_READY);
          EXPECT_TRUE(to.has(target)) << "copied before its turn";
          gate.open();
          EXPECT_SUCCESS(finish(stream.get()));
          EXPECT_TRUE(to.has(source));
        });
  }
}

TEST_P(AsyncCopyTable, ACOPY_06_PinnedMemoryIsCopiedInStreamOrder) {
  US_SKIP_UNLESS_LOCKABLE(2 * kPage);
  const OwnMemory pinned(kPage);
  ASSERT_SUCCESS(aclrtHostRegisterV2(pinned.data(), kPage, ACL_HOST_REG_PINNED));
  const DeviceBlock device(kPage);
  store(pinned.data(), pattern(kPage, 5));
  copy_in(device.data(), pattern(kPage, 6));
  const TestStream stream;
  {
    Gate gate(stream.get());
    EXPECT_SUCCESS(while_held(gate, [&] {
      return copy(device.data(), pinned.data(), kPage, ACL_MEMCPY_HOST_TO_DEVICE, stream.get());
    }));
    EXPECT_TRUE(copy_out(device.data(), kPage) == pattern(kPage, 6));
  }
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_TRUE(copy_out(device.data(), kPage) == pattern(kPage, 5));
  EXPECT_SUCCESS(aclrtHostUnregister(pinned.data()));
}

TEST_P(AsyncCopyTable, ACOPY_10_RefusalDoesNotWaitForTheStream) {
  Spots spots;
  const TestStream stream;
  Gate gate(stream.get());
  for_each_pair(spots.all(), [&](const Spot& from, const Spot& to, const auto&,
                                 const auto& target) {
    if (from.side != Side::kHost || to.side != Side::kHost) return;
    EXPECT_EQ(while_held(gate, [&] { return copy(to, from, ACL_MEMCPY_DEFAULT, stream.get()); }),
              ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    EXPECT_TRUE(to.has(target));
  });
}

// ---- The kind that captures its source ----

TEST_P(AsyncCopyTable, ACOPY_11_ACOPY_17_SourceIsCapturedBeforeReturn) {
  Spots spots;
  const TestStream stream;
  for_each_pair(
      spots.all(), [&](const Spot& from, const Spot& to, const auto& source, const auto& target) {
        if (from.side == Side::kDevice || to.side != Side::kDevice) return;
        Gate gate(stream.get());
        EXPECT_SUCCESS(while_held(gate, [&] { return copy(to, from, kCaptured, stream.get()); }));
        from.put(pattern(Spots::kSize, 250));
        EXPECT_TRUE(to.has(target)) << "copied before its turn";
        gate.open();
        EXPECT_SUCCESS(finish(stream.get()));
        EXPECT_TRUE(to.has(source));
      });
}

TEST_P(AsyncCopyTable, ACOPY_11_SourceMayBeGoneBeforeTheCopyRuns) {
  constexpr size_t kSize = 3 * kMiB + 5;
  const DeviceBlock device(2 * kSize);
  const TestStream stream;
  {
    Gate gate(stream.get());
    const std::vector<uint8_t> heap = pattern(kSize, 7);
    HostBlock locked(kSize);
    store(locked.data(), pattern(kSize, 8));
    EXPECT_SUCCESS(while_held(
        gate, [&] { return copy(device.data(), heap.data(), kSize, kCaptured, stream.get()); }));
    EXPECT_SUCCESS(while_held(gate, [&] {
      return copy(device.at(kSize), locked.data(), kSize, kCaptured, stream.get());
    }));
    EXPECT_SUCCESS(aclrtFreeHost(locked.give_up()));
  }
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_TRUE(copy_out(device.data(), kSize) == pattern(kSize, 7));
  EXPECT_TRUE(copy_out(device.at(kSize), kSize) == pattern(kSize, 8));
}

TEST_P(AsyncCopyTable, ACOPY_11_OtherSidesAreRefused) {
  Spots spots;
  const TestStream stream;
  for_each_pair(spots.all(),
                [&](const Spot& from, const Spot& to, const auto&, const auto& target) {
                  if (from.side != Side::kDevice && to.side == Side::kDevice) return;
                  expect_refused(ACL_ERROR_RT_PARAM_INVALID, to.start, Spots::kSize, from.start,
                                 Spots::kSize, kCaptured, stream.get());
                  EXPECT_SUCCESS(finish(stream.get()));
                  EXPECT_TRUE(to.has(target));
                });
}

}  // namespace
}  // namespace understudy_test
