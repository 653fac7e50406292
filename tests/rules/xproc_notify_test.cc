// SPDX-License-Identifier: Apache-2.0
//
// Notifies within one process: made, recorded, waited for, reset and destroyed.
// Covers: GEN-05, GEN-06, XPROC-03, XPROC-04, XPROC-05, XPROC-06, XPROC-07, XPROC-08, XPROC-09,
// XPROC-11, XPROC-12, XPROC-13.
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rules/notify_objects.h"
#include "rules/runtime_support.h"

namespace understudy_test::notify {
namespace {

using XprocNotify = DeviceTest;

// ---- Life ----

TEST_F(XprocNotify, XPROC_03_NullIsRefusedFirst) {
  const auto refuse = [] {
    for (const uint64_t flag : {0, 1, 99}) {
      EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCreateNotify(nullptr, flag));
    }
  };
  refuse();
  on_bare_thread(refuse);
}

TEST_F(XprocNotify, XPROC_03_UnknownFlagsAreRefused) {
  for (const uint64_t flag : {uint64_t{2}, uint64_t{3}, uint64_t{4}, uint64_t{1} << 32,
                              uint64_t{1} << 32 | 1, UINT64_MAX}) {
    SCOPED_TRACE(flag);
    aclrtNotify notify = untouched_address();
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtCreateNotify(&notify, flag));
    EXPECT_EQ(notify, untouched_address());
  }
}

TEST_F(XprocNotify, XPROC_03_BothFlagsMakeANotifyThatIsNotSet) {
  for (const uint64_t flag : {ACL_NOTIFY_DEFAULT, ACL_NOTIFY_DEVICE_USE_ONLY}) {
    const TestNotify notify(flag);
    EXPECT_FALSE(take(notify.get()));
    notify.record(nullptr);
    EXPECT_SUCCESS(finish_soon(nullptr));
    EXPECT_TRUE(take(notify.get()));
  }
}

TEST_F(XprocNotify, XPROC_03_WithoutAContextNoNotifyIsMade) {
  on_bare_thread([] {
    aclrtNotify notify = untouched_address();
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtCreateNotify(&notify, 0));
    EXPECT_EQ(notify, untouched_address());
  });
}

// Each function with a handle that is none.
void expect_all_refuse(aclrtNotify handle) {
  uint32_t id = 77;
  NotifyKey key{};
  int32_t process = 1;
  aclrtNotify list[] = {handle};
  constexpr aclError kRefused = ACL_ERROR_RT_INVALID_HANDLE;
  EXPECT_FAILS(kRefused, aclrtRecordNotify(handle, nullptr));
  EXPECT_FAILS(kRefused, aclrtWaitAndResetNotify(handle, nullptr, 1));
  EXPECT_FAILS(kRefused, aclrtGetNotifyId(handle, &id));
  EXPECT_FAILS(kRefused, aclrtNotifyBatchReset(list, 1));
  EXPECT_FAILS(kRefused, aclrtNotifyGetExportKey(handle, key.text.data(), ipc::kKeySize, 0));
  EXPECT_FAILS(kRefused, aclrtNotifySetImportPid(handle, &process, 1));
  EXPECT_FAILS(kRefused, aclrtDestroyNotify(handle));
  EXPECT_EQ(id, 77u);
  EXPECT_TRUE(key == NotifyKey{});
  EXPECT_SUCCESS(finish_soon(nullptr));
}

TEST_F(XprocNotify, XPROC_04_DestroyedAndForeignHandlesAreRefused) {
  TestNotify ended;
  const aclrtNotify destroyed = ended.release();
  EXPECT_SUCCESS(aclrtDestroyNotify(destroyed));
  expect_all_refuse(destroyed);
  const TestNotify next;  // may have its place
  expect_all_refuse(destroyed);
  const TestStream stream;
  const TestEvent event;
  uint64_t variable[8] = {};
  for (void* const handle : {static_cast<void*>(stream.get()), static_cast<void*>(event.get()),
                             static_cast<void*>(&variable), address(0x1234), address(~0ULL)}) {
    expect_all_refuse(handle);
  }
}

