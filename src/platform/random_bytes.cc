// SPDX-License-Identifier: Apache-2.0
#include "platform/random_bytes.h"

#include <sys/random.h>

#include "base/invariant.h"

namespace understudy::platform {

uint64_t random_number() {
  uint64_t number = 0;
  const ssize_t got = getrandom(&number, sizeof number, 0);
  if (got != sizeof number) stop_with_sentence(__FILE__, __LINE__, "the host has no random bytes");
  return number;
}

}  // namespace understudy::platform
