// SPDX-License-Identifier: Apache-2.0
//
// All events of the process: made, recorded on streams, waited for by streams and threads.
// Rules: EVENT. Any thread may call anything, without a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "base/deadline.h"
#include "base/handle_table.h"
#include "base/result.h"
#include "device/settings.h"
#include "stream/event.h"
#include "stream/shared_event_link.h"
#include "stream/streams.h"

namespace understudy {

struct EventDescription {
  unsigned device = 0;
  EventFamily family = EventFamily::kClassic;
  bool can_reset = false;
  bool has_time = false;
  bool is_limited = false;  // takes one of the device's numbers when it is made
};

class Events {
 public:
  Events(const Settings& settings, Streams& streams, EventTable& table)
      : settings_(settings), streams_(streams), links_(table) {}

  Result<EventReference> create(const EventDescription& description);
  // By what another process opens an event of kind kIpc.
  Result<ShareToken> token_of(const EventReference& reference);
  // An event that another process, or this one, made.
  Result<EventReference> open(ShareToken token, unsigned device);
  // Refuses handles of events that ended or never were.
  Result<EventReference> find(uint64_t handle);
  static uint64_t handle_of(const EventReference& event);
  // How many of those that count can still be made on a device.
  unsigned available(unsigned device) const;
  uint64_t count() const { return events_.count_live(); }
  // Does not wait. Streams that wait for a record of it go on when that is reached; those that wait
  // for a record that never came, at once.
  Result<void> destroy(const EventReference& reference);
  // Ends all events of a device.
  void end_device(unsigned device);

  Result<void> record(const EventReference& reference, const StreamReference& stream);
  Result<void> reset(const EventReference& reference, const StreamReference& stream);
  // Lets the stream wait for the latest record. A limit of 0 seconds is none; without one the
  // default counts.
  Result<void> let_wait(const StreamReference& stream, const EventReference& reference,
                        std::optional<uint32_t> limit);
  void set_default_wait_limit(uint32_t seconds) { default_wait_limit_.store(seconds); }

  // Whether the latest record is reached; nothing if there is none.
  Result<std::optional<bool>> status(const EventReference& reference);
  // The same for programs: one without a record is complete unless it is a classic event
  // (EVENT-12).
  Result<bool> is_complete(const EventReference& reference);
  // Whether no stream waits for it any more.
  Result<bool> waits_are_over(const EventReference& reference);
  Result<void> synchronize(const EventReference& reference, Deadline deadline = kNever);
  // When the latest record was reached.
  Result<Clock::time_point> time(const EventReference& reference);

 private:
  // A number of the device for an event that counts.
  Result<void> take_number(const EventDescription& description);
  void give_number_back(unsigned device, bool is_limited) {
    if (is_limited) limited_[device].fetch_sub(1);
  }
  Result<EventReference> create_linked(const EventDescription& description, SharedEventLink* link,
                                       bool is_opened);
  Result<SharedEventLink*> make_link();
  // A stream that holds its tasks takes one more, of which the event knows nothing.
  Result<void> hold(const StreamReference& stream);
  // What is known of the latest record: where it is on a stream of this process, or which number
  // it has among those of others.
  struct Latest {
    std::optional<Record> record;
    SharedEventLink* shared = nullptr;  // the caller is a user of it
    uint64_t shared_record = 0;
  };
  Result<Latest> latest_of_any(const EventReference& reference);

  const Settings& settings_;
  Streams& streams_;
  SharedEventLinks links_;
  HandleTable<Event> events_{HandleTag::kEvent, {"event", "created", "destroyed"}};
  std::array<std::atomic<uint32_t>, kMaxDevices> limited_{};  // how many count on each device
  std::atomic<uint32_t> default_wait_limit_{0};               // seconds; 0: none (EVENT-18)
};

}  // namespace understudy
