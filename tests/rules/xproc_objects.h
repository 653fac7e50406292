// SPDX-License-Identifier: Apache-2.0
//
// A process with one stream and one event of its own or of another process, for the tests of
// events between processes. It does as it is told:
//
//   US_PEER(XprocEventSide) { serve_event(channel); }
//
//   EventSide creator(XprocEventSide);
//   const aclrtIpcEventHandle handle = creator.create();
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "rules/ipc_objects.h"
#include "rules/stream_objects.h"
#include "support/peer.h"

namespace understudy_test::xproc {

inline constexpr int32_t kEventPatience = 30'000;  // milliseconds, used up by a mistake only

enum class Step : uint8_t {
  kCreate,
  kOpen,
  kHold,
  kLetGo,
  kRecord,
  kWait,
  kIsHeld,
  kDrain,
  kQuery,
  kSynchronize,
  kDestroy,
  kSetShared,
};

struct StepRequest {
  Step step = Step::kCreate;
  aclrtIpcEventHandle handle{};
  ipc::Key key{};
  int32_t timeout = kEventPatience;
};

struct StepAnswer {
  aclError code = ACL_SUCCESS;
  aclrtIpcEventHandle handle{};
  aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
  bool yes = false;
};

class EventServer {
 public:
  ~EventServer() {
    gate_.reset();
    EXPECT_NE(finish(stream_.get()), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    if (event_ != nullptr) {
      EXPECT_SUCCESS(aclrtDestroyEvent(event_));
    }
  }

  StepAnswer obey(const StepRequest& request) {
    StepAnswer answer;
    (void)recent_error();
    switch (request.step) {
      case Step::kCreate:
        EXPECT_SUCCESS(aclrtCreateEventExWithFlag(&event_, ACL_EVENT_IPC));
        answer.code = aclrtIpcGetEventHandle(event_, &answer.handle);
        break;
      case Step::kOpen:
        answer.code =
            ipc::noted("aclrtIpcOpenEventHandle", aclrtIpcOpenEventHandle(request.handle, &event_));
        break;
      case Step::kHold:
        gate_.emplace(stream_.get());
        break;
      case Step::kLetGo:
        gate_.reset();
        break;
      case Step::kRecord:
        answer.code = aclrtRecordEvent(event_, stream_.get());
        break;
      case Step::kWait:
        answer.code = aclrtStreamWaitEvent(stream_.get(), event_);
        break;
      case Step::kIsHeld:
        answer.yes =
            aclrtSynchronizeStreamWithTimeout(stream_.get(), 5) == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT;
        break;
      case Step::kDrain:
        answer.code = aclrtSynchronizeStreamWithTimeout(stream_.get(), request.timeout);
        break;
      case Step::kQuery:
        answer.code = aclrtQueryEventStatus(event_, &answer.status);
        break;
      case Step::kSynchronize:
        answer.code = aclrtSynchronizeEventWithTimeout(event_, request.timeout);
        break;
      case Step::kDestroy:
        answer.code = aclrtDestroyEvent(std::exchange(event_, nullptr));
        break;
      case Step::kSetShared:
        import_.emplace(request.key);
        answer.code = aclrtMemsetAsync(import_->data(), kMiB, 0x5A, kMiB, stream_.get());
        break;
    }
    return answer;
  }

 private:
  std::optional<ipc::Import> import_;
  TestStream stream_;
  std::optional<Gate> gate_;
  aclrtEvent event_ = nullptr;
};

inline void serve_event(Channel& channel) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  {
    EventServer server;
    for (StepRequest request; channel.receive_bytes(&request, sizeof request);) {
      channel.send(server.obey(request));
    }
  }
  EXPECT_SUCCESS(aclrtResetDeviceForce(0));
}

// The process, as the test sees it.
class EventSide {
 public:
  explicit EventSide(PeerBody body) : peer_(body) {}

  StepAnswer ask(const StepRequest& request) {
    peer_.send(request);
    return peer_.receive<StepAnswer>();
  }
  aclrtIpcEventHandle create() {
    const StepAnswer answer = ask({.step = Step::kCreate});
    EXPECT_EQ(answer.code, ACL_SUCCESS);
    return answer.handle;
  }
  aclError open(const aclrtIpcEventHandle& handle) {
    return ask({.step = Step::kOpen, .handle = handle}).code;
  }
  // Nothing queued from now on runs before let_go().
  void hold() { ask({.step = Step::kHold}); }
  void let_go() { ask({.step = Step::kLetGo}); }
  void record() { EXPECT_EQ(ask({.step = Step::kRecord}).code, ACL_SUCCESS); }
  void wait() { EXPECT_EQ(ask({.step = Step::kWait}).code, ACL_SUCCESS); }
  bool is_held() { return ask({.step = Step::kIsHeld}).yes; }
  aclError drain() { return ask({.step = Step::kDrain}).code; }
  bool is_complete() {
    const StepAnswer answer = ask({.step = Step::kQuery});
    EXPECT_EQ(answer.code, ACL_SUCCESS);
    return answer.status == ACL_EVENT_RECORDED_STATUS_COMPLETE;
  }
  aclError synchronize(int32_t timeout = kEventPatience) {
    return ask({.step = Step::kSynchronize, .timeout = timeout}).code;
  }
  aclError destroy() { return ask({.step = Step::kDestroy}).code; }
  Peer& peer() { return peer_; }

 private:
  Peer peer_;
};

}  // namespace understudy_test::xproc
