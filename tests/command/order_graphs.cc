// SPDX-License-Identifier: Apache-2.0
// Random graphs of streams, for the check `order`:
//   order_graphs legal SEED COUNT    graphs in which everything that conflicts is in order
//   order_graphs planted SEED        one graph, with one order left out that two tasks need
// Which tasks come behind which is decided here by sets of tasks, without clocks.
#include <acl/acl.h>

#include <bitset>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace {

constexpr size_t kMostTasks = 64;
constexpr size_t kBytes = 4096;
constexpr size_t kStreams = 5;
using Tasks = std::bitset<kMostTasks>;

void require(aclError code, const char* what) {
  if (code == ACL_SUCCESS) return;
  fprintf(stderr, "%s: %d\n", what, code);
  exit(2);
}

enum class Edge { kEvent, kNotify, kSynchronize };

struct Step {
  enum { kSet, kCopy, kEdge } kind;
  size_t stream = 0;
  size_t to = 0;
  size_t from = 0;  // of an edge: the stream that `stream` comes behind
  Edge edge = Edge::kEvent;
};

struct Graph {
  size_t streams = 0;
  size_t buffers = 0;
  std::vector<Step> steps;
};

// The tasks of a graph, as far as they are in order.
class Model {
 public:
  explicit Model(const Graph& graph)
      : known_(graph.streams), users_(graph.buffers), writers_(graph.buffers) {}

  // A stream with a task that conflicts and that the step does not come behind; none: SIZE_MAX.
  size_t conflicts_with(const Step& step) const {
    const Tasks behind = known_[step.stream] | host_;
    Tasks wrong = users_[step.to] & ~behind;
    if (step.kind == Step::kCopy) wrong |= writers_[step.from] & ~behind;
    for (size_t task = 0; task < kMostTasks; ++task) {
      if (wrong[task]) return stream_of_[task];
    }
    return SIZE_MAX;
  }
  void make(const Step& step) {
    if (step.kind == Step::kEdge) {
      if (step.edge == Edge::kSynchronize) {
        host_ |= known_[step.from];
      } else {
        known_[step.stream] |= known_[step.from];
      }
      return;
    }
    const size_t task = stream_of_.size();
    stream_of_.push_back(step.stream);
    known_[step.stream] |= host_;
    known_[step.stream].set(task);
    users_[step.to].set(task);
    writers_[step.to].set(task);
    if (step.kind == Step::kCopy) users_[step.from].set(task);
  }

 private:
  Tasks host_;
  std::vector<Tasks> known_;
  std::vector<Tasks> users_;
  std::vector<Tasks> writers_;
  std::vector<size_t> stream_of_;
};

Graph random_graph(std::mt19937& random, bool has_notifies) {
  const auto below = [&](size_t limit) { return random() % limit; };
  Graph graph;
  graph.streams = 2 + below(4);
  graph.buffers = 2 + below(4);
  Model model(graph);
  std::bitset<kStreams * kStreams> flags;
  const size_t tasks = 6 + below(24);
  for (size_t i = 0; i < tasks; ++i) {
    Step step{below(2) == 0 ? Step::kSet : Step::kCopy, below(graph.streams), below(graph.buffers),
              0, Edge::kEvent};
    step.from = (step.to + 1 + below(graph.buffers - 1)) % graph.buffers;
    for (size_t other; (other = model.conflicts_with(step)) != SIZE_MAX;) {
      const size_t kind = below(8);
      // A flag that is set twice before a stream takes it would let one stream wait for ever.
      const size_t pair = other * kStreams + step.stream;
      const bool takes_flag = has_notifies && kind < 3 && !flags[pair];
      const Edge edge = kind == 0 ? Edge::kSynchronize : takes_flag ? Edge::kNotify : Edge::kEvent;
      if (edge == Edge::kNotify) flags.set(pair);
      const Step behind{Step::kEdge, step.stream, 0, other, edge};
      model.make(behind);
      graph.steps.push_back(behind);
    }
    model.make(step);
    graph.steps.push_back(step);
  }
  return graph;
}

