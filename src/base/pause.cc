// SPDX-License-Identifier: Apache-2.0
#include "base/pause.h"

#include <thread>

#include "base/no_cancel.h"

namespace understudy {

void nap(std::chrono::microseconds time) {
  const NoCancel no_cancel;
  std::this_thread::sleep_for(time);
}

}  // namespace understudy
