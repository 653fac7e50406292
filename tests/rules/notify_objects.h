// SPDX-License-Identifier: Apache-2.0
//
// What the tests of notifies share: notifies that end with their scope, and a process with one
// stream and one notify of its own or of another process, which does as it is told:
//
//   US_PEER(NotifyPeer) { serve_notify(channel); }
//
//   NotifySide exporter(NotifyPeer);
//   const NotifyKey key = exporter.create();
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rules/ipc_objects.h"
#include "rules/stream_objects.h"
#include "rules/stream_tasks.h"
#include "support/peer.h"

namespace understudy_test::notify {

using NotifyKey = ipc::Key;
inline constexpr uint64_t kForListed = ACL_RT_NOTIFY_EXPORT_FLAG_DEFAULT;
inline constexpr uint64_t kForAll = ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION;
inline constexpr int32_t kPatience = 60'000;  // milliseconds, used up by a mistake only

class TestNotify {
 public:
  explicit TestNotify(uint64_t flag = ACL_NOTIFY_DEFAULT) {
    EXPECT_SUCCESS(aclrtCreateNotify(&notify_, flag));
    EXPECT_NE(notify_, nullptr);
  }
  ~TestNotify() {
    if (notify_ != nullptr) {
      EXPECT_SUCCESS(aclrtDestroyNotify(notify_));
    }
  }
  TestNotify(const TestNotify&) = delete;
  TestNotify& operator=(const TestNotify&) = delete;

  aclrtNotify get() const { return notify_; }
  aclrtNotify release() { return std::exchange(notify_, nullptr); }
  void record(aclrtStream stream) const { EXPECT_SUCCESS(aclrtRecordNotify(notify_, stream)); }
  void wait(aclrtStream stream, uint32_t seconds = 0) const {
    EXPECT_SUCCESS(aclrtWaitAndResetNotify(notify_, stream, seconds));
  }

 private:
  aclrtNotify notify_ = nullptr;
};

inline aclError finish_soon(aclrtStream stream) {
  return aclrtSynchronizeStreamWithTimeout(stream, kPatience);
}
// Whether the stream stands: it does not get to its end in a moment.
inline bool is_held(aclrtStream stream) {
  return aclrtSynchronizeStreamWithTimeout(stream, 5) == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT;
}
// Whether the notify is set, which ends it: a wait of a stream of its own goes on or not.
inline bool take(aclrtNotify notify) {
  const TestStream stream;
  EXPECT_SUCCESS(aclrtWaitAndResetNotify(notify, stream.get(), 0));
  const bool is_set = !is_held(stream.get());
  if (!is_set) {
    EXPECT_SUCCESS(aclrtStreamAbort(stream.get()));
  }
  return is_set;
}

inline NotifyKey export_notify(aclrtNotify notify, uint64_t flags = kForAll) {
  NotifyKey key{};
  key.text.fill('~');
  EXPECT_SUCCESS(aclrtNotifyGetExportKey(notify, key.text.data(), key.text.size(), flags));
  return key;
}

inline aclError allow(aclrtNotify notify, std::vector<int32_t> ids) {
  (void)recent_error();
  return ipc::noted("aclrtNotifySetImportPid",
                    aclrtNotifySetImportPid(notify, ids.data(), ids.size()));
}

// ---- The other process ----

enum class Step : uint8_t {
  kId,
  kCreate,
  kExport,
  kAllow,
  kImport,
  kRecord,
  kWait,
  kIsHeld,
  kDrain,
  kReset,
  kDestroy,
  kAbort,
};

struct StepRequest {
  Step step = Step::kId;
  NotifyKey key{};
  uint64_t flags = 0;
  uint32_t seconds = 0;
  int32_t id = 0;
};

struct StepAnswer {
  aclError code = ACL_SUCCESS;
  NotifyKey key{};
  int32_t id = 0;
  bool yes = false;
};

class NotifyServer {
 public:
  ~NotifyServer() {
    EXPECT_SUCCESS(aclrtStreamAbort(stream_.get()));
    if (notify_ != nullptr) {
      EXPECT_SUCCESS(aclrtDestroyNotify(notify_));
    }
  }

