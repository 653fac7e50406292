// SPDX-License-Identifier: Apache-2.0
//
// The listener of the process: which function it is, and what it is told.
#include "capi/error_listener.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "acl/acl_understudy.h"
#include "base/no_cancel.h"
#include "capi/call.h"
#include "runtime/error_listener.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

void tell(aclUnderstudyFailure failure, const Error& error) noexcept {
  const ErrorListener::Use listener;
  if (listener.function() == nullptr) return;
  // What programs named or threw may have lines, and a sentence is one.
  char sentence[Error::kMaxText];
  std::replace_copy_if(
      error.text(), error.text() + strlen(error.text()) + 1, std::begin(sentence),
      [](char each) { return each == '\n' || each == '\r'; }, ' ');
  failure.sentence = sentence;
  const NoCancel no_cancel;
  try {
    reinterpret_cast<aclUnderstudyErrorListener>(listener.function())(&failure,
                                                                      listener.user_data());
  } catch (...) {
    // The failing call has its own answer; this has no caller that it could be reported to.
  }
}

void tell_of_task(const TaskFailure& task) {
  aclUnderstudyFailure failure = {};
  failure.code = published_code(task.error->code());
  failure.deviceId = static_cast<int32_t>(task.device);
  failure.streamId = task.stream;
  failure.taskId = task.task;
  tell(failure, *task.error);
}

}  // namespace

namespace understudy::capi {

void tell_listener(const char* function, aclError code, const Error& error) noexcept {
  aclUnderstudyFailure failure = {};
  failure.function = function;
  failure.code = code;
  failure.deviceId = -1;
  tell(failure, error);
}

}  // namespace understudy::capi

aclError aclUnderstudySetErrorListener(aclUnderstudyErrorListener fn, void* userData) {
  return guarded(US_CALL(fn, userData), [&]() -> Result<void> {
    return ErrorListener::set(reinterpret_cast<AnyFunction>(fn), userData, tell_of_task);
  });
}
