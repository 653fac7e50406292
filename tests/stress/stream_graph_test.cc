// SPDX-License-Identifier: Apache-2.0
//
// Random graphs of operations run on many streams, submitted by one thread or several, while some
// streams are synchronised: every byte is as if the operations had run one after the other.
#include "stress/stream_graph.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <vector>

#include "rules/host_objects.h"
#include "stress/stream_fleet.h"
#include "stress/threads.h"
#include "support/rule_test.h"
#include "support/sanitizers.h"

namespace understudy_test {
namespace {

const size_t kOperations = kSanitized ? 2000 : 12'000;
const unsigned kSeeds = kSanitized ? 3 : 6;

using StreamGraph = DeviceTest;

// The places of a graph, all zero.
class Places {
 public:
  Places() : device_(kDevicePlaces * kPlaceBytes), host_((kPlaces - kDevicePlaces) * kPlaceBytes) {
    EXPECT_SUCCESS(aclrtMemset(device_.data(), device_.size(), 0, device_.size()));
    memset(host_.data(), 0, host_.size());
  }

  void* at(size_t place, size_t offset) const {
    return is_host(place) ? host_.at((place - kDevicePlaces) * kPlaceBytes + offset)
                          : device_.at(place * kPlaceBytes + offset);
  }
  std::vector<uint8_t> bytes_of(size_t place) const {
    if (!is_host(place)) return copy_out(at(place, 0), kPlaceBytes);
    const auto* const start = static_cast<const uint8_t*>(at(place, 0));
    return {start, start + kPlaceBytes};
  }

 private:
  MallocedMemory device_;
  HostBlock host_;
};

// Submits the actions of a graph. Each stream is served by one thread, and whoever wants to wait
// for a record first sees that it was submitted: all records before it in the list will be.
class Submitter {
 public:
  // With fewer events than records, events are recorded again; that takes a single thread.
  Submitter(const Graph& graph, const Places& places, size_t events)
      : graph_(graph),
        places_(places),
        streams_(graph.streams),
        events_(events),
        submitted_(graph.records) {
    for (const Operation& operation : graph.operations) mixes_.push_back({this, &operation});
  }

  void submit_share(size_t thread, size_t threads) {
    size_t submitted = 0;
    for (const Action& action : graph_.actions) {
      if (action.stream % threads != thread) continue;
      submit(action);
      // Whoever synchronises may run tasks in place of a worker.
      if (++submitted % 97 != 0) continue;
      EXPECT_SUCCESS(synchronize_within_limit(streams_[action.stream]));
    }
  }
  void synchronize_all() const { streams_.synchronize_all(); }

 private:
  struct MixTask {
    const Submitter* submitter;
    const Operation* operation;
  };

  void submit(const Action& action) {
    const aclrtStream stream = streams_[action.stream];
    switch (action.what) {
      case Action::What::kOperation:
        return submit_operation(action.index, stream);
      case Action::What::kRecord:
        EXPECT_SUCCESS(aclrtRecordEvent(event_of(action.index), stream));
        submitted_[action.index] = true;
        submitted_[action.index].notify_all();
        return;
      case Action::What::kWait:
        submitted_[action.index].wait(false);
        EXPECT_SUCCESS(aclrtStreamWaitEvent(stream, event_of(action.index)));
        return;
    }
  }

  void submit_operation(size_t index, aclrtStream stream) {
    const Operation& operation = graph_.operations[index];
    const size_t count = operation.count;
    void* const to = places_.at(operation.to, operation.to_offset);
    const void* const from = places_.at(operation.from, operation.from_offset);
    switch (operation.kind) {
      case OperationKind::kSet:
        EXPECT_SUCCESS(aclrtMemsetAsync(to, count, operation.value, count, stream));
        return;
      case OperationKind::kSetWords:
        EXPECT_SUCCESS(
            aclrtMemsetD32Async(to, count, operation.value * 0x01010101U, count / 4, stream));
        return;
      case OperationKind::kCopy:
        EXPECT_SUCCESS(aclrtMemcpyAsync(to, count, from, count, ACL_MEMCPY_DEFAULT, stream));
        return;
      case OperationKind::kCapturedCopy:
        EXPECT_SUCCESS(aclrtMemcpyAsync(to, count, captured_bytes(operation).data(), count,
                                        ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE, stream));
        return;
      case OperationKind::kMixOnHost:
        EXPECT_SUCCESS(aclrtLaunchHostFunc(stream, mix_now, &mixes_[index]));
        return;
    }
  }

  static void mix_now(void* argument) {
    const auto& [submitter, operation] = *static_cast<const MixTask*>(argument);
    const Places& places = submitter->places_;
    mix(static_cast<uint8_t*>(places.at(operation->to, operation->to_offset)),
        static_cast<const uint8_t*>(places.at(operation->from, operation->from_offset)),
        operation->count, operation->value);
  }

  aclrtEvent event_of(size_t record) const { return events_[record % events_.size()]; }

  const Graph& graph_;
  const Places& places_;
  const StreamFleet streams_;
  const EventFleet events_;
  std::vector<MixTask> mixes_;
  std::vector<std::atomic<bool>> submitted_;
};

void expect_as_if_sequential(const Graph& graph, const Places& places) {
  Sequential sequential;
  for (const Operation& operation : graph.operations) sequential.run(operation);
  for (size_t place = 0; place < kPlaces; ++place) {
    EXPECT_TRUE(places.bytes_of(place) == sequential.place(place)) << "place " << place;
  }
}

void run_graph(const Graph& graph, size_t events, int threads) {
  const Places places;
  Submitter submitter(graph, places, events);
  run_on_threads(threads, [&](int thread) {
    submitter.submit_share(static_cast<size_t>(thread), static_cast<size_t>(threads));
  });
  submitter.synchronize_all();
  expect_as_if_sequential(graph, places);
}

// Runs graphs of several seeds and numbers of streams. `events` are recorded in turn.
void run_graphs(int threads, size_t events) {
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    for (const size_t streams : {2U, 5U, 32U}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << streams << " streams");
      const Graph graph = random_graph(seed, streams, kOperations, events);
      run_graph(graph, std::min(events, graph.records), threads);
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST_F(StreamGraph, OneThreadSubmits) { run_graphs(1, SIZE_MAX); }

TEST_F(StreamGraph, EventsAreRecordedAgainWhileStreamsWaitForThem) { run_graphs(1, 3); }

TEST_F(StreamGraph, SeveralThreadsSubmit) { run_graphs(4, SIZE_MAX); }

}  // namespace
}  // namespace understudy_test
