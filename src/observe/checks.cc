// SPDX-License-Identifier: Apache-2.0
#include "observe/checks.h"

#include <optional>

#include "observe/findings.h"
#include "observe/host_access.h"
#include "observe/leaks.h"
#include "observe/page_waste.h"
#include "platform/process_end.h"

namespace understudy {

namespace {

// Behind all handlers of exit and all destructors of the program: what they free is no leak. And
// behind the library's other functions for the end, which have the default priority: it may end the
// process.
[[gnu::destructor(200)]] void end_checks() {
  if (!is_any_checked()) return;
  tell_leaks_at_exit();
  PageWaste::tell();
  if (const std::optional<int> status = Findings::finish()) platform::end_process(*status);
}

}  // namespace

Result<void> begin_checks(const CheckChoice& choice) {
  US_TRY(Findings::begin(choice));
  if (choice.checks.has(Check::kHost)) US_TRY(begin_host_check());
  return {};
}

}  // namespace understudy
