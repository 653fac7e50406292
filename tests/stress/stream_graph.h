// SPDX-License-Identifier: Apache-2.0
//
// Random graphs of copies, sets and host functions on many streams, in which conflicting accesses
// are ordered by streams and events and nothing else is; and the same operations one after the
// other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "support/rule_test.h"

namespace understudy_test {

inline constexpr size_t kPlaceBytes = 6000;  // neither whole pages nor whole lines
inline constexpr size_t kDevicePlaces = 48;
inline constexpr size_t kPlaces = 72;  // those behind the device's are page-locked host memory

inline bool is_host(size_t place) { return place >= kDevicePlaces; }

enum class OperationKind : uint8_t { kSet, kSetWords, kCopy, kCapturedCopy, kMixOnHost };

// One operation. Only kCopy and kMixOnHost read another place than the one they write to.
struct Operation {
  OperationKind kind;
  size_t to;
  size_t from;
  size_t to_offset;
  size_t from_offset;
  size_t count;
  uint8_t value;
};

inline bool reads(const Operation& operation) {
  return operation.kind == OperationKind::kCopy || operation.kind == OperationKind::kMixOnHost;
}

// What a host function computes; whatever it sees too early or too late shows in the result.
inline void mix(uint8_t* to, const uint8_t* from, size_t count, uint8_t value) {
  for (size_t i = 0; i < count; ++i) to[i] = static_cast<uint8_t>(to[i] * 31 + from[i] + value);
}

// The bytes of a captured copy.
inline std::vector<uint8_t> captured_bytes(const Operation& operation) {
  return pattern(operation.count, operation.value);
}

class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  size_t below(size_t limit) { return random_() % limit; }

  Operation operation() {
    Operation made = {};
    made.kind = static_cast<OperationKind>(below(5));
    const bool on_host =
        made.kind == OperationKind::kMixOnHost || (made.kind == OperationKind::kCopy && one_of(3));
    made.to = on_host ? host_place() : below(kDevicePlaces);
    made.from = made.kind == OperationKind::kMixOnHost ? host_place()
                : on_host                              ? below(kDevicePlaces)
                                                       : below(kPlaces);
    if (made.from == made.to) made.kind = on_host ? OperationKind::kMixOnHost : OperationKind::kSet;
    made.count = 4 * (1 + below(one_of(8) ? kPlaceBytes / 4 : 64));
    made.to_offset = 4 * below((kPlaceBytes - made.count) / 4 + 1);
    made.from_offset = below(kPlaceBytes - made.count + 1);
    made.value = static_cast<uint8_t>(random_());
    return made;
  }

 private:
  bool one_of(size_t cases) { return below(cases) == 0; }
  size_t host_place() { return kDevicePlaces + below(kPlaces - kDevicePlaces); }

  std::mt19937 random_;
};

// What is submitted, in order: an operation, a record or a wait.
struct Action {
  enum class What : uint8_t { kOperation, kRecord, kWait } what;
  size_t stream;
  size_t index;  // of the operation or the record
};

struct Graph {
  size_t streams;
  std::vector<Operation> operations;
  std::vector<Action> actions;
  size_t records = 0;
};

// Adds records and waits where an operation conflicts with one of another stream that it is not
// behind yet.
class GraphBuilder {
 public:
  // There are so many events, recorded in turn.
  GraphBuilder(size_t streams, size_t events)
      : events_(events),
        graph_{streams, {}, {}, 0},
        done_(streams, 0),
        seen_(streams, Clock(streams, 0)),
        records_(streams) {}

  void add(const Operation& operation, size_t stream) {
    order_behind(places_[operation.to].writer, stream);
    for (const Access& reader : places_[operation.to].readers) order_behind(reader, stream);
    if (reads(operation)) order_behind(places_[operation.from].writer, stream);
    graph_.actions.push_back({Action::What::kOperation, stream, graph_.operations.size()});
    graph_.operations.push_back(operation);
    const Access access{stream, ++done_[stream]};
    places_[operation.to].writer = access;
    places_[operation.to].readers.clear();
    if (reads(operation)) places_[operation.from].readers.push_back(access);
  }

  Graph take() { return std::move(graph_); }

 private:
  using Clock = std::vector<size_t>;  // per stream, how many of its operations are before
  struct Access {
    size_t stream = 0;
    size_t position = 0;  // from 1; 0: none
  };
  struct Place {
    Access writer;
    std::vector<Access> readers;  // since it was written
  };
  struct Record {
    size_t index;
    size_t position;
    Clock seen;
  };

  void order_behind(const Access& access, size_t stream) {
    if (access.stream == stream || seen_[stream][access.stream] >= access.position) return;
    std::optional<Record>& record = records_[access.stream];
    if (!record || record->position < access.position || !is_latest_of_its_event(*record)) {
      record = Record{graph_.records++, done_[access.stream], seen_[access.stream]};
      graph_.actions.push_back({Action::What::kRecord, access.stream, record->index});
    }
    graph_.actions.push_back({Action::What::kWait, stream, record->index});
    Clock& seen = seen_[stream];
    for (size_t i = 0; i < seen.size(); ++i) seen[i] = std::max(seen[i], record->seen[i]);
    seen[access.stream] = std::max(seen[access.stream], record->position);
  }

  bool is_latest_of_its_event(const Record& record) const {
    return graph_.records - record.index <= events_;
  }

  const size_t events_;
  Graph graph_;
  std::vector<size_t> done_;
  std::vector<Clock> seen_;
  std::vector<std::optional<Record>> records_;  // the latest of each stream
  Place places_[kPlaces];
};

inline Graph random_graph(unsigned seed, size_t streams, size_t operations, size_t events) {
  Generator generator(seed);
  GraphBuilder builder(streams, events);
  for (size_t i = 0; i < operations; ++i) {
    builder.add(generator.operation(), generator.below(streams));
  }
  return builder.take();
}

// The same operations, one after the other.
class Sequential {
 public:
  Sequential() : places_(kPlaces, std::vector<uint8_t>(kPlaceBytes, 0)) {}

  void run(const Operation& operation) {
    uint8_t* const to = places_[operation.to].data() + operation.to_offset;
    const uint8_t* const from = places_[operation.from].data() + operation.from_offset;
    switch (operation.kind) {
      case OperationKind::kSet:
      case OperationKind::kSetWords:
        memset(to, operation.value, operation.count);
        break;
      case OperationKind::kCopy:
        memcpy(to, from, operation.count);
        break;
      case OperationKind::kCapturedCopy:
        memcpy(to, captured_bytes(operation).data(), operation.count);
        break;
      case OperationKind::kMixOnHost:
        mix(to, from, operation.count, operation.value);
        break;
    }
  }
  const std::vector<uint8_t>& place(size_t index) const { return places_[index]; }

 private:
  std::vector<std::vector<uint8_t>> places_;
};

}  // namespace understudy_test