  StepAnswer obey(const StepRequest& request) {
    StepAnswer answer;
    (void)recent_error();
    switch (request.step) {
      case Step::kId:
        answer.id = ipc::own_id();
        break;
      case Step::kCreate:
        answer.code = aclrtCreateNotify(&notify_, 0);
        break;
      case Step::kExport:
        answer.code = ipc::noted(
            "aclrtNotifyGetExportKey",
            aclrtNotifyGetExportKey(notify_, answer.key.text.data(), ipc::kKeySize, request.flags));
        break;
      case Step::kAllow:
        answer.code = notify::allow(notify_, {request.id});
        break;
      case Step::kImport:
        answer.code =
            ipc::noted("aclrtNotifyImportByKey",
                       aclrtNotifyImportByKey(&notify_, request.key.get(), request.flags));
        break;
      case Step::kRecord:
        answer.code = aclrtRecordNotify(notify_, stream_.get());
        break;
      case Step::kWait:
        answer.code = aclrtWaitAndResetNotify(notify_, stream_.get(), request.seconds);
        break;
      case Step::kIsHeld:
        answer.yes = is_held(stream_.get());
        break;
      case Step::kDrain:
        answer.code = finish_soon(stream_.get());
        break;
      case Step::kReset:
        answer.code = aclrtNotifyBatchReset(&notify_, 1);
        break;
      case Step::kDestroy:
        answer.code = aclrtDestroyNotify(std::exchange(notify_, nullptr));
        break;
      case Step::kAbort:
        answer.code = aclrtStreamAbort(stream_.get());
        break;
    }
    return answer;
  }

 private:
  TestStream stream_;
  aclrtNotify notify_ = nullptr;
};

inline void serve_notify(Channel& channel) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  {
    NotifyServer server;
    for (StepRequest request; channel.receive_bytes(&request, sizeof request);) {
      channel.send(server.obey(request));
    }
  }
  EXPECT_SUCCESS(aclrtResetDeviceForce(0));
}

// The process, as the test sees it.
class NotifySide {
 public:
  explicit NotifySide(PeerBody body) : peer_(body) {}

  StepAnswer ask(const StepRequest& request) {
    peer_.send(request);
    return peer_.receive<StepAnswer>();
  }
  NotifyKey create(uint64_t flags = kForAll) {
    expect(Step::kCreate);
    const StepAnswer answer = ask({.step = Step::kExport, .flags = flags});
    EXPECT_EQ(answer.code, ACL_SUCCESS);
    return answer.key;
  }
  int32_t id() { return ask({.step = Step::kId}).id; }
  aclError allow(int32_t id) { return ask({.step = Step::kAllow, .id = id}).code; }
  aclError import(const NotifyKey& key, uint64_t flags = 0) {
    return ask({.step = Step::kImport, .key = key, .flags = flags}).code;
  }
  void record() { expect(Step::kRecord); }
  void wait(uint32_t seconds = 0) {
    EXPECT_EQ(ask({.step = Step::kWait, .seconds = seconds}).code, ACL_SUCCESS);
  }
  bool is_held() { return ask({.step = Step::kIsHeld}).yes; }
  aclError drain() { return ask({.step = Step::kDrain}).code; }
  void reset() { expect(Step::kReset); }
  void destroy() { expect(Step::kDestroy); }
  void abort() { expect(Step::kAbort); }
  // Records and waits until that is done.
  void record_now() {
    record();
    EXPECT_EQ(drain(), ACL_SUCCESS);
  }
  Peer& peer() { return peer_; }

 private:
  void expect(Step step) { EXPECT_EQ(ask({.step = step}).code, ACL_SUCCESS); }

  Peer peer_;
};

}  // namespace understudy_test::notify
