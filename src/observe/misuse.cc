// SPDX-License-Identifier: Apache-2.0
#include "observe/misuse.h"

#include <new>
#include <optional>
#include <string>
#include <utility>

#include "observe/findings.h"
#include "observe/history.h"
#include "observe/place_text.h"
#include "observe/stack_text.h"
#include "platform/log.h"

namespace understudy {

namespace {

// "freed", or "ended because its device was reset"
std::string end_of(const ObjectLife& life) {
  if (life.cause == nullptr) return words_of(life.kind).ended;
  return std::string("ended because ") + life.cause;
}

Finding finding_of(const char* function, const Error& error, const ObjectLife& life) {
  const ProgramPlace here = History::here();
  const ObjectWords& words = words_of(life.kind);
  Finding finding;
  finding.check = Check::kHistory;
  finding.sentence = std::string(function) + ": " + error.text() + "; " + described(life) + " " +
                     words.begun + " at " + place_of(life.begun.stack);
  if (life.has_ended) finding.sentence += ", " + end_of(life) + " at " + place_of(life.ended.stack);
  finding.sentence +=
      std::string(life.has_ended ? ", used again at " : ", used at ") + place_of(here.stack);
  finding.notes.push_back({"used" + by_call(here), here});
  finding.notes.push_back({words.begun + by_call(life.begun), life.begun});
  if (life.has_ended) finding.notes.push_back({end_of(life) + by_call(life.ended), life.ended});
  return finding;
}

}  // namespace

void tell_misuse(const char* function, const Error& error) noexcept {
  if (!is_checked(Check::kHistory) || error.subject() == 0) return;
  const std::optional<ObjectLife> life = History::explain(error.subject());
  if (!life) return;
  try {
    Findings::add(finding_of(function, error, *life));
  } catch (const std::bad_alloc&) {
    platform::say("no memory to explain a failure");
  }
}

}  // namespace understudy
