// SPDX-License-Identifier: Apache-2.0
#include "observe/findings.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "observe/finding_text.h"
#include "observe/suppressions.h"
#include "platform/fork_sentinel.h"
#include "platform/host_facts.h"
#include "platform/line_output.h"
#include "platform/log.h"
#include "platform/text_file.h"

namespace understudy {

struct Findings::Choice {
  CheckChoice asked;
  Suppressions suppressions;
  std::chrono::system_clock::time_point begun = std::chrono::system_clock::now();
};

struct Findings::State {
  // The finding from the same places that is known already; it happened once more.
  bool count_again(const Finding& finding) US_EXCLUDES(mutex);
  // May throw std::bad_alloc.
  void keep(Finding finding) US_EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    findings.push_back(std::move(finding));
  }

  Mutex mutex{LockRank::kFindings};
  std::vector<Finding> findings US_GUARDED_BY(mutex);
  uint64_t suppressed US_GUARDED_BY(mutex) = 0;
};

namespace {

bool is_from_same_places(const Finding& one, const Finding& other) {
  return one.check == other.check && one.topic == other.topic &&
         std::ranges::equal(one.notes, other.notes, [](const FindingNote& a, const FindingNote& b) {
           return a.place.stack == b.place.stack && a.place.function == b.place.function;
         });
}

Result<Suppressions> read_suppressions(const std::string& file) {
  if (file.empty()) return Suppressions();
  const std::optional<std::string> text = platform::read_text_file(file);
  if (!text) {
    return Error::format(ErrorCode::kInvalidArgument, "the suppressions file %.200s cannot be read",
                         file.c_str());
  }
  return Suppressions::parse(*text);
}

// "report.json" or, if another process of this run has written that, "report.1234.json".
std::string free_name(const std::string& wanted, std::chrono::system_clock::time_point begun) {
  const auto modified = platform::modified_at(wanted);
  if (!modified || *modified < begun) return wanted;
  const size_t dot = wanted.rfind('.');
  return wanted.substr(0, dot) + "." + std::to_string(platform::process_id()) + wanted.substr(dot);
}

// "2 findings (history 1, leaks 1), 3 suppressed"
std::string summary_of(const FindingReport& report) {
  std::array<uint64_t, kCheckNames.size()> counts{};
  for (const Finding& finding : report.findings) {
    ++counts.at(static_cast<size_t>(finding.check));
  }
  std::string parts;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts.at(i) == 0) continue;
    parts += parts.empty() ? " (" : ", ";
    parts += std::string(kCheckNames.at(i)) + " " + std::to_string(counts.at(i));
  }
  if (!parts.empty()) parts += ")";
  std::string text = std::to_string(report.findings.size()) +
                     (report.findings.size() == 1 ? " finding" : " findings") + parts;
  if (report.suppressed != 0) text += ", " + std::to_string(report.suppressed) + " suppressed";
  return text;
}

}  // namespace

constinit std::atomic<const Findings::Choice*> Findings::choice_{nullptr};
constinit std::atomic<Findings::State*> Findings::state_{nullptr};
// When the library is loaded: see CallGate.
const bool Findings::registered_ = (platform::call_in_fork_child(forget_in_fork_child), true);

// A thread of the parent may have been in the middle of changing what is there.
void Findings::forget_in_fork_child() { state_.store(nullptr, std::memory_order_relaxed); }

bool Findings::State::count_again(const Finding& finding) {
  const MutexLock lock(mutex);
  for (Finding& known : findings) {
    if (!is_from_same_places(known, finding)) continue;
    ++known.times;
    return true;
  }
  return false;
}

Findings::State* Findings::state() noexcept {
  State* known = state_.load(std::memory_order_acquire);
  if (known != nullptr) return known;
  auto fresh = std::unique_ptr<State>(new (std::nothrow) State);
  if (fresh == nullptr) return nullptr;
  return state_.compare_exchange_strong(known, fresh.get()) ? fresh.release() : known;
}

Result<void> Findings::begin(const CheckChoice& choice) {
  if (choice.checks.empty() || choice_.load() != nullptr) return {};
  auto fresh = std::make_unique<Choice>();
  fresh->asked = choice;
  US_TRY_ASSIGN(fresh->suppressions, read_suppressions(choice.suppressions));
  const Choice* none = nullptr;
  if (!choice_.compare_exchange_strong(none, fresh.get())) return {};
  (void)fresh.release();
  chosen_checks.fetch_or(choice.checks.bits(), std::memory_order_relaxed);
  return {};
}

void Findings::add(Finding finding) noexcept {
  const Choice* const choice = choice_.load(std::memory_order_acquire);
  State* const state = Findings::state();
  if (choice == nullptr || state == nullptr || state->count_again(finding)) return;
  try {
    if (choice->suppressions.name(finding.check, searched_texts(finding))) {
      const MutexLock lock(state->mutex);
      ++state->suppressed;
      return;
    }
    const Colors colors = platform::standard_error_has_colors() ? Colors::kTerminal : Colors::kNone;
    const std::string text = text_of(finding, colors);
    state->keep(std::move(finding));
    platform::LineOutput::standard_error().write(text, platform::Patience::kBrief);
  } catch (const std::bad_alloc&) {
    platform::say("no memory to tell of a finding");
  }
}

std::vector<Finding> Findings::take() noexcept {
  State* const state = state_.load(std::memory_order_acquire);
  if (state == nullptr) return {};
  const MutexLock lock(state->mutex);
  return std::exchange(state->findings, {});
}

std::optional<int> Findings::finish() noexcept {
  const Choice* const choice = choice_.load(std::memory_order_acquire);
  State* const state = Findings::state();
  if (choice == nullptr || state == nullptr) return std::nullopt;
  try {
    std::vector<Finding> findings;
    FindingReport report;
    {
      const MutexLock lock(state->mutex);
      findings = state->findings;
      report.suppressed = state->suppressed;
    }
    report.findings = findings;
    report.checks = choice->asked.checks;
    report.process = platform::process_id();
    if (!findings.empty() || report.suppressed != 0) {
      platform::say("check: %s", summary_of(report).c_str());
    }
    if (const std::string& wanted = choice->asked.report; !wanted.empty()) {
      const std::string file = free_name(wanted, choice->begun);
      const Result<void> written = platform::replace_text_file(
          file, file.ends_with(".xml") ? junit_of(report) : json_of(report));
      if (!written.ok()) platform::say("%s", written.error().text());
    }
    if (findings.empty()) return std::nullopt;
  } catch (const std::bad_alloc&) {
    platform::say("no memory to tell of all findings");
  }
  return choice->asked.exit_status;
}

}  // namespace understudy
