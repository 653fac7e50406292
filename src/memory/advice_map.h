// SPDX-License-Identifier: Apache-2.0
//
// What a program has said about the use of one managed allocation: runs of granules about which the
// same was said. A change takes the memory it may need before it begins, so that it cannot fail
// half way. Of one thread at a time. Rules: MANAGED.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

namespace understudy {

// A place that memory is advised or moved to.
struct AdvisedLocation {
  enum class Kind : uint8_t { kNone, kDevice, kHost, kHostNuma };
  Kind kind = Kind::kNone;
  int32_t id = 0;  // of a device or a NUMA node, else 0
  friend bool operator==(const AdvisedLocation&, const AdvisedLocation&) = default;
};

struct UsageAdvice {
  bool read_mostly = false;
  bool accessed_by_host = false;
  uint32_t accessed_by_devices = 0;  // bit per device
  AdvisedLocation preferred;
  AdvisedLocation last_prefetch;
  friend bool operator==(const UsageAdvice&, const UsageAdvice&) = default;

  // What holds for both.
  UsageAdvice common_with(const UsageAdvice& other) const {
    return {
        .read_mostly = read_mostly && other.read_mostly,
        .accessed_by_host = accessed_by_host && other.accessed_by_host,
        .accessed_by_devices = accessed_by_devices & other.accessed_by_devices,
        .preferred = preferred == other.preferred ? preferred : AdvisedLocation{},
        .last_prefetch = last_prefetch == other.last_prefetch ? last_prefetch : AdvisedLocation{}};
  }
};

class AdviceMap {
  using Runs =
      std::map<uint64_t, UsageAdvice>;  // by first granule; a run ends where the next begins

 public:
  // What one change needs at most: its range begins and ends inside a run.
  class Spare {
   public:
    Spare() : begin_(make()), end_(make()) {}

   private:
    friend class AdviceMap;
    static Runs::node_type make() {
      Runs one;
      one.emplace();
      return one.extract(one.begin());
    }
    Runs::node_type begin_;
    Runs::node_type end_;
  };

  explicit AdviceMap(uint64_t granules) : granules_(granules) { runs_.emplace(); }

  // Calls change(advice) for all granules from `begin` up to `end`. REQUIRES: begin < end, and both
  // are inside the allocation.
  template <typename Change>
  void apply(uint64_t begin, uint64_t end, Spare spare, Change change) noexcept {
    split(begin, spare.begin_);
    if (end < granules_) split(end, spare.end_);
    auto run = runs_.find(begin);
    for (auto each = run; each != runs_.end() && each->first < end; ++each) change(each->second);
    // Neighbors about which the same was said become one run again.
    if (run != runs_.begin()) --run;
    for (auto next = std::next(run); next != runs_.end() && run->first < end;
         next = std::next(run)) {
      if (run->second == next->second) {
        runs_.erase(next);
      } else {
        run = next;
      }
    }
  }

  // What holds for all granules from `begin` up to `end`.
  UsageAdvice common(uint64_t begin, uint64_t end) const {
    auto run = std::prev(runs_.upper_bound(begin));
    UsageAdvice found = run->second;
    for (++run; run != runs_.end() && run->first < end; ++run) {
      found = found.common_with(run->second);
    }
    return found;
  }

  uint64_t count_runs() const { return runs_.size(); }

 private:
  // A run begins at the granule from now on.
  void split(uint64_t granule, Runs::node_type& spare) noexcept {
    const auto around = std::prev(runs_.upper_bound(granule));
    if (around->first == granule) return;
    spare.key() = granule;
    spare.mapped() = around->second;
    runs_.insert(std::move(spare));
  }

  const uint64_t granules_;
  Runs runs_;
};

}  // namespace understudy
