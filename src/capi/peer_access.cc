// SPDX-License-Identifier: Apache-2.0
//
// Which device may reach which. Rules: PEER, VPEER, DEV-32.
#include "acl/acl_rt.h"
#include "capi/call.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

Result<void> change_peer_access(int32_t peer_id, bool enabled) {
  US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kPeerAccess));
  US_TRY_ASSIGN(const ContextReference context, runtime->current_context());
  if (peer_id == static_cast<int32_t>(context.device())) {
    return invalid_argument("peerDeviceId is %d, the current device itself", peer_id);
  }
  US_TRY_ASSIGN(const unsigned peer, runtime->devices().check(peer_id, "peerDeviceId"));
  runtime->devices().set_peer_access(context.device(), peer, enabled);
  return {};
}

}  // namespace

aclError aclrtDeviceCanAccessPeer(int32_t* canAccessPeer, int32_t deviceId, int32_t peerDeviceId) {
  return guarded(US_CALL(out(canAccessPeer), deviceId, peerDeviceId), [&]() -> Result<void> {
    if (deviceId == peerDeviceId) {
      return invalid_argument("deviceId and peerDeviceId are both %d", deviceId);
    }
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kPeerAccess));
    if (canAccessPeer == nullptr) {
      return Error::format(ErrorCode::kInvalidParam, "canAccessPeer is NULL");
    }
    US_TRY(runtime->devices().check(deviceId, "deviceId"));
    US_TRY(runtime->devices().check(peerDeviceId, "peerDeviceId"));
    *canAccessPeer = 1;
    return {};
  });
}

aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags) {
  return guarded(US_CALL(peerDeviceId, flags), [&]() -> Result<void> {
    if (flags != 0) {
      return Error::format(ErrorCode::kFlagsNotSupported, "flags is %u and must be 0", flags);
    }
    return change_peer_access(peerDeviceId, true);
  });
}

aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId) {
  return guarded(US_CALL(peerDeviceId), [&] { return change_peer_access(peerDeviceId, false); });
}

aclError aclrtDevicePeerAccessStatus(int32_t deviceId, int32_t peerDeviceId, int32_t* status) {
  return guarded(US_CALL(deviceId, peerDeviceId, out(status)), [&]() -> Result<void> {
    US_TRY(require_pointer(status, "status"));
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kPeerStatus));
    US_TRY_ASSIGN(const unsigned device,
                  runtime->devices().check(deviceId, "deviceId", ErrorCode::kInvalidParam));
    US_TRY_ASSIGN(const unsigned peer,
                  runtime->devices().check(peerDeviceId, "peerDeviceId", ErrorCode::kInvalidParam));
    *status = runtime->devices().has_peer_access(device, peer) ? 1 : 0;
    return {};
  });
}
