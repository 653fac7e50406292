// SPDX-License-Identifier: Apache-2.0
#include "base/pause.h"

#include <chrono>
#include <thread>

#include "base/no_cancel.h"

namespace understudy {

void nap() {
  const NoCancel no_cancel;
  std::this_thread::sleep_for(std::chrono::microseconds(20));
}

}  // namespace understudy
