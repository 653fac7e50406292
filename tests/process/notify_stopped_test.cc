// SPDX-License-Identifier: Apache-2.0
//
// Notifies of a process that is stopped: its importers record and wait as before, a stream that
// waits for it goes on when it does, and an import that has to ask it answers within 5 s.
// Covers: XPROC-06, XPROC-10.
#include "process/stopped_process.h"
#include "rules/notify_objects.h"

namespace understudy_test::notify {
namespace {

US_PEER(NotifyStoppedSide) { serve_notify(channel); }

// Stops a process until the end of the scope.
class Standstill {
 public:
  explicit Standstill(NotifySide& side) : side_(side) {
    side_.peer().signal(SIGSTOP);
    int status = 0;
    EXPECT_EQ(waitpid(side_.peer().pid(), &status, WUNTRACED), side_.peer().pid());
    EXPECT_TRUE(WIFSTOPPED(status));
  }
  ~Standstill() { side_.peer().signal(SIGCONT); }
  Standstill(const Standstill&) = delete;
  Standstill& operator=(const Standstill&) = delete;

 private:
  NotifySide& side_;
};

using NotifyStopped = DeviceTest;

TEST_F(NotifyStopped, XPROC_06_ImportersOfAStoppedExporterGoOn) {
  NotifySide exporter(NotifyStoppedSide);
  const NotifyKey key = exporter.create();
  NotifySide importer(NotifyStoppedSide);
  ASSERT_EQ(importer.import(key), ACL_SUCCESS);
  aclrtNotify imported = nullptr;
  ASSERT_SUCCESS(aclrtNotifyImportByKey(&imported, key.get(), 0));
  exporter.wait();
  EXPECT_TRUE(exporter.is_held());
  {
    const Standstill standstill(exporter);
    importer.wait();
    for (bool served = false; !served; served = !importer.is_held()) {
      EXPECT_SUCCESS(aclrtRecordNotify(imported, nullptr));
      EXPECT_SUCCESS(finish_soon(nullptr));
    }
    importer.destroy();
    ASSERT_EQ(importer.import(key), ACL_SUCCESS);  // open to all: no need to ask
    importer.record_now();
  }
  // What was recorded while it stood still is there.
  EXPECT_EQ(exporter.drain(), ACL_SUCCESS);
  EXPECT_SUCCESS(aclrtDestroyNotify(imported));
}

TEST_F(NotifyStopped, XPROC_10_AnImportThatHasToAskAnswersInTime) {
  NotifySide exporter(NotifyStoppedSide);
  const NotifyKey key = exporter.create(kForListed);
  EXPECT_EQ(exporter.allow(ipc::own_id()), ACL_SUCCESS);
  aclrtNotify imported = untouched_address();
  {
    const Standstill standstill(exporter);
    const share::Stopwatch watch;
    EXPECT_FAILS(ACL_ERROR_RT_IPC_ERROR, aclrtNotifyImportByKey(&imported, key.get(), 0));
    EXPECT_LT(watch.time(), share::kLongestCall);
    EXPECT_EQ(imported, untouched_address());
  }
  EXPECT_SUCCESS(aclrtNotifyImportByKey(&imported, key.get(), 0));
  EXPECT_SUCCESS(aclrtDestroyNotify(imported));
}

}  // namespace
}  // namespace understudy_test::notify
