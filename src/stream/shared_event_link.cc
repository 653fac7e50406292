// SPDX-License-Identifier: Apache-2.0
#include "stream/shared_event_link.h"

namespace understudy {

bool SharedEventLink::wait(uint64_t record, Deadline deadline) const {
  while (state(record) == RecordState::kPending) {
    if (has_passed(deadline)) return false;
    table().sleep(number(), record, deadline);
  }
  return true;
}

}  // namespace understudy
