// SPDX-License-Identifier: Apache-2.0
#include "tools/trace_text.h"

#include <algorithm>

#include "base/size_text.h"
#include "tools/figure_text.h"
#include "tools/memory_chart.h"
#include "tools/recording/place_names.h"
#include "tools/text_table.h"

namespace understudy::command {

namespace {

constexpr size_t kShownNotes = 6;
constexpr size_t kShownProcesses = 3;
constexpr size_t kShownFunctions = 6;
constexpr size_t kShownFailures = 4;
constexpr size_t kShownCalls = 3;
constexpr size_t kShownPlaces = 5;
constexpr size_t kShownStreams = 4;
constexpr size_t kChartRows = 3;

// Writes one section after the other.
class TraceWriter {
 public:
  TraceWriter(const Recording& recording, const Summary& summary, PageStyle style,
              TextLength length)
      : recording_(recording), summary_(summary), page_(style), length_(length) {}

  void write_head(const std::string& file);
  void write_calls();
  void write_slowest();
  void write_memory();
  void write_places();
  void write_leaks();
  void write_tasks();
  void write_streams();
  void write_threads();
  const std::string& text() const { return page_.text(); }
  bool is_complete() const { return length_ == TextLength::kComplete; }

 private:
  size_t shown(size_t count, size_t on_a_screen) const {
    return is_complete() ? count : std::min(count, on_a_screen);
  }
  void write_rest(size_t count, size_t on_a_screen, const char* one, const char* many) {
    const size_t rest = count - shown(count, on_a_screen);
    if (rest > 0) {
      page_.add_emphasized(
          "  and " + std::to_string(rest) + " more " + (rest == 1 ? one : many) + ": --all",
          Emphasis::kFaint);
    }
  }
  void write_processes();
  void write_open_calls();
  void write_failures();
  void write_chart(const DeviceMemory& device, size_t rows);
  void write_fragmentation(int32_t device);
  std::string process_name(uint32_t process) const;
  std::string thread_name(uint32_t thread) const;
  // Where a call was made, by words that do not repeat its function.
  std::string call_place(const RecordedCall& call) const;

