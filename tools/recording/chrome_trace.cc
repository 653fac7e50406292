// SPDX-License-Identifier: Apache-2.0
//
// Written by hand, piece by piece: a JSON library takes many times as long for a million events.
// What stands for one call is made once where it can be: names and stacks as JSON.
#include "tools/recording/chrome_trace.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/recording/argument_text.h"
#include "tools/recording/chrome_arrows.h"
#include "tools/recording/chrome_tracks.h"
#include "tools/recording/memory_samples.h"
#include "tools/recording/place_names.h"
#include "tools/recording/valid_text.h"

namespace understudy::command {

namespace {

constexpr const char* kQueueArrow = "queue";
constexpr const char* kWaitArrow = "wait";

class ChromeTrace {
 public:
  explicit ChromeTrace(const Recording& recording) : recording_(recording) {}

  std::string write();

 private:
  void write_facts();
  void name_tracks();
  void write_calls();
  void write_call(uint32_t index, uint64_t end);
  void write_open_call(uint32_t thread);
  void write_tasks();
  void write_task(uint32_t index, uint64_t end);
  void write_memory_of(int32_t device, std::span<const MemorySample> samples);

  // More of a counter than a screen can show.
  static constexpr size_t kMostSamples = 30000;

  // The next event, up to its time.
  void begin_event(const char* phase, Track track, uint64_t time);
  void begin_event(const char* phase, Track track) {
    text_ += first_event_ ? "\n" : ",\n";
    first_event_ = false;
    text_ += R"({"ph":")";
    text_ += phase;
    text_ += R"(","pid":)";
    append_number(text_, track.process);
    text_ += R"(,"tid":)";
    append_number(text_, track.number);
  }
  void add_microseconds(uint64_t nanoseconds);
  void name_track(const char* what, Track track, std::string_view name);
  void order_track(const char* what, Track track, uint64_t order);
  void write_arrow_end(const char* phase, const char* kind, Track track, uint64_t time,
                       uint32_t task);
  // A JSON text of a table, made when it is first asked for.
  const std::string& quoted(std::vector<std::string>& made, uint32_t index,
                            std::string_view text) const {
    if (made[index].empty()) append_json_text(made[index], text);
    return made[index];
  }
  const Recording& recording_;
  std::string text_;
  std::string scratch_;
  bool first_event_ = true;
  std::vector<uint32_t> processes_;  // their numbers, by position
  std::vector<Track> threads_;
  std::vector<Track> streams_;
  Track memory_{};
  std::vector<std::string> stacks_;
  std::vector<std::vector<std::string>> parameters_;  // `,"size":`, of each function
  std::vector<std::string> functions_;
  std::vector<std::string> task_kinds_;
};

void ChromeTrace::add_microseconds(uint64_t nanoseconds) {
  append_number(text_, nanoseconds / 1000);
  const uint64_t rest = nanoseconds % 1000;
  if (rest == 0) return;
  const auto digit = [](uint64_t value) { return static_cast<char>('0' + value % 10); };
  const std::array<char, 4> fraction = {'.', digit(rest / 100), digit(rest / 10), digit(rest)};
  text_.append(fraction.data(), fraction.size());
}

void ChromeTrace::begin_event(const char* phase, Track track, uint64_t time) {
  begin_event(phase, track);
  text_ += R"(,"ts":)";
  add_microseconds(time);
}

void ChromeTrace::name_track(const char* what, Track track, std::string_view name) {
  begin_event("M", track);
  text_ += R"(,"name":")";
  text_ += what;
  text_ += R"(","args":{"name":)";
  append_json_text(text_, name);
  text_ += "}}";
}

void ChromeTrace::order_track(const char* what, Track track, uint64_t order) {
  begin_event("M", track);
  text_ += R"(,"name":")";
  text_ += what;
  text_ += R"(","args":{"sort_index":)";
  append_number(text_, order);
  text_ += "}}";
}

void ChromeTrace::write_arrow_end(const char* phase, const char* kind, Track track, uint64_t time,
                                  uint32_t task) {
  begin_event(phase, track, time);
  text_ += R"(,"cat":")";
  text_ += kind;
  text_ += R"(","name":")";
  text_ += kind;
  text_ += R"(","id":)";
  append_number(text_, task);
  text_ += R"(,"bp":"e"})";
}

