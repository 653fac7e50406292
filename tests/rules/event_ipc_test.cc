// SPDX-License-Identifier: Apache-2.0
//
// What IPC events have and lack inside one process; sharing them is another group (XPROC).
// Covers: EVENT-04, EVENT-09, EVENT-13.
#include "rules/callback_objects.h"

namespace understudy_test::callbacks {
namespace {

class EventIpc : public DeviceTest {};

TEST_F(EventIpc, EVENT_04_IpcAloneIsAccepted) {
  const TestEvent event(EventFamily::kEx, ACL_EVENT_IPC);
  EXPECT_NE(event.get(), nullptr);
}

TEST_F(EventIpc, EVENT_09_AnIpcEventCannotBeReset) {
  const TestEvent event(EventFamily::kEx, ACL_EVENT_IPC);
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), nullptr));
  EXPECT_SUCCESS(reach(event.get()));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtResetEvent(event.get(), nullptr));
  EXPECT_SUCCESS(finish(nullptr));
  EXPECT_EQ(event_status(event.get()), ACL_EVENT_RECORDED_STATUS_COMPLETE);
}

TEST_F(EventIpc, EVENT_13_TheOldQueriesDoNotKnowIpcEvents) {
  const TestEvent event(EventFamily::kEx, ACL_EVENT_IPC);
  auto status = ACL_EVENT_STATUS_RESERVED;
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtQueryEvent(event.get(), &status));
  EXPECT_EQ(status, ACL_EVENT_STATUS_RESERVED);
  auto wait = ACL_EVENT_WAIT_STATUS_RESERVED;
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtQueryEventWaitStatus(event.get(), &wait));
  EXPECT_EQ(wait, ACL_EVENT_WAIT_STATUS_RESERVED);
}

}  // namespace
}  // namespace understudy_test::callbacks
