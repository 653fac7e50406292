// SPDX-License-Identifier: Apache-2.0
//
// What a check found: a sentence, and the places of the program that it is about. A plain value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "observe/check.h"
#include "observe/object_life.h"

namespace understudy {

struct FindingNote {
  std::string text;  // what happened there: "physical block of 2 MiB created"
  ProgramPlace place;
};

struct Finding {
  Check check = Check::kHistory;
  std::string_view topic;  // of a check that looks for several things; constant
  std::string sentence;
  std::vector<FindingNote> notes;
  uint64_t times = 1;  // at the same places
};

}  // namespace understudy