TEST_F(XprocNotify, XPROC_04_NullIsRefusedFirst) {
  const auto refuse = [] {
    uint32_t id = 77;
    NotifyKey key{};
    int32_t process = 1;
    aclrtServerPid server{};
    aclrtNotify some = address(0x1234);
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtDestroyNotify(nullptr));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtRecordNotify(nullptr, nullptr));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtWaitAndResetNotify(nullptr, nullptr, 0));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetNotifyId(nullptr, &id));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetNotifyId(some, nullptr));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtNotifyBatchReset(nullptr, 1));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtNotifyBatchReset(nullptr, 0));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
                 aclrtNotifyGetExportKey(nullptr, key.text.data(), ipc::kKeySize, 0));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtNotifyGetExportKey(some, nullptr, 0, 7));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtNotifySetImportPid(nullptr, &process, 1));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtNotifySetImportPid(some, nullptr, 0));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtNotifySetImportPidInterServer(nullptr, &server, 1));
    EXPECT_EQ(id, 77u);
    EXPECT_TRUE(key == NotifyKey{});
  };
  refuse();
  on_bare_thread(refuse);
}

TEST_F(XprocNotify, XPROC_04_DestroyNeedsNoContext) {
  TestNotify notify;
  on_bare_thread([&] { EXPECT_SUCCESS(aclrtDestroyNotify(notify.release())); });
}

TEST_F(XprocNotify, XPROC_04_QueuedTasksOutliveTheHandle) {
  const TestStream first;
  const TestStream second;
  TaskCounter counter;
  TestNotify notify;
  {
    const Gate gate(first.get());
    notify.record(first.get());
    notify.wait(second.get());
    counter.queue_on(second.get());
    EXPECT_SUCCESS(aclrtDestroyNotify(notify.release()));
    EXPECT_TRUE(is_held(second.get()));
    EXPECT_EQ(counter.runs(), 0);
  }
  EXPECT_SUCCESS(finish_soon(second.get()));
  EXPECT_EQ(counter.runs(), 1);
}

TEST_F(XprocNotify, XPROC_04_TheResetOfTheDeviceEndsNotifies) {
  const TestNotify other(ACL_NOTIFY_DEFAULT);
  ASSERT_SUCCESS(aclrtSetDevice(1));
  TestNotify notify;
  const NotifyKey key = export_notify(notify.get());
  aclrtStream stream = nullptr;
  ASSERT_SUCCESS(aclrtCreateStream(&stream));
  notify.wait(stream);
  EXPECT_SUCCESS(aclrtResetDeviceForce(1));
  ASSERT_SUCCESS(aclrtSetDevice(0));
  expect_all_refuse(notify.release());
  aclrtNotify imported = untouched_address();
  EXPECT_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtNotifyImportByKey(&imported, key.get(), 0));
  EXPECT_EQ(imported, untouched_address());
  EXPECT_FALSE(take(other.get()));
}

// ---- Records and waits ----

TEST_F(XprocNotify, XPROC_05_XPROC_06_GEN_05_GEN_06_StreamsAreChecked) {
  const TestNotify notify;
  TestStream ended;
  const aclrtStream destroyed = ended.release();
  EXPECT_SUCCESS(aclrtDestroyStream(destroyed));
  const aclrtContext own = runtime::current_context();
  const aclrtContext other = runtime::create_context(0);
  aclrtStream foreign = nullptr;
  EXPECT_SUCCESS(aclrtCreateStream(&foreign));
  EXPECT_SUCCESS(aclrtSetCurrentContext(own));
  const struct {
    aclrtStream stream;
    aclError code;
  } cases[] = {{destroyed, ACL_ERROR_RT_INVALID_HANDLE}, {foreign, ACL_ERROR_RT_STREAM_CONTEXT}};
  for (const auto& [stream, code] : cases) {
    EXPECT_FAILS(code, aclrtRecordNotify(notify.get(), stream));
    EXPECT_FAILS(code, aclrtWaitAndResetNotify(notify.get(), stream, 1));
  }
  on_bare_thread([&] {
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtRecordNotify(notify.get(), nullptr));
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtWaitAndResetNotify(notify.get(), nullptr, 1));
  });
  EXPECT_FALSE(take(notify.get()));
  EXPECT_SUCCESS(aclrtDestroyContext(other));
}

