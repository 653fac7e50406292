// SPDX-License-Identifier: Apache-2.0
//
// What checks know, for tools that run tests.
#include <string>

#include "acl/acl_understudy.h"
#include "capi/call.h"
#include "observe/finding_text.h"
#include "observe/findings.h"
#include "observe/history.h"
#include "observe/object_groups.h"
#include "observe/page_waste.h"
#include "observe/stack_text.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

int32_t aclUnderstudyWantsPlaces(void) {
  // The call that it is asked for may be the first of the process.
  if (call_watch.load(std::memory_order_relaxed) == kUnknownWatch) choose_call_watch_for_now();
  return (is_any_checked() ? 1 : 0) + (Recorder::records_stacks() ? 2 : 0);
}

// No call that can be watched: it says where those come from.
void aclUnderstudySetPlace(const char* place) {
  try {
    History::name_place(place == nullptr ? "" : place);
  } catch (const std::bad_alloc&) {
    History::name_place("");  // needs no memory
  }
}

uint64_t aclUnderstudyMark(void) {
  return watched_unfailing(US_CALL(), [] { return History::count_begun(); });
}

aclError aclUnderstudyVisitGrowth(uint64_t mark, aclUnderstudyGrowthVisitor fn, void* userData) {
  return guarded(US_CALL(mark, fn, userData), [&]() -> Result<void> {
    if (fn == nullptr) return invalid_argument("fn is NULL");
    for (const ObjectGroup& group : live_since(mark)) {
      const std::string sentence = sentence_of(group);
      const std::string place = place_of(group.lives.front().begun.stack);
      aclUnderstudyGrowth growth = {};
      growth.sentence = sentence.c_str();
      growth.place = place.c_str();
      growth.objects = group.lives.size();
      growth.bytes = group.bytes();
      fn(&growth, userData);
    }
    return {};
  });
}

aclError aclUnderstudyTakeFindings(aclUnderstudyFindingVisitor fn, void* userData) {
  return guarded(US_CALL(fn, userData), [&]() -> Result<void> {
    if (fn == nullptr) return invalid_argument("fn is NULL");
    PageWaste::tell();
    for (const Finding& each : Findings::take()) {
      const std::string check(name_of(each.check));
      const std::string text = text_of(each, Colors::kNone);
      aclUnderstudyFinding finding = {};
      finding.check = check.c_str();
      finding.sentence = each.sentence.c_str();
      finding.text = text.c_str();
      finding.times = each.times;
      fn(&finding, userData);
    }
    return {};
  });
}
