// SPDX-License-Identifier: Apache-2.0
#include "runtime/call_site_list.h"

#include <exception>

#include "platform/call_site.h"
#include "platform/line_output.h"

namespace understudy {

bool CallSiteList::add(uint64_t key) noexcept {
  for (size_t step = 0; step < seen_.size(); ++step) {
    std::atomic<uint64_t>& entry = seen_[(key + step) % seen_.size()];
    uint64_t found = entry.load(std::memory_order_relaxed);
    if (found == 0 && entry.compare_exchange_strong(found, key)) return true;
    if (found == key) return false;
  }
  return false;
}

void CallSiteList::note(const char* function, uintptr_t return_address) noexcept {
  const uint64_t hash =
      (return_address ^ reinterpret_cast<uintptr_t>(function) << 20) * 0x9e3779b97f4a7c15;
  if (!add(hash != 0 ? hash : 1)) return;
  try {
    const std::string site = platform::call_site_of(return_address);
    if (site.empty()) return;
    const std::string line = std::string(function) + "\t" + site + "\t" +
                             platform::source_place_of(return_address) + "\n";
    platform::LineOutput::appending_to(file_).write(line, platform::Patience::kBrief);
  } catch (const std::exception&) {
    return;  // no memory for the line
  }
}

}  // namespace understudy
