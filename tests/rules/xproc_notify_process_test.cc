// SPDX-License-Identifier: Apache-2.0
//
// Notifies between processes: keys and who may use them, records and waits across, and what is left
// when one side destroys its part or ends.
// Covers: XPROC-05, XPROC-06, XPROC-07, XPROC-08, XPROC-09, XPROC-10, XPROC-14.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "rules/notify_objects.h"
#include "rules/runtime_support.h"
#include "support/fork_safety.h"

namespace understudy_test::notify {
namespace {

US_PEER(XprocNotifySide) { serve_notify(channel); }

using XprocNotifyKey = DeviceTest;

// A notify of another process, in this one.
class ImportedNotify {
 public:
  explicit ImportedNotify(const NotifyKey& key, uint64_t flags = 0) {
    EXPECT_SUCCESS(aclrtNotifyImportByKey(&notify_, key.get(), flags));
    EXPECT_NE(notify_, nullptr);
  }
  ~ImportedNotify() {
    if (notify_ != nullptr) destroy();
  }
  ImportedNotify(const ImportedNotify&) = delete;
  ImportedNotify& operator=(const ImportedNotify&) = delete;

  aclrtNotify get() const { return notify_; }
  void destroy() { EXPECT_SUCCESS(aclrtDestroyNotify(std::exchange(notify_, nullptr))); }
  void record() const {
    EXPECT_SUCCESS(aclrtRecordNotify(notify_, nullptr));
    EXPECT_SUCCESS(finish_soon(nullptr));
  }

 private:
  aclrtNotify notify_ = nullptr;
};

void expect_import_refused(const char* key, aclError code) {
  aclrtNotify notify = untouched_address();
  EXPECT_FAILS(code, aclrtNotifyImportByKey(&notify, key, 0));
  EXPECT_EQ(notify, untouched_address());
}

// ---- Keys ----

TEST_F(XprocNotifyKey, XPROC_10_ArgumentsAreChecked) {
  NotifySide exporter(XprocNotifySide);
  const NotifyKey key = exporter.create();
  aclrtNotify notify = untouched_address();
  const auto refuse = [&] {
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtNotifyImportByKey(nullptr, key.get(), 0));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtNotifyImportByKey(&notify, nullptr, 9));
    for (const uint64_t flags : {uint64_t{1}, uint64_t{3}, uint64_t{4}, UINT64_MAX}) {
      EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtNotifyImportByKey(&notify, key.get(), flags));
    }
  };
  refuse();
  on_bare_thread([&] {
    refuse();
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtNotifyImportByKey(&notify, key.get(), 0));
  });
  EXPECT_EQ(notify, untouched_address());
}

TEST_F(XprocNotifyKey, XPROC_10_UnknownKeysAreRefused) {
  NotifySide exporter(XprocNotifySide);
  const std::string good = exporter.create().name();
  for (const std::string& key : {std::string(), std::string("x"), std::string(200, 'u'),
                                 good.substr(1), good + "0", good.substr(0, good.size() - 1)}) {
    SCOPED_TRACE(key);
    expect_import_refused(key.c_str(), ACL_ERROR_RT_INVALID_HANDLE);
  }
  for (size_t i = 0; i < good.size(); ++i) {
    SCOPED_TRACE(i);
    std::string damaged = good;
    damaged[i] = damaged[i] == '0' ? '1' : '0';
    expect_import_refused(damaged.c_str(), ACL_ERROR_RT_INVALID_HANDLE);
  }
  const ipc::ExportedBlock memory(kMiB);
  expect_import_refused(memory.key().get(), ACL_ERROR_RT_INVALID_HANDLE);
  void* data = untouched_address();
  EXPECT_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtIpcMemImportByKey(&data, good.c_str(), 0));
  EXPECT_EQ(data, untouched_address());
}

TEST_F(XprocNotifyKey, XPROC_08_XPROC_09_OnlyListedProcessesImport) {
  const TestNotify notify;
  const NotifyKey key = export_notify(notify.get(), kForListed);
  NotifySide first(XprocNotifySide);
  NotifySide second(XprocNotifySide);
  EXPECT_EQ(first.import(key), ACL_ERROR_RT_NO_PERMISSION);
  EXPECT_EQ(allow(notify.get(), {first.id()}), ACL_SUCCESS);
  EXPECT_EQ(second.import(key), ACL_ERROR_RT_NO_PERMISSION);
  EXPECT_EQ(first.import(key), ACL_SUCCESS);
  // Further calls add to the list.
  EXPECT_EQ(allow(notify.get(), {second.id()}), ACL_SUCCESS);
  EXPECT_EQ(second.import(key), ACL_SUCCESS);
  NotifySide third(XprocNotifySide);
  EXPECT_EQ(third.import(key), ACL_ERROR_RT_NO_PERMISSION);
  first.record_now();
  EXPECT_TRUE(take(notify.get()));
}

