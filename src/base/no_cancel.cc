// SPDX-License-Identifier: Apache-2.0
#include "base/no_cancel.h"

#include <pthread.h>

namespace understudy {

NoCancel::NoCancel() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
NoCancel::~NoCancel() { pthread_setcancelstate(before_, nullptr); }

}  // namespace understudy