TEST_F(XprocNotify, XPROC_05_ARecordTakesEffectInStreamOrder) {
  const TestStream recording;
  const TestStream waiting;
  const TestNotify notify;
  TargetPage page;
  {
    const Gate gate(recording.get());
    page.queue_set(recording.get(), 0x22);
    notify.record(recording.get());
    page.queue_set(recording.get(), 0x33);
    notify.wait(waiting.get());
    EXPECT_TRUE(is_held(waiting.get()));
    EXPECT_TRUE(page.holds(TargetPage::kInitial));
  }
  EXPECT_SUCCESS(finish_soon(waiting.get()));
  EXPECT_FALSE(page.holds(TargetPage::kInitial));
  EXPECT_SUCCESS(finish_soon(recording.get()));
  EXPECT_TRUE(page.holds(0x33));
}

TEST_F(XprocNotify, XPROC_05_RecordsDoNotAddUp) {
  const TestNotify notify;
  for (int i = 0; i < 3; ++i) notify.record(nullptr);
  EXPECT_SUCCESS(finish_soon(nullptr));
  EXPECT_TRUE(take(notify.get()));
  EXPECT_FALSE(take(notify.get()));
}

TEST_F(XprocNotify, XPROC_05_ADroppedRecordSetsNothing) {
  const TestStream stream;
  const TestNotify notify;
  const TestNotify never;
  never.wait(stream.get());
  notify.record(stream.get());
  EXPECT_SUCCESS(aclrtStreamAbort(stream.get()));
  EXPECT_FALSE(take(notify.get()));
}

TEST_F(XprocNotify, XPROC_06_AWaitHoldsLaterTasksOfItsStreamAlone) {
  const TestStream held;
  const TestStream free;
  const TestNotify notify;
  TaskCounter before;
  TaskCounter behind;
  before.queue_on(held.get());
  notify.wait(held.get());
  behind.queue_on(held.get());
  EXPECT_TRUE(is_held(held.get()));
  EXPECT_EQ(before.runs(), 1);
  EXPECT_EQ(behind.runs(), 0);
  notify.record(free.get());
  EXPECT_SUCCESS(finish_soon(free.get()));
  EXPECT_SUCCESS(finish_soon(held.get()));
  EXPECT_EQ(behind.runs(), 1);
  EXPECT_FALSE(take(notify.get()));
}

TEST_F(XprocNotify, XPROC_06_ANotifyThatIsSetAlreadyHoldsNothing) {
  const TestStream stream;
  const TestNotify notify;
  for (int round = 0; round < 100; ++round) {
    notify.record(stream.get());
    notify.wait(stream.get());
  }
  EXPECT_SUCCESS(finish_soon(stream.get()));
  EXPECT_FALSE(take(notify.get()));
}

TEST_F(XprocNotify, XPROC_06_OneRecordServesOneOfSeveralWaits) {
  constexpr int kStreams = 8;
  const TestNotify notify;
  std::vector<std::unique_ptr<TestStream>> streams;
  TaskCounter counter;
  for (int i = 0; i < kStreams; ++i) {
    streams.push_back(std::make_unique<TestStream>());
    notify.wait(streams.back()->get());
    counter.queue_on(streams.back()->get());
  }
  const TestStream recording;
  const TestNotify served;
  for (int i = 1; i <= kStreams; ++i) {
    notify.record(recording.get());
    EXPECT_SUCCESS(finish_soon(recording.get()));
    while (counter.runs() < i) std::this_thread::yield();
    for (const auto& stream : streams) (void)is_held(stream->get());
    EXPECT_EQ(counter.runs(), i);
  }
  for (const auto& stream : streams) EXPECT_SUCCESS(finish_soon(stream->get()));
  EXPECT_FALSE(take(notify.get()));
}

TEST_F(XprocNotify, XPROC_06_TimeOverFailsTheTaskAndTheStreamGoesOn) {
  const TestStream stream;
  const TestNotify notify;
  TaskCounter counter;
  notify.wait(stream.get(), 1);
  counter.queue_on(stream.get());
  EXPECT_FAILS(ACL_ERROR_RT_TASK_TIMEOUT,
               aclrtSynchronizeStreamWithTimeout(stream.get(), kPatience));
  EXPECT_EQ(counter.runs(), 1);
  EXPECT_SUCCESS(finish_soon(stream.get()));
  // The next record is not for the wait that failed.
  notify.record(stream.get());
  EXPECT_SUCCESS(finish_soon(stream.get()));
  EXPECT_TRUE(take(notify.get()));
}

