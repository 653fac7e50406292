// SPDX-License-Identifier: Apache-2.0
//
// aclrtMemcpy: what is checked before a byte moves, in which order, and that a refusal moves none.
// Covers: COPY-01, COPY-02, COPY-03, COPY-04, COPY-05, COPY-06.
#include <cstdint>
#include <vector>

#include "rules/live_mapping.h"
#include "support/rule_test.h"

namespace understudy_test {
namespace {

using MemcpyArguments = DeviceTest;

constexpr size_t kCount = 256;

TEST_F(MemcpyArguments, COPY_01_ZeroBytesSucceedBeforeAnyOtherCheck) {
  const Bystander bystander;
  void* const device = bystander.mapping().data();
  std::vector<uint8_t> host = pattern(kCount, 3);
  const auto bad_kind = enum_value<aclrtMemcpyKind>(99);

  EXPECT_SUCCESS(aclrtMemcpy(nullptr, 0, nullptr, 0, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_SUCCESS(aclrtMemcpy(nullptr, 0, nullptr, 0, bad_kind));
  EXPECT_SUCCESS(aclrtMemcpy(device, 0, host.data(), 0, bad_kind));
  EXPECT_SUCCESS(aclrtMemcpy(device, 0, host.data(), 0, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_SUCCESS(aclrtMemcpy(host.data(), kCount, device, 0, ACL_MEMCPY_DEVICE_TO_HOST));

  EXPECT_EQ(host, pattern(kCount, 3));
  bystander.expect_unchanged();
}

TEST_F(MemcpyArguments, COPY_01_ZeroBytesNeedNoContext) {
  on_bare_thread(
      [] { EXPECT_SUCCESS(aclrtMemcpy(nullptr, 0, nullptr, 0, enum_value<aclrtMemcpyKind>(-1))); });
}

TEST_F(MemcpyArguments, COPY_02_NullPointerIsRefused) {
  const Bystander bystander;
  void* const device = bystander.mapping().data();
  std::vector<uint8_t> host = pattern(kCount, 4);

  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtMemcpy(nullptr, kCount, host.data(), kCount, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtMemcpy(device, kCount, nullptr, kCount, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtMemcpy(host.data(), kCount, nullptr, kCount, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtMemcpy(nullptr, kCount, nullptr, kCount, ACL_MEMCPY_DEFAULT));

  EXPECT_EQ(host, pattern(kCount, 4));
  bystander.expect_unchanged();
}

TEST_F(MemcpyArguments, COPY_02_NullPointerIsNoticedBeforeTheRoom) {
  std::vector<uint8_t> host = pattern(kCount);
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtMemcpy(nullptr, 0, host.data(), kCount, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtMemcpy(host.data(), 1, nullptr, kCount, ACL_MEMCPY_DEVICE_TO_HOST));
}

TEST_F(MemcpyArguments, COPY_03_UnknownKindIsRefused) {
  const Bystander bystander;
  void* const device = bystander.mapping().data();
  std::vector<uint8_t> host = pattern(kCount, 5);

  for (const int64_t kind : {int64_t{6}, int64_t{7}, int64_t{8}, int64_t{99}, int64_t{-1},
                             int64_t{INT32_MAX}, int64_t{INT32_MIN}}) {
    SCOPED_TRACE(kind);
    const auto bad_kind = enum_value<aclrtMemcpyKind>(kind);
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
                 aclrtMemcpy(device, kCount, host.data(), kCount, bad_kind));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
                 aclrtMemcpy(host.data(), kCount, device, kCount, bad_kind));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemcpy(device, 0, host.data(), kCount, bad_kind));
  }
  EXPECT_EQ(host, pattern(kCount, 5));
  bystander.expect_unchanged();
}

TEST_F(MemcpyArguments, COPY_04_TooLittleRoomIsRefusedAndMovesNothing) {
  const Bystander bystander;
  void* const device = bystander.mapping().data();
  const std::vector<uint8_t> source = pattern(kCount, 6);
  std::vector<uint8_t> host = pattern(kCount, 7);

  for (const size_t room : {size_t{0}, size_t{1}, kCount - 1}) {
    SCOPED_TRACE(room);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtMemcpy(device, room, source.data(), kCount, ACL_MEMCPY_HOST_TO_DEVICE));
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtMemcpy(host.data(), room, device, kCount, ACL_MEMCPY_DEVICE_TO_HOST));
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtMemcpy(host.data(), room, source.data(), kCount, ACL_MEMCPY_HOST_TO_HOST));
  }
  EXPECT_EQ(host, pattern(kCount, 7));
  bystander.expect_unchanged();
}

TEST_F(MemcpyArguments, COPY_04_AbsurdlyLargeRoomIsNoMistake) {
  const LiveMapping block;
  const std::vector<uint8_t> source = pattern(kCount, 8);
  EXPECT_SUCCESS(
      aclrtMemcpy(block.data(), SIZE_MAX, source.data(), kCount, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_EQ(copy_out(block.data(), kCount), source);
}

TEST_F(MemcpyArguments, COPY_05_ThreadWithoutContextIsRefused) {
  const Bystander bystander;
  void* const device = bystander.mapping().data();
  on_bare_thread([device] {
    std::vector<uint8_t> host = pattern(kCount, 9);
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL,
                 aclrtMemcpy(device, kCount, host.data(), kCount, ACL_MEMCPY_HOST_TO_DEVICE));
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL,
                 aclrtMemcpy(host.data(), kCount, device, kCount, ACL_MEMCPY_DEVICE_TO_HOST));
    EXPECT_EQ(host, pattern(kCount, 9));
  });
  bystander.expect_unchanged();
}

TEST_F(MemcpyArguments, COPY_06_CopyOntoItselfSucceedsAndMovesNothing) {
  const Bystander bystander;
  void* const device = bystander.mapping().data();
  std::vector<uint8_t> host = pattern(kCount, 10);
  for (int kind = 0; kind <= 5; ++kind) {
    SCOPED_TRACE(kind);
    const auto any_kind = enum_value<aclrtMemcpyKind>(kind);
    EXPECT_SUCCESS(aclrtMemcpy(device, kCount, device, kCount, any_kind));
    EXPECT_SUCCESS(aclrtMemcpy(host.data(), kCount, host.data(), kCount, any_kind));
  }
  EXPECT_EQ(host, pattern(kCount, 10));
  bystander.expect_unchanged();
}

}  // namespace
}  // namespace understudy_test
