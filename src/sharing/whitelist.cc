// SPDX-License-Identifier: Apache-2.0
#include "sharing/whitelist.h"

#include <algorithm>
#include <functional>

namespace understudy {

Result<void> Whitelist::add(ShareToken share, std::span<const int32_t> processes) {
  const bool names_any = std::any_of(processes.begin(), processes.end(), std::identity());
  if (!names_any && !processes.empty()) {
    return Error::format(ErrorCode::kInvalidParam, "every process id is 0");
  }
  std::vector<platform::ProcessIdentity> found;
  for (const int32_t number : processes) {
    if (number == 0) continue;
    US_TRY_ASSIGN(const auto identity, platform::identity_of_process(number));
    if (identity) found.push_back(*identity);
  }
  MutexLock lock(mutex_);
  Listed& listed = shares_[share.number()];
  if (listed.secret != share.secret()) listed = {share.secret(), {}};
  for (const platform::ProcessIdentity& each : found) {
    if (std::find(listed.processes.begin(), listed.processes.end(), each) ==
        listed.processes.end()) {
      listed.processes.push_back(each);
    }
  }
  return {};
}

bool Whitelist::has(ShareToken share, const platform::ProcessIdentity& process) const {
  MutexLock lock(mutex_);
  const auto found = shares_.find(share.number());
  if (found == shares_.end() || found->second.secret != share.secret()) return false;
  const auto& processes = found->second.processes;
  return std::find(processes.begin(), processes.end(), process) != processes.end();
}

void Whitelist::remove(ShareToken share) {
  MutexLock lock(mutex_);
  const auto found = shares_.find(share.number());
  if (found != shares_.end() && found->second.secret == share.secret()) shares_.erase(found);
}

}  // namespace understudy