TEST_F(XprocNotify, XPROC_06_TheLimitBeginsWhenTheStreamGetsThere) {
  const TestStream stream;
  const TestNotify notify;
  {
    const Gate gate(stream.get());
    notify.wait(stream.get(), UINT32_MAX);
    notify.wait(stream.get(), UINT32_MAX);
    notify.record(nullptr);
    EXPECT_SUCCESS(finish_soon(nullptr));
  }
  EXPECT_TRUE(is_held(stream.get()));
  notify.record(nullptr);
  EXPECT_SUCCESS(finish_soon(stream.get()));
}

TEST_F(XprocNotify, XPROC_06_AbortStopAndDestroyEndAWait) {
  const TestNotify notify;
  TaskCounter counter;
  TestStream stream;
  notify.wait(stream.get());
  counter.queue_on(stream.get());
  EXPECT_TRUE(is_held(stream.get()));
  EXPECT_SUCCESS(aclrtStreamAbort(stream.get()));
  EXPECT_SUCCESS(finish_soon(stream.get()));
  EXPECT_EQ(counter.runs(), 0);
  notify.wait(stream.get());
  counter.queue_on(stream.get());
  EXPECT_TRUE(is_held(stream.get()));
  EXPECT_SUCCESS(aclrtStreamStop(stream.get()));
  (void)finish_soon(stream.get());
  EXPECT_EQ(counter.runs(), 1);
  notify.wait(stream.get());
  EXPECT_SUCCESS(aclrtDestroyStreamForce(stream.release()));
  EXPECT_FALSE(take(notify.get()));
}

TEST_F(XprocNotify, XPROC_06_StreamsOfOtherDevicesRecordAndWait) {
  const TestNotify notify;
  const aclrtContext own = runtime::current_context();
  const aclrtContext other = runtime::create_context(1);
  aclrtStream there = nullptr;
  ASSERT_SUCCESS(aclrtCreateStream(&there));
  notify.record(there);
  EXPECT_SUCCESS(finish_soon(there));
  EXPECT_SUCCESS(aclrtSetCurrentContext(own));
  EXPECT_TRUE(take(notify.get()));
  EXPECT_SUCCESS(aclrtSetCurrentContext(other));
  notify.wait(there);
  EXPECT_SUCCESS(aclrtSetCurrentContext(own));
  notify.record(nullptr);
  EXPECT_SUCCESS(aclrtSetCurrentContext(other));
  EXPECT_SUCCESS(finish_soon(there));
  EXPECT_SUCCESS(aclrtDestroyContext(other));
  EXPECT_SUCCESS(aclrtSetCurrentContext(own));
}

// ---- Ids and resets ----

TEST_F(XprocNotify, XPROC_07_IdsAreUnique) {
  std::vector<std::unique_ptr<TestNotify>> notifies;
  std::set<uint32_t> ids;
  for (int i = 0; i < 100; ++i) {
    notifies.push_back(std::make_unique<TestNotify>());
    uint32_t id = 0;
    EXPECT_SUCCESS(aclrtGetNotifyId(notifies.back()->get(), &id));
    EXPECT_TRUE(ids.insert(id).second) << id;
    uint32_t again = 0;
    EXPECT_SUCCESS(aclrtGetNotifyId(notifies.back()->get(), &again));
    EXPECT_EQ(again, id);
  }
}

TEST_F(XprocNotify, XPROC_07_TheResetClearsEveryNotifyOfTheArray) {
  const TestNotify set;
  const TestNotify unset;
  const TestNotify exported;
  const TestNotify other;
  (void)export_notify(exported.get());
  for (const TestNotify* each : {&set, &exported, &other}) each->record(nullptr);
  EXPECT_SUCCESS(finish_soon(nullptr));
  aclrtNotify list[] = {set.get(), unset.get(), exported.get(), set.get()};
  on_bare_thread([&] { EXPECT_SUCCESS(aclrtNotifyBatchReset(list, 4)); });
  EXPECT_FALSE(take(set.get()));
  EXPECT_FALSE(take(unset.get()));
  EXPECT_FALSE(take(exported.get()));
  EXPECT_TRUE(take(other.get()));
}

