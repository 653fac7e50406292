// SPDX-License-Identifier: Apache-2.0
//
// Findings in the forms in which people and tools read them. May throw std::bad_alloc.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "observe/check.h"
#include "observe/finding.h"

namespace understudy {

enum class Colors : uint8_t { kNone, kTerminal };

// The sentence, and each note with its stack, as lines.
std::string text_of(const Finding& finding, Colors colors);
// The sentence and the places and functions of all frames, which suppressions are compared with.
std::vector<std::string> searched_texts(const Finding& finding);

struct FindingReport {
  std::span<const Finding> findings;
  CheckSet checks;
  uint64_t suppressed = 0;
  int32_t process = 0;
};
std::string json_of(const FindingReport& report);
// A test case for each check, which fails if it has findings.
std::string junit_of(const FindingReport& report);

}  // namespace understudy
