// SPDX-License-Identifier: Apache-2.0
#include "stream/stream.h"

#include <cinttypes>

namespace understudy {

uint64_t StreamReference::handle() const {
  return HandleParts{HandleTag::kStream, SlotState::generation(state), stream->index}.pack();
}

Error not_a_live_stream(uint64_t handle) {
  return Error::format(ErrorCode::kInvalidHandle, "0x%" PRIx64 " is not a live stream", handle)
      .about(handle);
}

}  // namespace understudy