TEST_F(XprocNotifyKey, XPROC_08_WithoutAListEveryProcessImports) {
  const TestNotify notify;
  const NotifyKey key = export_notify(notify.get(), kForAll);
  NotifySide first(XprocNotifySide);
  NotifySide second(XprocNotifySide);
  EXPECT_EQ(first.import(key), ACL_SUCCESS);
  EXPECT_EQ(second.import(key), ACL_SUCCESS);
}

TEST_F(XprocNotifyKey, XPROC_09_OnlyTheExporterListsAndExports) {
  NotifySide exporter(XprocNotifySide);
  const NotifyKey key = exporter.create(kForListed);
  EXPECT_EQ(exporter.allow(ipc::own_id()), ACL_SUCCESS);
  const ImportedNotify imported(key);
  EXPECT_EQ(allow(imported.get(), {1}), ACL_ERROR_RT_PARAM_INVALID);
  NotifyKey own{};
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtNotifyGetExportKey(imported.get(), own.text.data(), ipc::kKeySize, kForAll));
  EXPECT_TRUE(own == NotifyKey{});
}

TEST_F(XprocNotifyKey, XPROC_10_TheExportersOwnImportIsTheSameNotify) {
  const TestNotify notify;
  const ImportedNotify imported(export_notify(notify.get(), kForListed));
  EXPECT_NE(imported.get(), notify.get());
  notify.record(nullptr);
  EXPECT_SUCCESS(finish_soon(nullptr));
  EXPECT_TRUE(take(imported.get()));
  EXPECT_FALSE(take(notify.get()));
  const TestStream stream;
  notify.wait(stream.get());
  EXPECT_TRUE(is_held(stream.get()));
  imported.record();
  EXPECT_SUCCESS(finish_soon(stream.get()));
}

TEST_F(XprocNotifyKey, XPROC_10_EachImportIsDestroyedOnItsOwn) {
  NotifySide exporter(XprocNotifySide);
  const NotifyKey key = exporter.create();
  ImportedNotify first(key);
  const ImportedNotify second(key);
  EXPECT_NE(first.get(), second.get());
  uint32_t ids[2] = {};
  EXPECT_SUCCESS(aclrtGetNotifyId(first.get(), &ids[0]));
  EXPECT_SUCCESS(aclrtGetNotifyId(second.get(), &ids[1]));
  first.destroy();
  exporter.wait();
  second.record();
  EXPECT_EQ(exporter.drain(), ACL_SUCCESS);
}

TEST_F(XprocNotifyKey, XPROC_10_TheFlagEnablesPeerAccess) {
  for (const uint64_t flags :
       {ACL_RT_NOTIFY_IMPORT_FLAG_DEFAULT, ACL_RT_NOTIFY_IMPORT_FLAG_ENABLE_PEER_ACCESS}) {
    NotifySide exporter(XprocNotifySide);  // on device 0
    const NotifyKey key = exporter.create();
    ASSERT_SUCCESS(aclrtSetDevice(1));
    {
      const ImportedNotify imported(key, flags);
      int32_t status = -1;
      EXPECT_SUCCESS(aclrtDevicePeerAccessStatus(1, 0, &status));
      EXPECT_EQ(status, flags == 0 ? 0 : 1);
    }
    EXPECT_SUCCESS(aclrtResetDeviceForce(1));
    ASSERT_SUCCESS(aclrtSetDevice(0));
  }
}

TEST_F(XprocNotifyKey, XPROC_10_AnImportEndsWithItsDevice) {
  NotifySide exporter(XprocNotifySide);
  const NotifyKey key = exporter.create();
  aclrtNotify imported = nullptr;
  ASSERT_SUCCESS(aclrtNotifyImportByKey(&imported, key.get(), 0));
  EXPECT_SUCCESS(aclrtResetDeviceForce(0));
  ASSERT_SUCCESS(aclrtSetDevice(0));
  uint32_t id = 77;
  EXPECT_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtGetNotifyId(imported, &id));
  const ImportedNotify again(key);
  exporter.wait();
  again.record();
  EXPECT_EQ(exporter.drain(), ACL_SUCCESS);
}

// ---- Records and waits ----

TEST_F(XprocNotifyKey, XPROC_05_XPROC_06_RecordsWakeStreamsOfTheOtherProcess) {
  NotifySide exporter(XprocNotifySide);
  NotifySide importer(XprocNotifySide);
  ASSERT_EQ(importer.import(exporter.create()), ACL_SUCCESS);
  NotifySide* sides[] = {&exporter, &importer};
  for (int round = 0; round < 20; ++round) {
    NotifySide& waiting = *sides[round % 2];
    NotifySide& recording = *sides[1 - round % 2];
    waiting.wait();
    EXPECT_TRUE(waiting.is_held());
    recording.record_now();
    EXPECT_EQ(waiting.drain(), ACL_SUCCESS);
    // What came first is kept.
    recording.record_now();
    waiting.wait();
    EXPECT_EQ(waiting.drain(), ACL_SUCCESS);
  }
  exporter.wait(1);
  EXPECT_EQ(exporter.drain(), ACL_ERROR_RT_TASK_TIMEOUT);
}