TEST_F(XprocNotify, XPROC_07_ABadArrayClearsNothing) {
  const TestNotify set;
  set.record(nullptr);
  EXPECT_SUCCESS(finish_soon(nullptr));
  TestNotify ended;
  const aclrtNotify destroyed = ended.release();
  EXPECT_SUCCESS(aclrtDestroyNotify(destroyed));
  aclrtNotify stale[] = {set.get(), destroyed};
  aclrtNotify null[] = {set.get(), nullptr};
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtNotifyBatchReset(stale, 0));
  EXPECT_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtNotifyBatchReset(stale, 2));
  EXPECT_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtNotifyBatchReset(null, 2));
  EXPECT_TRUE(take(set.get()));
}

// ---- Keys, as far as one process goes ----

TEST_F(XprocNotify, XPROC_08_ArgumentsAreChecked) {
  const TestNotify notify;
  NotifyKey key{};
  for (const size_t length : {size_t{0}, size_t{1}, size_t{64}}) {
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtNotifyGetExportKey(notify.get(), key.text.data(), length, kForAll));
  }
  for (const uint64_t flags : {uint64_t{1}, uint64_t{3}, uint64_t{4}, UINT64_MAX}) {
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtNotifyGetExportKey(notify.get(), key.text.data(), ipc::kKeySize, flags));
  }
  EXPECT_TRUE(key == NotifyKey{});
  // It was not exported by any of them.
  EXPECT_EQ(allow(notify.get(), {1}), ACL_ERROR_RT_PARAM_INVALID);
}

TEST_F(XprocNotify, XPROC_08_TheKeyIsATextThatCanBeAskedForAgain) {
  const TestNotify notify;
  const TestNotify other;
  const NotifyKey key = export_notify(notify.get(), kForListed);
  EXPECT_NE(memchr(key.text.data(), 0, key.text.size()), nullptr);
  EXPECT_FALSE(key.name().empty());
  EXPECT_EQ(export_notify(notify.get(), kForListed).name(), key.name());
  EXPECT_NE(export_notify(other.get(), kForListed).name(), key.name());
  NotifyKey untouched{};
  EXPECT_FAILS(
      ACL_ERROR_RT_PARAM_INVALID,
      aclrtNotifyGetExportKey(notify.get(), untouched.text.data(), ipc::kKeySize, kForAll));
  EXPECT_TRUE(untouched == NotifyKey{});
}

TEST_F(XprocNotify, XPROC_08_AnExportKeepsWhatWasRecordedAndWaitedFor) {
  const TestNotify set;
  set.record(nullptr);
  EXPECT_SUCCESS(finish_soon(nullptr));
  (void)export_notify(set.get());
  EXPECT_TRUE(take(set.get()));
  const TestNotify awaited;
  const TestStream stream;
  awaited.wait(stream.get());
  EXPECT_TRUE(is_held(stream.get()));
  (void)export_notify(awaited.get());
  EXPECT_TRUE(is_held(stream.get()));
  awaited.record(nullptr);
  EXPECT_SUCCESS(finish_soon(stream.get()));
}

TEST_F(XprocNotify, XPROC_09_ArgumentsAreChecked) {
  const TestNotify listed;
  (void)export_notify(listed.get(), kForListed);
  int32_t id = 1;
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtNotifySetImportPid(listed.get(), &id, 0));
  EXPECT_EQ(allow(listed.get(), {0, 0}), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(allow(listed.get(), {ipc::own_id(), 0}), ACL_SUCCESS);
  const TestNotify open;
  (void)export_notify(open.get(), kForAll);
  EXPECT_EQ(allow(open.get(), {1}), ACL_ERROR_RT_NO_PERMISSION);
}

TEST_F(XprocNotify, XPROC_11_OtherServersAreNotSupported) {
  const TestNotify notify;
  aclrtServerPid server{};
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtNotifySetImportPidInterServer(notify.get(), nullptr, 1));
  for (const size_t count : {size_t{0}, size_t{1}}) {
    EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                 aclrtNotifySetImportPidInterServer(notify.get(), &server, count));
  }
}

// ---- Products ----

struct ProductCase {
  std::string product;
  std::string soc;
  uint32_t most;
  bool has_ipc_events;
  bool has_keys;
  bool has_batch_reset;
};

