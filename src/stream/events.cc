// SPDX-License-Identifier: Apache-2.0
#include "stream/events.h"

#include <algorithm>
#include <cinttypes>
#include <utility>

#include "base/scope_exit.h"
#include "observe/history.h"

namespace understudy {

namespace {

Error not_an_event(uint64_t handle) {
  return Error::format(ErrorCode::kInvalidHandle, "0x%" PRIx64 " is not a live event", handle)
      .about(handle);
}

Error was_destroyed(const EventReference& reference) {
  return not_an_event(Events::handle_of(reference));
}

bool is_same(const Event& event, const EventReference& reference) US_REQUIRES(event.mutex) {
  return event.state.load() == reference.state;
}

}  // namespace

Error record_lost() {
  return Error::format(ErrorCode::kConnection,
                       "the process that recorded the event ended before its stream got there");
}

Result<EventReference> Events::create(const EventDescription& description) {
  if (description.family != EventFamily::kIpc) return create_linked(description, nullptr, false);
  US_TRY_ASSIGN(SharedEventLink* const link, make_link());
  return create_linked(description, link, false);
}

Result<SharedEventLink*> Events::make_link() {
  Result<SharedEventLink*> link = links_.make([](EventTable& table) { return table.add(); });
  if (link.ok() || link.error().code() != ErrorCode::kOutOfResources) return link;
  return link.error().as(ErrorCode::kOutOfEvents);
}

Result<EventReference> Events::open(ShareToken token, unsigned device) {
  US_TRY_ASSIGN(SharedEventLink* const link, links_.open(token));
  if (link == nullptr) {
    return Error::format(ErrorCode::kInvalidHandle,
                         "the handle names no event: it was never issued by this server, or the "
                         "event was destroyed or its process ended");
  }
  return create_linked({.device = device, .family = EventFamily::kIpc}, link, true);
}

Result<ShareToken> Events::token_of(const EventReference& reference) {
  Event& event = *reference.event;
  MutexLock lock(event.mutex);
  if (!is_same(event, reference)) return was_destroyed(reference);
  if (event.shared == nullptr) {
    return Error::format(ErrorCode::kInvalidParam, "event %u was created without the IPC flag",
                         event.index);
  }
  return event.shared->token();
}

// EVENT-05, EVENT-19
Result<void> Events::take_number(const EventDescription& description) {
  if (!description.is_limited) return {};
  const unsigned limit = settings_.product.most_events;
  if (limited_[description.device].fetch_add(1) < limit) return {};
  give_number_back(description.device, description.is_limited);
  return Error::format(ErrorCode::kOutOfEvents, "event limit (%u) of device %u reached", limit,
                       description.device);
}

// Takes the link over, also where it fails.
Result<EventReference> Events::create_linked(const EventDescription& description,
                                             SharedEventLink* link, bool is_opened) {
  ScopeExit unlink([&] {
    if (link != nullptr) link->drop_user();
  });
  US_TRY(take_number(description));
  ScopeExit uncount([&] { give_number_back(description.device, description.is_limited); });
  US_TRY_ASSIGN(Event* const taken, events_.take());
  uncount.dismiss();
  Event& event = *taken;
  event.device.store(description.device);
  event.family.store(description.family);
  event.can_reset.store(description.can_reset);
  event.has_time.store(description.has_time);
  event.is_limited.store(description.is_limited);
  EventReference made{&event, event.state.load() + 1};
  {
    MutexLock lock(event.mutex);
    event.is_opened.store(is_opened);
    event.shared = link;
    event.shared_record = 0;
    unlink.dismiss();
    event.record.reset();
    event.awaited_records.clear();
    event.queued_reset = {};
    event.unbound_tasks = 0;
    event.queued_waits = 0;
    event.state.store(made.state, std::memory_order_release);
  }
  History::begin(
      {ObjectKind::kEvent, handle_of(made), 0, static_cast<int32_t>(description.device)});
  return made;
}

Result<EventReference> Events::find(uint64_t handle) {
  if (Event* const event = events_.find_live(handle)) {
    return EventReference{event, SlotState::of_live(handle)};
  }
  return not_an_event(handle);
}

uint64_t Events::handle_of(const EventReference& event) {
  return HandleParts{HandleTag::kEvent, SlotState::generation(event.state), event.event->index}
      .pack();
}

unsigned Events::available(unsigned device) const {
  const unsigned limit = settings_.product.most_events;
  // A call that will be refused may be counted for a moment.
  return limit - std::min(limit, limited_[device].load());
}

Result<void> Events::destroy(const EventReference& reference) {
  Event& event = *reference.event;
  const ObjectEnd end(ObjectKind::kEvent, handle_of(reference));
  SharedEventLink* link = nullptr;
  {
    MutexLock lock(event.mutex);
    if (!is_same(event, reference)) return was_destroyed(reference);
    event.state.store(reference.state + 1);
    link = std::exchange(event.shared, nullptr);
  }
  if (link != nullptr) {
    if (!event.is_opened.load()) link->close();
    link->drop_user();
  }
  streams_.wait_graph().note_event(event);
  give_number_back(event.device.load(), event.is_limited.load());
  events_.recycle(event);
  end.confirm();
  return {};
}

void Events::end_device(unsigned device) {
  events_.for_each([&](Event& event) {
    const uint32_t state = event.state.load(std::memory_order_acquire);
    if (!SlotState::alive(state) || event.device.load() != device) return;
    (void)destroy({&event, state});  // unless another thread does just now
  });
}

Result<void> Events::record(const EventReference& reference, const StreamReference& stream) {
  Event& event = *reference.event;
  US_TRY(streams_.prepare(stream));
  {
    MutexLock lock(event.mutex);
    if (!is_same(event, reference)) return was_destroyed(reference);
    if (stream.holds_tasks()) return hold(stream);
    Task task(TaskKind::kRecord, stream.device());
    const uint64_t sequence = event.sequence.load(std::memory_order_relaxed) + 1;
    task.record = {{&event, reference.state, sequence}, nullptr, 0};
    if (event.shared != nullptr) {
      US_TRY_ASSIGN(task.record.shared_record, event.shared->record(stream.handle()));
      event.shared->add_user();
      task.record.shared = event.shared;
    }
    const bool is_awaited = event.unbound_tasks > 0;
    // What needs memory comes first.
    if (is_awaited) event.awaited_records.emplace_back();
    const Result<uint64_t> position = streams_.submit_prepared(stream, task);
    if (!position.ok()) {
      if (is_awaited) event.awaited_records.pop_back();
      return position.error();
    }
    event.record = Record{stream.stream, position.value()};
    event.shared_record = task.record.shared_record;
    if (is_awaited) event.awaited_records.back() = {*event.record, sequence};
    event.sequence.store(sequence);
  }
  streams_.wait_graph().note_event(event);
  return {};
}

Result<void> Events::reset(const EventReference& reference, const StreamReference& stream) {
  Event& event = *reference.event;
  if (!event.can_reset.load()) {
    return Error::format(ErrorCode::kNotSupported, "event %u cannot be reset", event.index);
  }
  US_TRY(streams_.prepare(stream));
  MutexLock lock(event.mutex);
  if (!is_same(event, reference)) return was_destroyed(reference);
  if (stream.holds_tasks()) return hold(stream);
  Task task(TaskKind::kResetEvent, stream.device());
  const uint64_t sequence = event.sequence.load();
  task.moment = {&event, reference.state, sequence};
  US_TRY_ASSIGN(const uint64_t position, streams_.submit_prepared(stream, task));
  event.queued_reset = {{stream.stream, position}, sequence};
  return {};
}

Result<void> Events::let_wait(const StreamReference& stream, const EventReference& reference,
                              std::optional<uint32_t> limit) {
  Event& event = *reference.event;
  const uint32_t limit_seconds =
      limit.value_or(default_wait_limit_.load(std::memory_order_relaxed));
  US_TRY(streams_.prepare(stream));
  MutexLock lock(event.mutex);
  if (!is_same(event, reference)) return was_destroyed(reference);
  if (stream.holds_tasks()) return hold(stream);
  if (event.shared != nullptr && event.shared->latest() != event.shared_record) {
    const uint64_t record = event.shared->latest();
    if (event.shared->state(record) == RecordState::kReached) {
      if (is_order_checked()) [[unlikely]]
        Order::note_behind_all(stream.stream->index, stream.stream->submitted.load());
      return {};
    }
    Task task(TaskKind::kWaitForShared, stream.device());
    event.shared->add_user();
    task.shared_wait = {event.shared, record, limit_seconds, 0, false, kNever};
    US_TRY(streams_.submit_prepared(stream, task));
    return {};
  }
  const bool classic = event.family.load() == EventFamily::kClassic;
  Task task(TaskKind::kWaitForRecord, stream.device());
  task.wait = {.stream = nullptr,
               .position = 0,
               .moment = {&event, reference.state, event.sequence.load()},
               .limit_seconds = limit_seconds,
               .is_counted = classic,
               .has_begun = false,
               .deadline = kNever};
  // A reset that comes before the wait takes effect before it.
  const auto& [reset, reset_sequence] = event.queued_reset;
  const bool is_reset = reset.stream == stream.stream && reset_sequence == event.sequence.load() &&
                        !stream.stream->is_done(reset.position);
  if (event.record && !is_reset) {
    const auto [on, position] = *event.record;
    // Tasks of the stream itself come one after the other anyway.
    if (on == stream.stream) return {};
    if (on->is_done(position)) {
      if (is_order_checked()) [[unlikely]]
        Order::note_behind(stream.stream->index, stream.stream->submitted.load(),
                           task_at(*on, position));
      streams_.order().note(*stream.stream, *on, position, 0);
      return {};
    }
    task.wait.stream = on;
    task.wait.position = position;
  } else if (!classic) {
    return {};
  } else if (!event.can_reset.load()) {
    return Error::format(ErrorCode::kInvalidParam,
                         "event %u was never recorded and has no SYNC flag, so no stream can wait "
                         "for it",
                         event.index);
  }
  // The task looks at these under the lock.
  US_TRY_ASSIGN(const uint64_t queued, streams_.submit_prepared(stream, task));
  if (task.wait.stream != nullptr && limit_seconds == 0) {
    streams_.order().note(*stream.stream, *task.wait.stream, task.wait.position, queued);
  }
  if (task.wait.stream == nullptr) ++event.unbound_tasks;
  if (classic) ++event.queued_waits;
  return {};
}

Result<void> Events::hold(const StreamReference& stream) {
  US_TRY(streams_.submit_prepared(stream, Task(TaskKind::kNothing, stream.device())));
  return {};
}

Result<Events::Latest> Events::latest_of_any(const EventReference& reference) {
  Event& event = *reference.event;
  MutexLock lock(event.mutex);
  if (!is_same(event, reference)) return was_destroyed(reference);
  if (event.shared == nullptr) return Latest{.record = event.record};
  const uint64_t record = event.shared->latest();
  // This process can do more about its own.
  if (record == event.shared_record) return Latest{.record = event.record};
  event.shared->add_user();
  return Latest{std::nullopt, event.shared, record};
}

Result<std::optional<bool>> Events::status(const EventReference& reference) {
  US_TRY_ASSIGN(const Latest latest, latest_of_any(reference));
  if (latest.shared != nullptr) {
    const RecordState state = latest.shared->state(latest.shared_record);
    latest.shared->drop_user();
    if (state == RecordState::kLost) return record_lost();
    if (state == RecordState::kReached && is_order_checked()) [[unlikely]]
      Order::note_all_known();
    return std::optional(state == RecordState::kReached);
  }
  if (!latest.record) return std::optional<bool>();
  const auto [on, position] = *latest.record;
  const bool is_reached = on->is_done(position);
  if (is_reached) note_known_task(*on, position);
  return std::optional(is_reached);
}

Result<bool> Events::is_complete(const EventReference& reference) {
  streams_.let_run_for_query();
  US_TRY_ASSIGN(const std::optional<bool> reached, status(reference));
  return reached.value_or(reference.family() != EventFamily::kClassic);
}

Result<bool> Events::waits_are_over(const EventReference& reference) {
  streams_.let_run_for_query();
  Event& event = *reference.event;
  MutexLock lock(event.mutex);
  if (!is_same(event, reference)) return was_destroyed(reference);
  if (event.queued_waits != 0) return false;
  // The streams that waited may have been any, and have gone on.
  if (is_order_checked()) [[unlikely]]
    Order::note_all_known();
  return true;
}

Result<void> Events::synchronize(const EventReference& reference, Deadline deadline) {
  US_TRY_ASSIGN(const Latest latest, latest_of_any(reference));
  bool is_reached = true;
  if (latest.shared != nullptr) {
    ScopeExit leave([&] { latest.shared->drop_user(); });
    // Another process may wait for tasks of this one.
    Demand anything;
    const WaitGraph::Demanding demanding(streams_.wait_graph(), anything);
    is_reached = latest.shared->wait(latest.shared_record, deadline);
    if (latest.shared->state(latest.shared_record) == RecordState::kLost) return record_lost();
    if (is_reached && is_order_checked()) [[unlikely]]
      Order::note_all_known();
  } else if (latest.record) {
    is_reached = streams_.wait_until(*latest.record->stream, latest.record->position, deadline);
  }
  if (is_reached) return {};
  return Error::format(ErrorCode::kEventTimeout, "event %u was not reached at the time limit",
                       reference.event->index);
}

Result<Clock::time_point> Events::time(const EventReference& reference) {
  Event& event = *reference.event;
  MutexLock lock(event.mutex);
  if (!is_same(event, reference)) return was_destroyed(reference);
  if (!event.has_time.load()) {
    return Error::format(ErrorCode::kNoTimestamp, "event %u was created without TIME_LINE",
                         event.index);
  }
  if (!event.record) {
    return Error::format(ErrorCode::kNeverRecorded, "event %u was never recorded", event.index);
  }
  if (!event.record->stream->is_done(event.record->position) ||
      event.time_sequence != event.sequence.load()) {
    return Error::format(ErrorCode::kNoTimestamp, "event %u is not reached yet", event.index);
  }
  note_known_task(*event.record->stream, event.record->position);
  return event.time;
}

}  // namespace understudy
