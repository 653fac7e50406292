// SPDX-License-Identifier: Apache-2.0
#include "runtime/devices.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>

#include "unit/expect_result.h"
#include "unit/run_on_threads.h"
#include "unit/stream_rig.h"

namespace understudy {
namespace {

Settings settings_of(std::string_view product) {
  Settings settings = rig_settings(product);
  settings.devices = 4;
  return settings;
}

class DevicesTest : public testing::Test {
 protected:
  ContextReference set(unsigned device) { return *value_of(devices_.set(device)); }

  StreamRig rig_{settings_of("a2")};
  Devices devices_{rig_.memory.settings, rig_.memory.device_memory, rig_.streams, rig_.events,
                   rig_.notifies};
};

TEST_F(DevicesTest, OnlyNumbersOfDevicesPass) {
  EXPECT_EQ(value_of(devices_.check(0, "deviceId")), 0u);
  EXPECT_EQ(value_of(devices_.check(3, "deviceId")), 3u);
  for (const int64_t device : {int64_t{-1}, int64_t{4}, INT64_MAX, INT64_MIN}) {
    const Result<unsigned> refused = devices_.check(device, "peerDevice");
    ASSERT_TRUE(fails_with(refused, ErrorCode::kInvalidDevice)) << device;
    EXPECT_NE(std::string(refused.error().text()).find("peerDevice"), std::string::npos);
  }
  EXPECT_TRUE(fails_with(devices_.check(4, "deviceId", ErrorCode::kInvalidParam),
                         ErrorCode::kInvalidParam));
}

TEST_F(DevicesTest, EverySetGivesTheSameDefaultContextUntilTheLastReset) {
  const ContextReference first = set(1);
  const ContextReference second = set(1);
  EXPECT_EQ(first.handle(), second.handle());
  EXPECT_EQ(first.device(), 1u);
  EXPECT_TRUE(is_ok(devices_.reset(1)));
  EXPECT_TRUE(devices_.is_set(1));
  EXPECT_TRUE(first.valid());
  EXPECT_TRUE(is_ok(devices_.reset(1)));
  EXPECT_FALSE(devices_.is_set(1));
  EXPECT_FALSE(devices_.has_default_context(1));
  EXPECT_FALSE(first.valid());
  EXPECT_TRUE(fails_with(devices_.reset(1), ErrorCode::kDeviceNotSet));
}

TEST_F(DevicesTest, ResetAtOnceEndsAllUses) {
  const ContextReference context = set(0);
  set(0);
  EXPECT_TRUE(is_ok(devices_.reset_at_once(0)));
  EXPECT_FALSE(devices_.is_set(0));
  EXPECT_FALSE(context.valid());
  EXPECT_TRUE(fails_with(devices_.reset_at_once(0), ErrorCode::kDeviceNotSet));
}

TEST_F(DevicesTest, ResetEndsTheContextsOfItsDeviceAlone) {
  set(0);
  const ContextReference mine = value_of(devices_.create_context(0));
  const ContextReference other_default = set(1);
  const ContextReference other = value_of(devices_.create_context(1));
  EXPECT_TRUE(is_ok(devices_.reset(0)));
  EXPECT_FALSE(mine.valid());
  EXPECT_TRUE(other_default.valid());
  EXPECT_TRUE(other.valid());
  devices_.reset_all();
  EXPECT_FALSE(other_default.valid());
  EXPECT_FALSE(other.valid());
  EXPECT_FALSE(devices_.is_set(1));
}

TEST_F(DevicesTest, ProductWithoutDefaultContextGivesNone) {
  StreamRig rig(settings_of("ipv350"));
  Devices devices(rig.memory.settings, rig.memory.device_memory, rig.streams, rig.events,
                  rig.notifies);
  EXPECT_EQ(value_of(devices.set(0)).has_value(), false);
  EXPECT_TRUE(devices.is_set(0));
  EXPECT_FALSE(devices.has_default_context(0));
  EXPECT_TRUE(is_ok(devices.reset(0)));
}

TEST_F(DevicesTest, ContextIsFoundByItsHandleUntilItIsDestroyed) {
  const ContextReference context = value_of(devices_.create_context(2));
  const uint64_t handle = context.handle();
  EXPECT_EQ(value_of(devices_.find_context(handle)).context, context.context);
  EXPECT_EQ(context.device(), 2u);
  EXPECT_TRUE(is_ok(devices_.destroy_context(handle)));
  EXPECT_FALSE(context.valid());
  EXPECT_TRUE(fails_with(devices_.find_context(handle), ErrorCode::kInvalidParam));
  EXPECT_TRUE(fails_with(devices_.destroy_context(handle), ErrorCode::kInvalidParam));
}

TEST_F(DevicesTest, SlotThatIsUsedAgainDoesNotBringTheOldHandleBack) {
  const ContextReference old = value_of(devices_.create_context(0));
  const uint64_t old_handle = old.handle();
  ASSERT_TRUE(is_ok(devices_.destroy_context(old_handle)));
  const ContextReference fresh = value_of(devices_.create_context(1));
  ASSERT_EQ(fresh.context, old.context);
  EXPECT_NE(fresh.handle(), old_handle);
  EXPECT_FALSE(old.valid());
  EXPECT_TRUE(fails_with(devices_.find_context(old_handle), ErrorCode::kInvalidParam));
  EXPECT_TRUE(fails_with(devices_.destroy_context(old_handle), ErrorCode::kInvalidParam));
  EXPECT_TRUE(fresh.valid());
}

TEST_F(DevicesTest, InventedHandlesAreRefused) {
  const uint64_t context = set(0).handle();
  const HandleParts parts = HandleParts::split(context);
  for (const uint64_t handle :
       {uint64_t{0}, uint64_t{1}, UINT64_MAX,
        HandleParts{HandleTag::kBlock, parts.generation, parts.index}.pack(),
        HandleParts{HandleTag::kContext, parts.generation + 1, parts.index}.pack(),
        HandleParts{HandleTag::kContext, 0, UINT32_MAX}.pack(),
        HandleParts{HandleTag::kContext, 0, parts.index + 7}.pack()}) {
    EXPECT_TRUE(fails_with(devices_.find_context(handle), ErrorCode::kInvalidParam)) << handle;
  }
}

TEST_F(DevicesTest, DefaultContextCannotBeDestroyed) {
  const ContextReference context = set(0);
  EXPECT_TRUE(fails_with(devices_.destroy_context(context.handle()), ErrorCode::kNoContext));
  EXPECT_TRUE(context.valid());
}

TEST_F(DevicesTest, DefaultStreamEndsWithItsContext) {
  const ContextReference context = value_of(devices_.create_context(0));
  const uint64_t stream = context.default_stream.handle();
  EXPECT_NE(stream, context.handle());
  EXPECT_EQ(value_of(rig_.streams.find(stream)).stream, context.default_stream.stream);
  // A context is no stream and a stream is no context.
  EXPECT_TRUE(fails_with(rig_.streams.find(context.handle()), ErrorCode::kInvalidHandle));
  EXPECT_TRUE(fails_with(devices_.find_context(stream), ErrorCode::kInvalidParam));
  ASSERT_TRUE(is_ok(devices_.destroy_context(context.handle())));
  EXPECT_TRUE(fails_with(rig_.streams.find(stream), ErrorCode::kInvalidHandle));
}

TEST_F(DevicesTest, PeerAccessGoesOneWayAndEndsWithTheUse) {
  set(0);
  devices_.set_peer_access(0, 3, true);
  EXPECT_TRUE(devices_.has_peer_access(0, 3));
  EXPECT_FALSE(devices_.has_peer_access(3, 0));
  EXPECT_FALSE(devices_.has_peer_access(0, 2));
  devices_.set_peer_access(0, 3, false);
  EXPECT_FALSE(devices_.has_peer_access(0, 3));
  devices_.set_peer_access(0, 3, true);
  ASSERT_TRUE(is_ok(devices_.reset(0)));
  EXPECT_FALSE(devices_.has_peer_access(0, 3));
}

TEST_F(DevicesTest, SettingsOfADeviceAreForgottenWithItsUse) {
  set(1);
  EXPECT_EQ(devices_.core_limit(1, 0), std::nullopt);
  devices_.set_core_limit(1, 0, 12);
  ASSERT_TRUE(is_ok(devices_.set_overflow_mode(1, OverflowMode::kSaturation)));
  EXPECT_EQ(devices_.core_limit(1, 0), 12u);
  EXPECT_EQ(devices_.core_limit(1, 1), std::nullopt);
  EXPECT_EQ(devices_.core_limit(0, 0), std::nullopt);
  EXPECT_EQ(devices_.overflow_mode(1), OverflowMode::kSaturation);
  EXPECT_EQ(devices_.overflow_mode(0), OverflowMode::kInfNan);
  ASSERT_TRUE(is_ok(devices_.reset(1)));
  EXPECT_EQ(devices_.core_limit(1, 0), std::nullopt);
  EXPECT_EQ(devices_.overflow_mode(1), OverflowMode::kInfNan);
}

TEST_F(DevicesTest, StreamsKeepTheOverflowModeOfTheirBeginning) {
  const ContextReference before = set(0);
  ASSERT_TRUE(is_ok(devices_.set_overflow_mode(0, OverflowMode::kSaturation)));
  const ContextReference after = value_of(devices_.create_context(0));
  EXPECT_EQ(before.default_stream.overflow_mode(), OverflowMode::kInfNan);
  EXPECT_EQ(after.default_stream.overflow_mode(), OverflowMode::kSaturation);
}

TEST_F(DevicesTest, OverflowStatusIsGivenToAContextOnceAndEndsWithIt) {
  DeviceMemory& memory = rig_.memory.device_memory;
  const auto charged = [&] { return rig_.memory.charged(0, PageKind::kNormal); };
  const ContextReference context = value_of(devices_.create_context(0));
  EXPECT_EQ(devices_.overflow_status(context), 0u);
  const VirtualAddress first = value_of(memory.allocate_internal(0, kOverflowStatusBytes));
  const VirtualAddress second = value_of(memory.allocate_internal(0, kOverflowStatusBytes));
  EXPECT_EQ(devices_.keep_overflow_status(context, first), first);
  EXPECT_EQ(devices_.keep_overflow_status(context, second), first);
  EXPECT_EQ(devices_.overflow_status(context), first);
  memory.free_internal(second);
  EXPECT_GT(charged(), 0u);
  ASSERT_TRUE(is_ok(devices_.destroy_context(context.handle())));
  EXPECT_EQ(charged(), 0u);
  EXPECT_EQ(devices_.overflow_status(context), 0u);
  EXPECT_EQ(devices_.keep_overflow_status(context, first), 0u);
}

TEST_F(DevicesTest, SettingsOfAContextDoNotReachTheNextOneInItsSlot) {
  const ContextReference old = value_of(devices_.create_context(0));
  devices_.set_option(old, 1, 5);
  EXPECT_EQ(devices_.option(old, 1), 5);
  ASSERT_TRUE(is_ok(devices_.destroy_context(old.handle())));
  EXPECT_EQ(devices_.option(old, 1), std::nullopt);

  const ContextReference fresh = value_of(devices_.create_context(0));
  ASSERT_EQ(fresh.context, old.context);
  EXPECT_EQ(devices_.option(fresh, 1), std::nullopt);
  devices_.set_option(old, 1, 7);
  EXPECT_EQ(devices_.option(fresh, 1), std::nullopt);
}

TEST_F(DevicesTest, ThreadsGetContextsOfTheirOwn) {
  Mutex mutex(LockRank::kErrorLog);
  std::set<uint64_t> handles;
  run_on_threads(4, [&](int) {
    for (int i = 0; i < 100; ++i) {
      const uint64_t handle = value_of(devices_.create_context(0)).handle();
      EXPECT_TRUE(is_ok(devices_.find_context(handle)));
      MutexLock lock(mutex);
      EXPECT_TRUE(handles.insert(handle).second);
    }
  });
  EXPECT_EQ(handles.size(), 400u);
  set(0);
  EXPECT_TRUE(is_ok(devices_.reset(0)));
  for (const uint64_t handle : handles) EXPECT_FALSE(devices_.find_context(handle).ok());
}

}  // namespace
}  // namespace understudy
