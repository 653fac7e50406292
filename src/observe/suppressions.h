// SPDX-License-Identifier: Apache-2.0
//
// Findings that are known and not to be told: a file with a line for each, `CHECK:PATTERN`, where
// CHECK is the name of a check or *, and PATTERN is compared with the sentence of a finding and
// with the place and the function of each frame; * stands for anything. # begins a comment.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "observe/check.h"

namespace understudy {

class Suppressions {
 public:
  // Of the text of a file; the error names the line that is wrong.
  static Result<Suppressions> parse(std::string_view text);

  // Whether a line names the check and one of the texts of a finding.
  bool name(Check check, const std::vector<std::string>& texts) const;

 private:
  struct Line {
    std::optional<Check> check;  // nothing: any
    std::string pattern;
  };
  std::vector<Line> lines_;
};

}  // namespace understudy
