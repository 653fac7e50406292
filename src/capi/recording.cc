// SPDX-License-Identifier: Apache-2.0
//
// Recordings that the program begins and ends itself.
#include "acl/acl_understudy.h"
#include "base/sizes.h"
#include "capi/call.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

constexpr uint32_t kAllFlags = ACL_UNDERSTUDY_RECORD_STACKS | ACL_UNDERSTUDY_RECORD_RING;

Result<RecordingChoice> choice_of(const char* path, const aclUnderstudyRecordingOptions* options) {
  RecordingChoice choice;
  choice.file = path;
  if (options == nullptr) return choice;
  if ((options->flags & ~kAllFlags) != 0) {
    return invalid_argument("flags 0x%x has bits that are none of ACL_UNDERSTUDY_RECORD_*",
                            options->flags);
  }
  for (const uint64_t word : options->reserved) US_TRY(require_zero(word, "options->reserved"));
  if (options->limit != 0) choice.limit = options->limit;
  if (choice.limit < kMiB || choice.limit > kTiB) {
    return invalid_argument("limit %llu is not 0 and not between 1 MiB and 1 TiB",
                            static_cast<unsigned long long>(choice.limit));
  }
  choice.records_stacks = (options->flags & ACL_UNDERSTUDY_RECORD_STACKS) != 0;
  choice.is_ring = (options->flags & ACL_UNDERSTUDY_RECORD_RING) != 0;
  return choice;
}

}  // namespace

aclError aclUnderstudyStartRecording(const char* path,
                                     const aclUnderstudyRecordingOptions* options) {
  return guarded(US_CALL(text(path), options), [&]() -> Result<void> {
    US_TRY(require_pointer(path, "path"));
    if (*path == '\0') return invalid_argument("path is empty");
    US_TRY_ASSIGN(RecordingChoice choice, choice_of(path, options));
    return start_recording(std::move(choice));
  });
}

aclError aclUnderstudyStopRecording(void) { return guarded(US_CALL(), stop_recording); }
