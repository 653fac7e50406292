// SPDX-License-Identifier: Apache-2.0
//
// Which place of one recording is which place of another (comparison.h tells the rule).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/recording/comparison.h"

namespace understudy::command {

std::vector<ComparedPlace> compare_places(
    const std::map<std::string, ComparableFigures::Place>& before,
    const std::map<std::string, ComparableFigures::Place>& after);

}  // namespace understudy::command
