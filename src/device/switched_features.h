// SPDX-License-Identifier: Apache-2.0
//
// Features that a process has because its configuration says so, although its product, or the
// driver, lacks them: programs that use them are advised (observe/advice.h).
#pragma once

#include "device/settings.h"
#include "observe/advice.h"

namespace understudy {

// The calling function uses the feature. Nothing if the product has it anyway.
[[gnu::cold]] void advise_if_switched_on(const Settings& settings, Feature feature) noexcept;

}  // namespace understudy