// The number of an edge without which two tasks that conflict are in no order; none: SIZE_MAX.
size_t needed_edge(const Graph& graph, std::mt19937& random) {
  std::vector<size_t> needed;
  for (size_t left_out = 0; left_out < graph.steps.size(); ++left_out) {
    if (graph.steps[left_out].kind != Step::kEdge) continue;
    Model model(graph);
    for (size_t i = 0; i < graph.steps.size(); ++i) {
      if (i == left_out) continue;
      const Step& step = graph.steps[i];
      if (step.kind != Step::kEdge && model.conflicts_with(step) != SIZE_MAX) {
        needed.push_back(left_out);
        break;
      }
      model.make(step);
    }
  }
  return needed.empty() ? SIZE_MAX : needed[random() % needed.size()];
}

// Runs graphs on the same streams, one after the other.
class Runner {
 public:
  Runner() {
    for (aclrtStream& stream : streams_) require(aclrtCreateStream(&stream), "stream");
    for (void*& buffer : buffers_) {
      require(aclrtMalloc(&buffer, kBytes, ACL_MEM_MALLOC_HUGE_FIRST), "malloc");
    }
    for (aclrtNotify& notify : notifies_) require(aclrtCreateNotify(&notify, 0), "notify");
  }
  void run(const Graph& graph, size_t left_out) {
    std::vector<aclrtEvent> events;
    for (size_t i = 0; i < graph.steps.size(); ++i) {
      if (i != left_out) make(graph.steps[i], events);
    }
    require(aclrtSynchronizeDevice(), "synchronize device");
    for (aclrtEvent event : events) require(aclrtDestroyEvent(event), "destroy event");
  }
  ~Runner() {
    for (aclrtNotify notify : notifies_) aclrtDestroyNotify(notify);
    for (void* buffer : buffers_) aclrtFree(buffer);
    for (aclrtStream stream : streams_) aclrtDestroyStream(stream);
  }

 private:
  void make(const Step& step, std::vector<aclrtEvent>& events) {
    aclrtStream stream = streams_[step.stream];
    void* const to = buffers_[step.to];
    if (step.kind == Step::kSet) {
      require(aclrtMemsetAsync(to, kBytes, 1, kBytes, stream), "set");
    } else if (step.kind == Step::kCopy) {
      require(aclrtMemcpyAsync(to, kBytes, buffers_[step.from], kBytes, ACL_MEMCPY_DEVICE_TO_DEVICE,
                               stream),
              "copy");
    } else if (step.edge == Edge::kSynchronize) {
      require(aclrtSynchronizeStream(streams_[step.from]), "synchronize");
    } else if (step.edge == Edge::kNotify) {
      aclrtNotify notify = notifies_[step.from * kStreams + step.stream];
      require(aclrtRecordNotify(notify, streams_[step.from]), "record notify");
      require(aclrtWaitAndResetNotify(notify, stream, 0), "wait for notify");
    } else {
      aclrtEvent event = nullptr;
      require(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC), "event");
      events.push_back(event);
      require(aclrtRecordEvent(event, streams_[step.from]), "record");
      require(aclrtStreamWaitEvent(stream, event), "wait");
    }
  }

  aclrtStream streams_[kStreams] = {};
  void* buffers_[5] = {};
  aclrtNotify notifies_[kStreams * kStreams] = {};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  std::mt19937 random(static_cast<unsigned>(strtoul(argv[2], nullptr, 10)));
  require(aclInit(nullptr), "init");
  require(aclrtSetDevice(0), "set device");
  {
    Runner runner;
    if (strcmp(argv[1], "legal") == 0 && argc == 4) {
      for (long count = strtol(argv[3], nullptr, 10); count > 0; --count) {
        runner.run(random_graph(random, true), SIZE_MAX);
      }
    } else {
      Graph graph;
      size_t edge = SIZE_MAX;
      while (edge == SIZE_MAX) {
        graph = random_graph(random, false);
        edge = needed_edge(graph, random);
      }
      runner.run(graph, edge);
    }
  }
  require(aclrtResetDevice(0), "reset");
  require(aclFinalize(), "finalize");
  return 0;
}