void ChromeTrace::write_facts() {
  text_ += R"({"displayTimeUnit":"ns","otherData":{"made_by":"understudy trace","began_at_ns":")";
  append_number(text_, recording_.wall_clock);
  text_ += R"(","lost_records":")";
  append_number(text_, recording_.lost);
  text_ += '"';
  uint32_t number = 0;
  for (const std::string& note : recording_.notes) {
    text_ += R"(,"note_)";
    append_number(text_, ++number);
    text_ += "\":";
    append_json_text(text_, note);
  }
  text_ += R"(},"traceEvents":[)";
}

// The memory of the devices stands above the processes, which all have a share of it.
void ChromeTrace::name_tracks() {
  TrackNumbers processes;
  TrackNumbers tracks;
  for (const RecordedProcess& process : recording_.processes) {
    processes_.push_back(processes.take(process.pid));
    const Track track{processes_.back(), 0};
    name_track("process_name", track, process.program.empty() ? "program" : process.program);
    order_track("process_sort_index", track, processes_.size());
  }
  memory_ = {processes.take(0), 0};
  name_track("process_name", memory_, "memory");
  order_track("process_sort_index", memory_, 0);
  for (const RecordedThread& thread : recording_.threads) {
    threads_.push_back({processes_[thread.process], tracks.take(thread.number)});
    name_track("thread_name", threads_.back(), thread.name.empty() ? "thread" : thread.name);
    order_track("thread_sort_index", threads_.back(), threads_.size());
  }
  for (const RecordedStream& stream : recording_.streams) {
    streams_.push_back({processes_[stream.process], tracks.take(0)});
    std::string name = stream_name(stream);
    if (stream.device >= 0) name += ", " + device_name(stream.device);
    name_track("thread_name", streams_.back(), name);
    order_track("thread_sort_index", streams_.back(), threads_.size() + streams_.size());
  }
}

void ChromeTrace::write_open_call(uint32_t thread) {
  const RecordedThread& open = recording_.threads[thread];
  begin_event("B", threads_[thread], open.open_since);
  text_ += R"(,"cat":"call","name":)";
  text_ += quoted(functions_, open.open_function, recording_.functions[open.open_function].name);
  text_ += R"(,"args":{"state":"had not ended"}})";
}

void ChromeTrace::write_call(uint32_t index, uint64_t end) {
  const RecordedCall& call = recording_.calls[index];
  const RecordedFunction& function = recording_.functions[call.function];
  const Track track = threads_[call.thread];
  const std::string& name = quoted(functions_, call.function, function.name);
  begin_event("X", track, call.begin);
  text_ += R"(,"dur":)";
  add_microseconds(end - call.begin);
  text_ += R"(,"cat":"call","name":)";
  text_ += name;
  text_ += R"(,"args":{"code":)";
  append_signed(text_, call.code);
  std::vector<std::string>& names = parameters_[call.function];
  names.resize(function.parameters.size());
  std::span<const uint64_t> words = recording_.arguments(call);
  for (uint32_t place = 0; place < names.size(); ++place) {
    const Parameter& parameter = function.parameters[place];
    text_ += ',';
    text_ += quoted(names, place, parameter.name);
    text_ += ':';
    scratch_.clear();
    append_argument(scratch_, recording_, parameter, take_argument(words, parameter),
                    call.code != 0);
    append_json_text(text_, scratch_);
  }
  if (call.stack != kNone) {
    text_ += R"(,"stack":)";
    text_ += quoted(stacks_, call.stack, recording_.stacks[call.stack]);
  }
  text_ += "}}";
  if (call.code != 0) {
    begin_event("i", track, call.begin);
    text_ += R"(,"s":"t","cat":"failure","name":)";
    text_.append(name, 0, name.size() - 1);
    text_ += " failed: ";
    append_signed(text_, call.code);
    text_ += R"("})";
  }
}

