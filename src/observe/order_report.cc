// SPDX-License-Identifier: Apache-2.0
#include "observe/order_report.h"

#include <algorithm>
#include <optional>
#include <string>

#include "observe/findings.h"
#include "observe/history.h"
#include "observe/place_text.h"

namespace understudy {

namespace {

const char* verb_of(AccessUse use, const char* ended) {
  switch (use) {
    case AccessUse::kRead:
      return "reads";
    case AccessUse::kReduce:
      return "reduces into";
    case AccessUse::kWrite:
      return "writes";
    case AccessUse::kEnd:
      return ended;
  }
  return "uses";
}

std::string on_stream(uint32_t stream) { return " on stream " + std::to_string(stream); }

VirtualRange common_part(VirtualRange one, VirtualRange other) {
  const VirtualAddress base = std::max(one.base, other.base);
  return {base, std::min(one.end(), other.end()) - base};
}

// What would put the two in order.
std::string cure_of(const TaskAccess& first, const LaterUse& second) {
  const std::string stream = std::to_string(first.task.stream);
  if (!second.is_task) return "synchronize stream " + stream + " first";
  return "record an event on stream " + stream + " behind the first and let stream " +
         std::to_string(second.stream) + " wait for it";
}

}  // namespace

void tell_disorder(const TaskAccess& first, const LaterUse& second) {
  const VirtualRange both = common_part(first.what.range, second.what.range);
  Finding finding;
  finding.check = Check::kOrder;
  finding.sentence = call_at(second.place) + (second.is_task ? on_stream(second.stream) : "") +
                     " " + verb_of(second.what.use, second.ended) + " " + text_of(both) +
                     ", which " + call_at(first.place) + on_stream(first.task.stream) + " " +
                     verb_of(first.what.use, "frees") + ", and nothing puts the two in order; " +
                     cure_of(first, second);
  finding.notes.push_back({"second" + by_call(second.place), second.place});
  finding.notes.push_back({"first" + by_call(first.place), first.place});
  if (const std::optional<ObjectLife> life = History::explain(both.base)) {
    finding.notes.push_back(
        {described(*life) + " " + words_of(life->kind).begun + by_call(life->begun), life->begun});
  }
  Findings::add(std::move(finding));
}

void tell_endless_wait(const EndlessWait& wait, const ProgramPlace& waiting) {
  Finding finding;
  finding.check = Check::kOrder;
  finding.topic = "endless";
  finding.sentence =
      call_at(waiting) + " waits for ever: " + call_at(wait.place) + on_stream(wait.task.stream) +
      " waits for notify " + std::to_string(wait.notify) +
      ", and nothing that is queued can record it; record it on another stream first";
  finding.notes.push_back({"waits" + by_call(waiting), waiting});
  finding.notes.push_back({"queued" + by_call(wait.place), wait.place});
  Findings::add(std::move(finding));
}

}  // namespace understudy