  const Recording& recording_;
  const Summary& summary_;
  PageOfText page_;
  TextLength length_;
};

std::string TraceWriter::process_name(uint32_t process) const {
  return std::to_string(recording_.processes[process].pid);
}

std::string TraceWriter::thread_name(uint32_t thread) const {
  const RecordedThread& named = recording_.threads[thread];
  std::string name = "thread " + std::to_string(named.number);
  if (!named.name.empty()) name += " (" + named.name + ")";
  if (recording_.processes.size() > 1) name += " of " + process_name(named.process);
  return name;
}

std::string TraceWriter::call_place(const RecordedCall& call) const {
  std::string function = recording_.functions[call.function].name;
  if (call.stack == kNone) return function;
  return function + " in " + place_name(recording_, call.stack, call.function);
}

void TraceWriter::write_head(const std::string& file) {
  std::string line = file + ": ";
  line += recording_.duration == 0 ? "0 s" : duration_cell(recording_.duration);
  line += " from " + moment_text(recording_.wall_clock) + ", " +
          counted(recording_.processes.size(), "process", "processes");
  if (recording_.is_ring) line += ", ring: the beginning may be missing";
  page_.add_emphasized(line, Emphasis::kTitle);
  for (size_t note = 0; note < shown(recording_.notes.size(), kShownNotes); ++note) {
    page_.add_emphasized("note: " + recording_.notes[note], Emphasis::kAlarm);
  }
  write_rest(recording_.notes.size(), kShownNotes, "note", "notes");
  write_processes();
  write_open_calls();
}

void TraceWriter::write_processes() {
  const size_t count = shown(recording_.processes.size(), kShownProcesses);
  for (uint32_t index = 0; index < count; ++index) {
    const RecordedProcess& process = recording_.processes[index];
    const std::string program = process.program.empty() ? "(no name)" : process.program;
    std::string facts;
    if (!process.product.empty()) {
      facts = "  (" + process.product + ", " + counted(process.devices, "device", "devices") +
              " of " + SizeText(process.device_memory).c_str() + ")";
    }
    page_.add_foreign_line("  " + std::to_string(process.pid) + " ", program + facts);
  }
  write_rest(recording_.processes.size(), kShownProcesses, "process", "processes");
}

void TraceWriter::write_open_calls() {
  for (uint32_t index = 0; index < recording_.threads.size(); ++index) {
    const RecordedThread& thread = recording_.threads[index];
    if (thread.open_function == kNone) continue;
    const uint64_t last = recording_.processes[thread.process].end;
    std::string line = "  " + thread_name(index) + " had not come back from " +
                       recording_.functions[thread.open_function].name + ", called at " +
                       duration_cell(thread.open_since);
    if (last > thread.open_since) {
      line += ", for " + duration_cell(last - thread.open_since) + " at least";
    }
    page_.add_emphasized(line, Emphasis::kAlarm);
  }
}

void TraceWriter::write_calls() {
  const CallFigures& calls = summary_.calls;
  const double seconds = static_cast<double>(recording_.duration) / 1e9;
  std::string title = "Calls: " + std::to_string(calls.calls);
  if (seconds > 0) title += ", " + rate_cell(static_cast<double>(calls.calls) / seconds);
  title += ", " + std::to_string(calls.failed) + " failed";
  page_.add_title(title);
  if (calls.functions.empty()) return;
  std::vector<PageOfText::Row> rows;
  for (size_t index = 0; index < shown(calls.functions.size(), kShownFunctions); ++index) {
    const FunctionFigures& function = calls.functions[index];
    const Spread& spread = function.durations;
    rows.push_back(
        {{count_cell(spread.count), count_cell(function.failed), duration_cell(spread.total),
          duration_cell(spread.mean()), duration_cell(spread.p50), duration_cell(spread.p99),
          duration_cell(spread.longest),
          seconds > 0 ? rate_cell(static_cast<double>(spread.count) / seconds) : "-"},
         recording_.functions[function.function].name});
  }
  page_.add_table({{"CALLS"},
                   {"FAILED"},
                   {"TOTAL"},
                   {"MEAN", true},
                   {"P50", true},
                   {"P99", true},
                   {"MAX", true},
                   {"RATE", true}},
                  "FUNCTION", rows);
  write_rest(calls.functions.size(), kShownFunctions, "function", "functions");
  write_failures();
}

void TraceWriter::write_failures() {
  const std::vector<FailureFigures>& failures = summary_.calls.failures;
  for (size_t index = 0; index < shown(failures.size(), kShownFailures); ++index) {
    const FailureFigures& failure = failures[index];
    page_.add_emphasized("  " + recording_.functions[failure.function].name + " failed with " +
                             std::to_string(failure.code) + ", " +
                             counted(failure.calls, "time", "times"),
                         Emphasis::kAlarm);
  }
  write_rest(failures.size(), kShownFailures, "way to fail", "ways to fail");
}

void TraceWriter::write_slowest() {
  const std::vector<uint32_t>& slowest = summary_.calls.slowest;
  if (slowest.empty()) return;
  page_.add_title("Slowest calls");
  std::vector<PageOfText::Row> rows;
  for (size_t index = 0; index < shown(slowest.size(), kShownCalls); ++index) {
    const RecordedCall& call = recording_.calls[slowest[index]];
    const RecordedThread& thread = recording_.threads[call.thread];
    rows.push_back(
        {{duration_cell(call.duration), duration_cell(call.begin), std::to_string(thread.number)},
         call_place(call)});
  }
  page_.add_table({{"TOOK"}, {"AT"}, {"THREAD", true}}, "CALL", rows);
}

void TraceWriter::write_chart(const DeviceMemory& device, size_t rows) {
  const std::string top = size_cell(device.peak.bytes);
  const size_t label = std::max<size_t>(top.size(), 8);
  const size_t width = page_.style().columns - label - 5;
  const bool is_utf8 = page_.style().letters == Letters::kUtf8;
  const std::vector<std::string> lines =
      chart_lines(device.curve, width, rows, page_.style().letters);
  for (size_t row = 0; row < lines.size(); ++row) {
    page_.add_raw("  " + fit(row == 0 ? top : "", label, Align::kRight) + " " +
                  page_.emphasized(is_utf8 ? "\u2502" : "|", Emphasis::kFaint) + lines[row] + "\n");
  }
  const std::string end = duration_cell(recording_.duration);
  page_.add_emphasized(
      "  " + fit("0", label, Align::kRight) + "  " + "0 s" + fit(end, width - 3, Align::kRight),
      Emphasis::kFaint);
}

std::string kinds_text(const Recording& recording, const std::vector<KindMemory>& kinds) {
  std::string text;
  for (const KindMemory& kind : kinds) {
    if (!text.empty()) text += ", ";
    text += RoughSizeText(kind.bytes).c_str();
    text += " in " + counted(kind.objects, "", "") + recording.object_kinds[kind.kind];
    if (kind.objects != 1) text += "s";
  }
  return text;
}

void TraceWriter::write_memory() {
  for (const DeviceMemory& device : summary_.memory.devices) {
    std::string title = device_name(device.device);
    title[0] = static_cast<char>(title[0] - 'a' + 'A');
    page_.add_title(title + ": peak " + RoughSizeText(device.peak.bytes).c_str() + " at " +
                    duration_cell(device.peak.time) + ", " + RoughSizeText(device.at_end).c_str() +
                    " at the end");
    write_chart(device, device.device == kHost ? 1 : kChartRows);
    page_.add_line(
        "  " + counted(device.allocations, "allocation", "allocations") + ", largest " +
        RoughSizeText(device.largest).c_str() + ", mean " +
        RoughSizeText(device.allocated / std::max<uint64_t>(device.allocations, 1)).c_str());
    page_.add_line("  at the peak: " + kinds_text(recording_, device.kinds_at_peak));
    if (!device.kinds_at_end.empty() && is_complete()) {
      page_.add_line("  at the end: " + kinds_text(recording_, device.kinds_at_end));
    }
    write_fragmentation(device.device);
  }
}

std::string fragmentation_text(const Fragmentation& found, bool is_host) {
  std::vector<std::string> parts;
  if (found.reserved > 0 && !is_host) {
    parts.push_back(share_cell(found.unmapped_share()) + " of " +
                    RoughSizeText(found.reserved).c_str() + " reserved is not mapped");
  }
  if (found.idle > 0) {
    parts.push_back(std::string(RoughSizeText(found.idle).c_str()) + " of " +
                    RoughSizeText(found.physical).c_str() + " physical is mapped nowhere");
  }
  if (found.holes > 0) {
    parts.push_back(counted(found.hole_count, "hole", "holes") + " of " +
                    RoughSizeText(found.holes).c_str() + " between allocations (" +
                    share_cell(found.hole_share()) + ", largest " +
                    RoughSizeText(found.largest_hole).c_str() + ")");
  }
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text;
}

void TraceWriter::write_fragmentation(int32_t device) {
  for (const ProcessFragmentation& each : summary_.fragmentation) {
    if (each.device != device) continue;
    const std::string whose =
        recording_.processes.size() > 1 ? " of " + process_name(each.process) : "";
    const std::string at_peak = fragmentation_text(each.at_peak, device == kHost);
    if (!at_peak.empty()) page_.add_line("  fragmentation" + whose + " at the peak: " + at_peak);
    const std::string at_end = fragmentation_text(each.at_end, device == kHost);
    if (!at_end.empty()) page_.add_line("  fragmentation" + whose + " at the end: " + at_end);
  }
}

void TraceWriter::write_places() {
  std::vector<const PlaceMemory*> places;
  for (const PlaceMemory& place : summary_.memory.places) {
    if (place.allocations > 0) places.push_back(&place);
  }
  if (places.empty()) return;
  page_.add_title(recording_.has_stacks
                      ? "Memory by place"
                      : "Memory by function (stacks were not recorded: --trace-stacks)");
  std::vector<PageOfText::Row> rows;
  for (size_t index = 0; index < shown(places.size(), kShownPlaces); ++index) {
    const PlaceMemory& place = *places[index];
    rows.push_back({{size_cell(place.at_peak), size_cell(place.at_end),
                     count_cell(place.allocations), size_cell(place.allocated)},
                    place_name(recording_, place.stack, place.function)});
  }
  page_.add_table({{"AT PEAK"}, {"AT END"}, {"ALLOCATIONS"}, {"ALLOCATED", true}}, "PLACE", rows);
  write_rest(places.size(), kShownPlaces, "place", "places");
}

void TraceWriter::write_leaks() {
  if (summary_.memory.alive == 0) return;
  page_.add_title("Alive at the end: " + counted(summary_.memory.alive, "object", "objects") +
                  " with " + RoughSizeText(summary_.memory.alive_bytes).c_str());
  std::vector<const PlaceMemory*> places;
  for (const PlaceMemory& place : summary_.memory.places) {
    if (place.alive > 0) places.push_back(&place);
  }
  std::stable_sort(places.begin(), places.end(), [](const auto* left, const auto* right) {
    return left->at_end > right->at_end;
  });
  std::vector<PageOfText::Row> rows;
  for (size_t index = 0; index < shown(places.size(), kShownPlaces); ++index) {
    rows.push_back({{size_cell(places[index]->at_end), count_cell(places[index]->alive)},
                    place_name(recording_, places[index]->stack, places[index]->function)});
  }
  page_.add_table({{"BYTES"}, {"OBJECTS"}}, "PLACE", rows);
  write_rest(places.size(), kShownPlaces, "place", "places");
}

void TraceWriter::write_tasks() {
  const TaskFigures& tasks = summary_.tasks;
  if (tasks.tasks == 0) return;
  page_.add_title("Tasks: " + std::to_string(tasks.tasks) + " on " +
                  counted(tasks.streams.size(), "stream", "streams") + ", " +
                  std::to_string(tasks.failed) + " failed");
  std::vector<PageOfText::Row> rows;
  for (size_t index = 0; index < shown(tasks.kinds.size(), kShownStreams); ++index) {
    const TaskKindFigures& kind = tasks.kinds[index];
    const Spread& spread = kind.durations;
    rows.push_back(
        {{count_cell(kind.tasks), count_cell(kind.failed), duration_cell(spread.total),
          duration_cell(spread.mean()), size_cell(kind.bytes), byte_rate_cell(kind.rate()),
          duration_cell(spread.p99), duration_cell(spread.longest)},
         recording_.task_kinds[kind.kind]});
  }
  page_.add_table({{"TASKS"},
                   {"FAILED"},
                   {"TOTAL"},
                   {"MEAN", true},
                   {"BYTES", true},
                   {"RATE", true},
                   {"P99", true},
                   {"MAX", true}},
                  "KIND", rows);
  write_rest(tasks.kinds.size(), kShownStreams, "kind", "kinds");
}

void TraceWriter::write_streams() {
  const std::vector<StreamFigures>& streams = summary_.tasks.streams;
  if (streams.empty()) return;
  page_.add_title("Streams");
  std::vector<PageOfText::Row> rows;
  for (size_t index = 0; index < shown(streams.size(), kShownStreams); ++index) {
    const StreamFigures& stream = streams[index];
    const RecordedStream& recorded = recording_.streams[stream.stream];
    std::string name = stream_name(recorded) + ", " + device_name(recorded.device);
    if (recording_.processes.size() > 1) name += ", process " + process_name(recorded.process);
    if (stream.unfinished > 0) name += ", " + std::to_string(stream.unfinished) + " never ran";
    rows.push_back({{share_cell(stream.busy_share()), count_cell(stream.tasks),
                     duration_cell(stream.delays.mean()), duration_cell(stream.delays.p99),
                     count_cell(stream.waits), duration_cell(stream.waited),
                     size_cell(stream.bytes), byte_rate_cell(stream.rate())},
                    name});
  }
  page_.add_table({{"BUSY"},
                   {"TASKS"},
                   {"DELAY"},
                   {"DELAY P99", true},
                   {"WAITS", true},
                   {"WAITED", true},
                   {"BYTES", true},
                   {"RATE", true}},
                  "STREAM", rows);
  write_rest(streams.size(), kShownStreams, "stream", "streams");
}

void TraceWriter::write_threads() {
  if (recording_.threads.empty()) return;
  page_.add_title("Threads");
  std::vector<PageOfText::Row> rows;
  for (uint32_t index = 0; index < recording_.threads.size(); ++index) {
    const ThreadFigures& figures = summary_.calls.threads[index];
    rows.push_back(
        {{count_cell(figures.calls), count_cell(figures.failed), duration_cell(figures.in_calls)},
         thread_name(index)});
  }
  page_.add_table({{"CALLS"}, {"FAILED"}, {"IN CALLS"}}, "THREAD", rows);
}

}  // namespace

std::string trace_text(const std::string& file, const Recording& recording, const Summary& summary,
                       PageStyle style, TextLength length) {
  TraceWriter writer(recording, summary, style, length);
  writer.write_head(file);
  writer.write_calls();
  writer.write_slowest();
  writer.write_memory();
  writer.write_places();
  writer.write_leaks();
  writer.write_tasks();
  writer.write_streams();
  if (writer.is_complete()) writer.write_threads();
  return writer.text();
}

}  // namespace understudy::command
