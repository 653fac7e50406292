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
#include "base/result.h"
#include "device/settings.h"
#include "memory/object_pool.h"
#include "stream/event.h"
#include "stream/shared_event_link.h"
#include "stream/streams.h"

namespace understudy {

struct EventDescription {
  unsigned device = 0;
  EventFamily family = EventFamily::kClassic;
  bool can_reset = false;
  bool has_time = false;
};

class Events {
 public:
  static constexpr unsigned kMostEvents = 65536;  // on a device

  Events(Streams& streams, Ledger& ledger) : streams_(streams), links_(ledger) {}

  Result<EventReference> create(const EventDescription& description);
  // By what another process opens an event of kind kIpc.
  Result<ShareToken> token_of(const EventReference& reference);
  // An event that another process, or this one, made.
  Result<EventReference> open(ShareToken token, unsigned device);
  // Refuses handles of events that ended or never were.
  Result<EventReference> find(uint64_t handle);
  static uint64_t handle_of(const EventReference& event);
  unsigned available(unsigned device) const;
  // Does not wait. Streams that wait for a record of it go on when that is reached; those that wait
  // for a record that never came, at once.
  Result<void> destroy(const EventReference& reference);
  // Ends all events of a device.
  void end_device(unsigned device);

  Result<void> record(const EventReference& reference, const StreamReference& stream);
  Result<void> reset(const EventReference& reference, const StreamReference& stream);
  // Lets the stream wait for the latest record. `limit_seconds` is 0 for none.
  Result<void> let_wait(const StreamReference& stream, const EventReference& reference,
                        uint32_t limit_seconds);

  // Whether the latest record is reached; nothing if there is none.
  Result<std::optional<bool>> status(const EventReference& reference);
  // Whether no stream waits for it any more.
  Result<bool> waits_are_over(const EventReference& reference);
  Result<void> synchronize(const EventReference& reference, Deadline deadline = kNever);
  // When the latest record was reached.
  Result<Clock::time_point> time(const EventReference& reference);

 private:
  Result<EventReference> create_linked(const EventDescription& description, SharedEventLink* link,
                                       bool is_opened);
  Result<SharedEventLink*> make_link();
  // What is known of the latest record: where it is on a stream of this process, or which number
  // it has among those of others.
  struct Latest {
    std::optional<Record> record;
    SharedEventLink* shared = nullptr;  // the caller is a user of it
    uint64_t shared_record = 0;
  };
  Result<Latest> latest_of_any(const EventReference& reference);

  Streams& streams_;
  SharedEventLinks links_;
  ObjectPool<Event> pool_;
  std::array<std::atomic<uint32_t>, kMaxDevices> created_{};
};

}  // namespace understudy
