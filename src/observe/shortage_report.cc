// SPDX-License-Identifier: Apache-2.0
#include "observe/shortage_report.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <string>
#include <vector>

#include "base/size_text.h"
#include "observe/history.h"
#include "observe/object_groups.h"
#include "observe/recent_calls.h"
#include "observe/stack_text.h"
#include "platform/line_output.h"
#include "platform/log.h"

namespace understudy {

namespace {

constexpr unsigned kMostReports = 3;  // of a process: programs may try again and again
constexpr size_t kMostHolders = 10;

constinit std::atomic<unsigned> reports{0};

bool holds_memory(const ObjectLife& life) {
  return life.size != 0 && (life.kind == ObjectKind::kAllocation ||
                            life.kind == ObjectKind::kBlock || life.kind == ObjectKind::kHostBlock);
}

std::string holders_text() {
  std::vector<ObjectLife> lives = History::live();
  std::erase_if(lives, [](const ObjectLife& life) { return !holds_memory(life); });
  std::vector<ObjectGroup> groups = grouped_by_place(lives);
  std::ranges::stable_sort(groups, std::ranges::greater(), &ObjectGroup::bytes);
  std::string text = groups.empty() ? "  this process holds no memory\n" : "  this process holds\n";
  for (size_t i = 0; i < std::min(groups.size(), kMostHolders); ++i) {
    const ObjectLife& first = groups[i].lives.front();
    text += "    " + text_of(groups[i]) + ", " + words_of(first.kind).begun + " at " +
            place_of(first.begun.stack) + "\n";
  }
  if (groups.size() > kMostHolders) {
    uint64_t rest = 0;
    for (size_t i = kMostHolders; i < groups.size(); ++i) rest += groups[i].bytes();
    text += "    " + std::string(SizeText(rest).c_str()) + " from " +
            std::to_string(groups.size() - kMostHolders) + " other places\n";
  }
  return text;
}

std::string calls_text() {
  std::string text = "  the last calls, the newest last\n";
  for (const RecentCall& call : recent_calls()) {
    text += "    " + std::string(call.function) + " " + std::to_string(call.code) + ", thread " +
            std::to_string(call.thread) + "\n";
  }
  return text;
}

}  // namespace

void tell_shortage(const char* function, const Error& error) noexcept {
  if (!is_checked(Check::kHistory) || error.code() != ErrorCode::kOutOfMemory) return;
  const unsigned number = reports.fetch_add(1);
  if (number >= kMostReports) return;
  try {
    const std::string text = std::string("understudy: out of memory: ") + function + ": " +
                             error.text() + "\n" + holders_text() + calls_text() +
                             (number + 1 == kMostReports ? "  (later ones are not told)\n" : "");
    platform::LineOutput::standard_error().write(text, platform::Patience::kBrief);
  } catch (const std::bad_alloc&) {
    platform::say("no memory to tell who holds memory");
  }
}

}  // namespace understudy