class XprocOnProduct : public testing::TestWithParam<ProductCase> {};
INSTANTIATE_TEST_SUITE_P(
    , XprocOnProduct,
    testing::Values(ProductCase{"a2", "Ascend910B3", 8192, true, true, true},
                    ProductCase{"a3", "Ascend910_9392", 8192, true, true, true},
                    ProductCase{"inf", "Ascend310P3", 1024, false, true, false},
                    ProductCase{"trn", "Ascend910A", 1024, false, true, false},
                    ProductCase{"200i", "Ascend310B1", 2048, false, false, false},
                    ProductCase{"950", "Ascend950PR_9599", 65535, true, true, true},
                    ProductCase{"950", "Ascend950DT_9595", 65535, false, false, true}),
    [](const auto& parameter) {
      return "product_" + parameter.param.product + "_" + parameter.param.soc;
    });

TEST_P(XprocOnProduct, XPROC_12_TheLimitIsThatOfTheProduct) {
  const ProductCase& product = GetParam();
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", product.product});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  std::vector<aclrtNotify> notifies(product.most);
  for (aclrtNotify& each : notifies) ASSERT_SUCCESS(aclrtCreateNotify(&each, 0));
  aclrtNotify more = untouched_address();
  EXPECT_FAILS(ACL_ERROR_RT_NO_NOTIFY_RESOURCE, aclrtCreateNotify(&more, 0));
  EXPECT_EQ(more, untouched_address());
  EXPECT_SUCCESS(aclrtDestroyNotify(notifies.back()));
  EXPECT_SUCCESS(aclrtCreateNotify(&notifies.back(), 0));
  EXPECT_FAILS(ACL_ERROR_RT_NO_NOTIFY_RESOURCE, aclrtCreateNotify(&more, 0));
  if (runtime::device_count() > 1) {  // each device has its own
    ASSERT_SUCCESS(aclrtSetDevice(1));
    EXPECT_SUCCESS(aclrtCreateNotify(&more, 0));
    ASSERT_SUCCESS(aclrtSetDevice(0));
  }
  EXPECT_SUCCESS(aclrtResetDeviceForce(0));
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_SUCCESS(aclrtCreateNotify(&more, 0));
}

TEST_P(XprocOnProduct, XPROC_13_WhatTheProductLacksIsRefused) {
  const ProductCase& product = GetParam();
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", product.product}, {"UNDERSTUDY_SOC", product.soc});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const auto answer = [](bool has) { return has ? ACL_SUCCESS : ACL_ERROR_RT_FEATURE_NOT_SUPPORT; };
  const auto expect = [&](bool has, const char* function, aclError code) {
    EXPECT_EQ(ipc::noted(function, code), answer(has)) << function;
  };
  const TestNotify notify;
  notify.record(nullptr);
  notify.wait(nullptr);
  EXPECT_SUCCESS(finish_soon(nullptr));
  aclrtNotify list[] = {notify.get()};
  expect(product.has_batch_reset, "aclrtNotifyBatchReset", aclrtNotifyBatchReset(list, 1));
  NotifyKey key{};
  int32_t id = ipc::own_id();
  expect(product.has_keys, "aclrtNotifyGetExportKey",
         aclrtNotifyGetExportKey(notify.get(), key.text.data(), ipc::kKeySize, kForListed));
  EXPECT_EQ(key == NotifyKey{}, !product.has_keys);
  expect(product.has_keys, "aclrtNotifySetImportPid",
         aclrtNotifySetImportPid(notify.get(), &id, 1));
  aclrtNotify imported = untouched_address();
  expect(product.has_keys, "aclrtNotifyImportByKey",
         aclrtNotifyImportByKey(&imported, key.get(), 0));
  EXPECT_EQ(imported == untouched_address(), !product.has_keys);

  aclrtEvent event = untouched_address();
  expect(product.has_ipc_events, "aclrtCreateEventExWithFlag",
         aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC));
  EXPECT_EQ(event == untouched_address(), !product.has_ipc_events);
  const TestEvent plain;
  if (!product.has_ipc_events) event = plain.get();
  aclrtIpcEventHandle handle{};
  expect(product.has_ipc_events, "aclrtIpcGetEventHandle", aclrtIpcGetEventHandle(event, &handle));
  aclrtEvent opened = untouched_address();
  expect(product.has_ipc_events, "aclrtIpcOpenEventHandle",
         aclrtIpcOpenEventHandle(handle, &opened));
}

}  // namespace
}  // namespace understudy_test::notify