void ChromeTrace::write_calls() {
  std::vector<SliceNesting> nesting(threads_.size());
  std::vector<bool> is_open(threads_.size());
  for (uint32_t thread = 0; thread < threads_.size(); ++thread) {
    is_open[thread] = recording_.threads[thread].open_function != kNone;
  }
  const std::vector<TraceArrow> arrows = queue_arrows(recording_);
  size_t next = 0;
  for (uint32_t index = 0; index < recording_.calls.size(); ++index) {
    const RecordedCall& call = recording_.calls[index];
    // A call of a callback that a call waits for comes behind that.
    if (is_open[call.thread] && recording_.threads[call.thread].open_since <= call.begin) {
      write_open_call(call.thread);
      is_open[call.thread] = false;
    }
    write_call(index, nesting[call.thread].end_of(call.begin, call.duration));
    for (; next < arrows.size() && arrows[next].from == index; ++next) {
      write_arrow_end("s", kQueueArrow, threads_[call.thread], call.begin, arrows[next].to);
    }
  }
  for (uint32_t thread = 0; thread < threads_.size(); ++thread) {
    if (is_open[thread]) write_open_call(thread);
  }
}

void ChromeTrace::write_task(uint32_t index, uint64_t end) {
  const RecordedTask& task = recording_.tasks[index];
  const Track track = streams_[task.stream];
  begin_event(task.has_run ? "X" : "i", track, task.begin);
  if (task.has_run) {
    text_ += R"(,"dur":)";
    add_microseconds(end - task.begin);
  } else {
    text_ += R"(,"s":"t")";
  }
  text_ += R"(,"cat":"task","name":)";
  text_ += quoted(task_kinds_, task.kind, recording_.task_kinds[task.kind]);
  text_ += R"(,"args":{"position":)";
  append_number(text_, task.position);
  if (task.has_run) {
    text_ += R"(,"code":)";
    append_signed(text_, task.code);
    text_ += R"(,"bytes":)";
    append_number(text_, task.bytes);
    text_ += R"(,"waited_us":)";
    add_microseconds(task.begin - std::min(task.queued, task.begin));
  } else {
    text_ += R"(,"state":"had not run")";
  }
  text_ += "}}";
}

// An event record may have several that wait for it. Each arrow has the number of its end.
void ChromeTrace::write_tasks() {
  const std::vector<RecordedTask>& tasks = recording_.tasks;
  std::vector<SliceNesting> nesting(streams_.size());
  const std::vector<TraceArrow> waits = wait_arrows(recording_);
  size_t next = 0;
  for (uint32_t index = 0; index < tasks.size(); ++index) {
    const RecordedTask& task = tasks[index];
    const Track track = streams_[task.stream];
    write_task(index, task.has_run ? nesting[task.stream].end_of(task.begin, task.duration) : 0);
    if (has_queue_arrow(recording_, index)) {
      write_arrow_end("f", kQueueArrow, track, task.begin, index);
    }
    if (has_wait_arrow(recording_, index)) {
      write_arrow_end("f", kWaitArrow, track, task.begin, index);
    }
    for (; next < waits.size() && waits[next].from == index; ++next) {
      write_arrow_end("s", kWaitArrow, track, task.begin, waits[next].to);
    }
  }
}

void ChromeTrace::write_memory_of(int32_t device, std::span<const MemorySample> samples) {
  for (const MemorySample& sample : samples) {
    begin_event("C", memory_, sample.time);
    text_ += R"(,"name":")";
    text_ += device_name(device);
    text_ += R"( memory","args":{"bytes":)";
    append_number(text_, sample.bytes);
    text_ += "}}";
  }
}

std::string ChromeTrace::write() {
  stacks_.resize(recording_.stacks.size());
  functions_.resize(recording_.functions.size());
  parameters_.resize(recording_.functions.size());
  task_kinds_.resize(recording_.task_kinds.size());
  write_facts();
  name_tracks();
  write_calls();
  write_tasks();
  for (const auto& [device, samples] : memory_samples(recording_, kMostSamples)) {
    write_memory_of(device, samples);
  }
  text_ += "\n]}\n";
  return std::move(text_);
}

}  // namespace

std::string chrome_trace(const Recording& recording) { return ChromeTrace(recording).write(); }

}  // namespace understudy::command
