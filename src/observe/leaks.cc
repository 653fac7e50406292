// SPDX-License-Identifier: Apache-2.0
#include "observe/leaks.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <string>
#include <vector>

#include "observe/findings.h"
#include "observe/history.h"
#include "observe/object_groups.h"
#include "observe/stack_text.h"
#include "platform/log.h"

namespace understudy {

namespace {

// What keeps blocks from ending besides their first handle.
void add_holders(const ObjectGroup& group, const std::vector<ObjectLife>& all, Finding& finding) {
  constexpr size_t kMostHolders = 4;
  size_t told = 0;
  for (const ObjectLife& block : group.lives) {
    if (block.kind != ObjectKind::kBlock) return;
    if (block.handles > 1 && told < kMostHolders) {
      ++told;
      finding.notes.push_back(
          {"it has " + std::to_string(block.handles) + " handles, by retains", ProgramPlace{}});
    }
    for (const ObjectLife& mapping : all) {
      if (mapping.kind != ObjectKind::kMapping || mapping.part_of != block.number) continue;
      if (++told > kMostHolders) return;
      finding.notes.push_back({"and is still mapped", mapping.begun});
    }
  }
}

Finding finding_of(const ObjectGroup& group, const std::vector<ObjectLife>& all,
                   const char* moment) {
  const ObjectLife& first = group.lives.front();
  const ObjectWords& words = words_of(first.kind);
  const bool is_one = group.lives.size() == 1;
  Finding finding;
  finding.check = Check::kLeaks;
  finding.sentence = text_of(group) + (is_one ? " is" : " are") + " not " + words.ended + " " +
                     moment + "; " + words.begun + " at " + place_of(first.begun.stack);
  if (first.begun.function != nullptr) {
    finding.sentence += std::string(" by ") + first.begun.function;
  }
  finding.notes.push_back({words.begun, first.begun});
  add_holders(group, all, finding);
  return finding;
}

template <typename IsLeft>
void tell(IsLeft is_left, const char* moment) {
  const std::vector<ObjectLife> all = History::live();
  std::vector<ObjectLife> left;
  std::ranges::copy_if(all, std::back_inserter(left),
                       [&](const ObjectLife& life) { return !life.was_told && is_left(life); });
  for (const ObjectGroup& group : grouped_by_place(left)) {
    Findings::add(finding_of(group, all, moment));
    History::set_told(group.lives);
  }
}

template <typename IsLeft>
void tell_if_checked(IsLeft is_left, const char* moment) noexcept {
  if (!is_checked(Check::kLeaks)) return;
  try {
    tell(is_left, moment);
  } catch (const std::bad_alloc&) {
    platform::say("no memory to look for leaks");
  }
}

}  // namespace

void tell_leaks_on(int32_t device) noexcept {
  tell_if_checked(
      [device](const ObjectLife& life) {
        return life.device == device &&
               std::ranges::find(kEndedByReset, life.kind) != kEndedByReset.end();
      },
      "before its device is reset");
}

void tell_leaks_at_exit() noexcept {
  // A share ends with its memory.
  tell_if_checked([](const ObjectLife& life) { return life.kind != ObjectKind::kShare; },
                  "at the end of the process");
}

}  // namespace understudy