TEST_F(XprocNotifyKey, XPROC_06_OfTheWaitsOfAllProcessesOneIsServed) {
  const TestNotify notify;
  const NotifyKey key = export_notify(notify.get());
  NotifySide first(XprocNotifySide);
  NotifySide second(XprocNotifySide);
  for (NotifySide* each : {&first, &second}) {
    ASSERT_EQ(each->import(key), ACL_SUCCESS);
    each->wait();
    EXPECT_TRUE(each->is_held());
  }
  notify.record(nullptr);
  EXPECT_SUCCESS(finish_soon(nullptr));
  bool first_held = true;
  bool second_held = true;
  while (first_held && second_held) {
    first_held = first.is_held();
    second_held = second.is_held();
  }
  EXPECT_TRUE(first_held || second_held);
  EXPECT_FALSE(take(notify.get()));
  (first_held ? first : second).abort();
}

TEST_F(XprocNotifyKey, XPROC_07_AResetIsSeenByAllProcesses) {
  NotifySide exporter(XprocNotifySide);
  const ImportedNotify imported(exporter.create());
  imported.record();
  exporter.reset();
  EXPECT_FALSE(take(imported.get()));
  exporter.record_now();
  aclrtNotify list[] = {imported.get()};
  EXPECT_SUCCESS(aclrtNotifyBatchReset(list, 1));
  exporter.wait();
  EXPECT_TRUE(exporter.is_held());
}

// ---- Ends ----

TEST_F(XprocNotifyKey, XPROC_14_ImportersGoOnWhenTheExporterHasDestroyedIt) {
  NotifySide exporter(XprocNotifySide);
  const NotifyKey key = exporter.create();
  NotifySide first(XprocNotifySide);
  NotifySide second(XprocNotifySide);
  ASSERT_EQ(first.import(key), ACL_SUCCESS);
  ASSERT_EQ(second.import(key), ACL_SUCCESS);
  exporter.record_now();
  exporter.destroy();
  first.wait();
  EXPECT_EQ(first.drain(), ACL_SUCCESS);
  first.wait();
  second.record_now();
  EXPECT_EQ(first.drain(), ACL_SUCCESS);
  expect_import_refused(key.get(), ACL_ERROR_RT_INVALID_HANDLE);
  first.destroy();
  second.record_now();
  second.wait();
  EXPECT_EQ(second.drain(), ACL_SUCCESS);
}

TEST_F(XprocNotifyKey, XPROC_14_TheExporterGoesOnWhenImportersHaveDestroyedIt) {
  const TestNotify notify;
  const NotifyKey key = export_notify(notify.get());
  NotifySide importer(XprocNotifySide);
  ASSERT_EQ(importer.import(key), ACL_SUCCESS);
  importer.record_now();
  importer.destroy();
  EXPECT_TRUE(take(notify.get()));
  ASSERT_EQ(importer.import(key), ACL_SUCCESS);
  importer.wait();
  EXPECT_TRUE(importer.is_held());
  notify.record(nullptr);
  EXPECT_EQ(importer.drain(), ACL_SUCCESS);
}

TEST_F(XprocNotifyKey, XPROC_14_ProcessesThatEndHaveDestroyedTheirPart) {
  for (const bool by_signal : {false, true}) {
    SCOPED_TRACE(by_signal);
    const auto end = [&](NotifySide& side) {
      if (by_signal) {
        side.peer().kill();
      } else {
        side.peer().finish();
      }
    };
    std::optional<NotifySide> exporter(std::in_place, XprocNotifySide);
    const NotifyKey key = exporter->create();
    const ImportedNotify imported(key);
    NotifySide importer(XprocNotifySide);
    ASSERT_EQ(importer.import(key), ACL_SUCCESS);
    exporter->record_now();
    end(*exporter);
    expect_import_refused(key.get(), ACL_ERROR_RT_INVALID_HANDLE);
    EXPECT_TRUE(take(imported.get()));
    importer.wait();
    EXPECT_TRUE(importer.is_held());
    imported.record();
    EXPECT_EQ(importer.drain(), ACL_SUCCESS);
    end(importer);
    imported.record();
    EXPECT_TRUE(take(imported.get()));
  }
}

TEST_F(XprocNotifyKey, XPROC_14_AChildOfForkHasNoneOfThem) {
  US_SKIP_UNLESS_THREADS_MAY_FORK();
  const TestNotify notify;
  const NotifyKey key = export_notify(notify.get());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    uint32_t id = 77;
    aclrtNotify imported = nullptr;
    const bool is_right = aclrtGetNotifyId(notify.get(), &id) == ACL_ERROR_RT_INVALID_HANDLE &&
                          aclrtDestroyNotify(notify.get()) == ACL_ERROR_RT_INVALID_HANDLE &&
                          aclrtSetDevice(0) == ACL_SUCCESS &&
                          aclrtNotifyImportByKey(&imported, key.get(), 0) == ACL_SUCCESS &&
                          aclrtRecordNotify(imported, nullptr) == ACL_SUCCESS &&
                          aclrtSynchronizeStream(nullptr) == ACL_SUCCESS;
    _exit(is_right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(take(notify.get()));
}

}  // namespace
}  // namespace understudy_test::notify
