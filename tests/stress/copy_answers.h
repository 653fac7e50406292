// SPDX-License-Identifier: Apache-2.0
//
// What copies answer that race with the end of the memory they copy to or from.
#pragma once

#include <atomic>
#include <thread>

#include "acl/acl.h"

namespace understudy_test {

// Counts what copies answer. `done` grows whatever the answer was.
struct CopyAnswers {
  std::atomic<int> done{0};
  std::atomic<int> unexpected{0};
  std::atomic<aclError> last_unexpected{ACL_SUCCESS};

  void note(aclError code) {
    if (code != ACL_SUCCESS && code != ACL_ERROR_RT_PARAM_INVALID) {
      last_unexpected = code;
      ++unexpected;
    }
    ++done;
  }
};

// Lets copies go on until a few more are done, so that every round meets some.
inline void wait_for_copies(const CopyAnswers& answers, int more) {
  const int goal = answers.done.load() + more;
  while (answers.done.load() < goal) std::this_thread::yield();
}

}  // namespace understudy_test
