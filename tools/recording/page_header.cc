// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/page_header.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "tools/recording/memory_series.h"

namespace understudy::command {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostWords = 255;  // of a call's arguments

// Calls back with a parameter, the number of one of its words, and how many it has.
template <typename Visit>
void each_word(const RecordedFunction& function, Visit visit) {
  size_t left = kMostWords;
  for (const Parameter& parameter : function.parameters) {
    const size_t words = std::min<size_t>(parameter.words, left);
    for (size_t word = 0; word < words; ++word) visit(parameter, word);
    left -= words;
  }
}

Json names_of(const RecordedFunction& function) {
  Json names = Json::array();
  each_word(function, [&](const Parameter& parameter, size_t) { names.push_back(parameter.name); });
  return names;
}

// "out p"; "P2" for the third word of a P.
Json types_of(const RecordedFunction& function) {
  Json types = Json::array();
  each_word(function, [&](const Parameter& parameter, size_t word) {
    std::string type = parameter.is_out ? "out " : "";
    type += parameter.type;
    if (parameter.words > 1) type += std::to_string(word);
    types.push_back(std::move(type));
  });
  return types;
}

// The program without the folder it is in.
std::string title_of(const Recording& recording) {
  if (recording.processes.empty()) return "";
  const std::string_view program = recording.processes.front().program;
  const size_t end = std::min(program.find(' '), program.size());
  const size_t slash = program.substr(0, end).rfind('/');
  return std::string(program.substr(slash == std::string_view::npos ? 0 : slash + 1));
}

Json object_kinds_of(const Recording& recording) {
  Json kinds = recording.object_kinds;
  if (kinds.size() <= kLastObjectKind + 1U) return kinds;
  kinds.erase(kinds.begin() + kLastObjectKind + 1, kinds.end());
  kinds.back() = "other kinds";
  return kinds;
}

Json processes_of(const Recording& recording) {
  Json processes = Json::array();
  for (const RecordedProcess& process : recording.processes) {
    processes.push_back({{"pid", process.pid},
                         {"parent", process.parent},
                         {"program", process.program},
                         {"product", process.product},
                         {"devices", process.devices},
                         {"device_memory", process.device_memory},
                         {"begin", process.begin},
                         {"end", process.end}});
  }
  return processes;
}

Json threads_of(const Recording& recording) {
  Json threads = Json::array();
  for (const RecordedThread& thread : recording.threads) {
    const bool is_open = thread.open_function != kNone;
    threads.push_back({{"process", thread.process},
                       {"number", thread.number},
                       {"name", thread.name},
                       {"open_function", is_open ? int64_t{thread.open_function} : -1},
                       {"open_since", thread.open_since}});
  }
  return threads;
}

Json streams_of(const Recording& recording) {
  Json streams = Json::array();
  for (const RecordedStream& stream : recording.streams) {
    streams.push_back({{"process", stream.process},
                       {"device", stream.device},
                       {"index", stream.index},
                       {"generation", stream.generation}});
  }
  return streams;
}

Json peaks_of(const Recording& recording) {
  Json peaks = Json::array();
  for (const auto& [device, peak] : memory_peaks(recording, memory_changes(recording))) {
    if (peak.bytes > kMostExactNumber) continue;
    peaks.push_back(
        {{"process", -1}, {"device", device}, {"bytes", peak.bytes}, {"at_ns", peak.time}});
  }
  return peaks;
}

Json leaks_of(const Recording& recording) {
  uint64_t objects = 0;
  uint64_t bytes = 0;
  for (const RecordedObject& object : recording.objects) {
    if (object.end != kStillAlive) continue;
    ++objects;
    bytes = std::min(bytes, kMostExactNumber) + std::min(object.taken, kMostExactNumber + 1);
  }
  Json leaks = {{"objects", objects}};
  if (bytes <= kMostExactNumber) leaks["bytes"] = bytes;
  return leaks;
}

Json summary_of(const Recording& recording) {
  const auto failed = std::count_if(recording.calls.begin(), recording.calls.end(),
                                    [](const RecordedCall& call) { return call.code != 0; });
  return {{"calls", recording.calls.size()},
          {"failed_calls", failed},
          {"tasks", recording.tasks.size()},
          {"peaks", peaks_of(recording)},
          {"leaks", leaks_of(recording)}};
}

}  // namespace

Json page_header(const Recording& recording) {
  Json functions = Json::array();
  Json parameters = Json::array();
  Json types = Json::array();
  for (const RecordedFunction& function : recording.functions) {
    functions.push_back(function.name);
    parameters.push_back(names_of(function));
    types.push_back(types_of(function));
  }
  return {{"title", title_of(recording)},
          {"wall_clock_ms", recording.wall_clock / 1'000'000},
          {"duration_ns", recording.duration},
          {"lost", recording.lost},
          {"ring", recording.is_ring},
          {"stacks_recorded", recording.has_stacks},
          {"version", US_VERSION},
          {"notes", recording.notes},
          {"functions", std::move(functions)},
          {"parameters", std::move(parameters)},
          {"parameter_types", std::move(types)},
          {"texts", recording.texts},
          {"stacks", recording.stacks},
          {"object_kinds", object_kinds_of(recording)},
          {"task_kinds", recording.task_kinds},
          {"processes", processes_of(recording)},
          {"threads", threads_of(recording)},
          {"streams", streams_of(recording)},
          {"summary", summary_of(recording)}};
}

}  // namespace understudy::command
