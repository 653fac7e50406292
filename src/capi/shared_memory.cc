// SPDX-License-Identifier: Apache-2.0
#include "capi/shared_memory.h"

namespace understudy::capi {

Result<void> check_link(Runtime& runtime, ShareToken token, unsigned device) {
  if (runtime.settings().product.has(Feature::kPeerAccess) ||
      !runtime.sharing().is_on_other_device(token, device)) {
    return {};
  }
  return Error::format(ErrorCode::kNotSupported,
                       "the memory is on another device than %u, and the devices of product %s do "
                       "not reach each other",
                       device, runtime.settings().product.key.data());
}

void enable_link(Runtime& runtime, ShareToken token, unsigned device) {
  const std::optional<unsigned> owner = runtime.sharing().device_of(token);
  if (owner && *owner != device) runtime.devices().set_peer_access(device, *owner, true);
}

}  // namespace understudy::capi
