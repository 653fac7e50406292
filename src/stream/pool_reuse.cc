// SPDX-License-Identifier: Apache-2.0
#include "stream/pool_reuse.h"

namespace understudy {

namespace {

uint64_t owner_of(const Stream& stream) { return to_address(&stream); }

bool is_better(const std::optional<PoolRange>& found, const std::optional<ReuseChoice>& best) {
  return found && (!best || found->range.size < best->range.range.size);
}

// Calls visit(owner, its stream) for all streams but one that freed something.
template <typename Visit>
void for_each_other(const PoolRanges& ranges, const Stream& stream, Visit visit) {
  for (auto owner = ranges.first_owner(); owner; owner = ranges.owner_after(*owner)) {
    Stream* const other = freed_on({*owner, 0});
    if (other != nullptr && other != &stream) visit(*owner, *other);
  }
}

// What was freed on a stream that has ended is anyone's. With the rule for it, all that has run is.
void release_what_has_run(PoolRanges& ranges, const ReuseRules& rules, const Stream& stream) {
  for_each_other(ranges, stream, [&](uint64_t owner, const Stream& other) {
    if (!rules.opportunistic && SlotState::alive(other.state.load())) return;
    for (auto oldest = ranges.oldest(owner); oldest && has_run(oldest->mark);
         oldest = ranges.oldest(owner)) {
      ranges.release_to_anyone(oldest->range.base);
    }
  });
}

}  // namespace

FreeMark free_mark(const Stream& stream) { return {owner_of(stream), stream.submitted.load()}; }

Stream* freed_on(const FreeMark& mark) { return static_cast<Stream*>(to_pointer(mark.owner)); }

bool has_run(const FreeMark& mark) {
  const Stream* const stream = freed_on(mark);
  return stream == nullptr || stream->is_done(mark.position);
}

std::optional<ReuseChoice> choose_range(PoolRanges& ranges, const ReuseRules& rules, uint64_t size,
                                        Stream& stream, StreamOrder& order) {
  std::optional<ReuseChoice> best;
  const auto consider = [&](const std::optional<PoolRange>& found) {
    if (is_better(found, best)) best = ReuseChoice{*found};
    return best && best->range.range.size == size;
  };
  if (consider(ranges.best_fit(owner_of(stream), size))) return best;
  release_what_has_run(ranges, rules, stream);
  if (consider(ranges.best_fit(FreeMark::kAnyone, size))) return best;
  if (rules.follow_events) {
    for_each_other(ranges, stream, [&](uint64_t owner, const Stream& other) {
      consider(ranges.best_fit_until(owner, size, order.reached_before(stream, other)));
    });
  }
  if (best || !rules.add_waits) return best;
  for_each_other(ranges, stream,
                 [&](uint64_t owner, const Stream&) { consider(ranges.best_fit(owner, size)); });
  if (best) best->needs_wait = !has_run(best->range.mark);
  return best;
}

std::optional<PoolRange> find_released(const PoolRanges& ranges) {
  for (auto owner = ranges.first_owner(); owner; owner = ranges.owner_after(*owner)) {
    const std::optional<PoolRange> oldest = ranges.oldest(*owner);
    if (has_run(oldest->mark)) return oldest;
  }
  return std::nullopt;
}

}  // namespace understudy
