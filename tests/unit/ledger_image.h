// SPDX-License-Identifier: Apache-2.0
//
// The ledger file of a test server as it lies in memory, for tests that look into it or damage it
// as a process that died or went wrong would. Each process maps its own.
#pragma once

#include <fcntl.h>

#include <atomic>
#include <cstdint>

#include "platform/shared_mapping.h"
#include "platform/unique_fd.h"
#include "server/ledger_layout.h"
#include "server/pool_word.h"
#include "unit/test_server.h"

namespace understudy {

class LedgerImage {
 public:
  // After a process has joined.
  explicit LedgerImage(const TestServer& server)
      : file_(open(server.ledger_path().c_str(), O_RDWR | O_CLOEXEC)),
        mapping_(value_of(platform::SharedMapping::of_file(file_.get(), kLedgerBytes))) {}

  LedgerHeader& header() const { return at<LedgerHeader>(0); }
  ProcessSlot& slot(unsigned number) const { return (&at<ProcessSlot>(kSlotsOffset))[number]; }
  ShareEntry& share(uint32_t number) const { return (&at<ShareEntry>(kSharesOffset))[number]; }
  EventEntry& event(uint32_t number) const { return (&at<EventEntry>(kEventsOffset))[number]; }
  NotifyEntry& notify(uint32_t number) const { return (&at<NotifyEntry>(kNotifiesOffset))[number]; }
  DeviceUse& use(unsigned slot_number, unsigned device = 0) const {
    auto* const groups = &at<UseGroup>(kUsesOffset);
    return groups[slot_number / UseGroup::kSlots].devices[device][slot_number % UseGroup::kSlots];
  }
  // Of the huge pool of a device.
  std::atomic<uint64_t>& pages(unsigned slot_number, unsigned device = 0) const {
    return use(slot_number, device).words[1];
  }
  std::atomic<uint64_t>& pending(unsigned slot_number) const { return use(slot_number).pending[1]; }
  std::atomic<uint64_t>& shared_pages() const { return header().shared[0].words[1]; }
  std::atomic<uint64_t>& held_back() const { return header().held_back[0].words[1]; }
  // For locks of its bytes.
  int descriptor() const { return file_.get(); }

 private:
  template <typename T>
  T& at(uint64_t offset) const {
    return *reinterpret_cast<T*>(mapping_.data() + offset);
  }

  platform::UniqueFd file_;
  platform::SharedMapping mapping_;
};

}  // namespace understudy
