// SPDX-License-Identifier: Apache-2.0
#include "tools/trace_json.h"

namespace understudy::command {

namespace {

Json spread_json(const Spread& spread) {
  return {{"total_ns", spread.total},
          {"mean_ns", spread.mean()},
          {"p50_ns", spread.p50},
          {"p99_ns", spread.p99},
          {"longest_ns", spread.longest}};
}

Json stack_json(const Recording& recording, uint32_t stack) {
  return stack == kNone ? Json() : Json(recording.stacks[stack]);
}

Json function_json(const Recording& recording, uint32_t function) {
  return function == kNone ? Json() : Json(recording.functions[function].name);
}

Json thread_json(const Recording& recording, uint32_t index, const ThreadFigures& figures) {
  const RecordedThread& thread = recording.threads[index];
  Json open;
  if (thread.open_function != kNone) {
    const uint64_t last = recording.processes[thread.process].end;
    open = {{"function", function_json(recording, thread.open_function)},
            {"since_ns", thread.open_since},
            {"at_least_ns", last > thread.open_since ? last - thread.open_since : 0}};
  }
  return {{"number", thread.number},         {"name", thread.name},
          {"calls", figures.calls},          {"failed_calls", figures.failed},
          {"in_calls_ns", figures.in_calls}, {"open_call", open}};
}

Json processes_json(const Recording& recording, const CallFigures& calls) {
  Json processes = Json::array();
  for (const RecordedProcess& process : recording.processes) {
    processes.push_back({{"pid", process.pid},
                         {"parent", process.parent},
                         {"program", process.program},
                         {"product", process.product},
                         {"devices", process.devices},
                         {"device_memory", process.device_memory},
                         {"begin_ns", process.begin},
                         {"end_ns", process.end},
                         {"threads", Json::array()}});
  }
  for (uint32_t index = 0; index < recording.threads.size(); ++index) {
    processes[recording.threads[index].process]["threads"].push_back(
        thread_json(recording, index, calls.threads[index]));
  }
  return processes;
}

Json functions_json(const Recording& recording, const CallFigures& calls) {
  const double seconds = static_cast<double>(recording.duration) / 1e9;
  Json functions = Json::array();
  for (const FunctionFigures& each : calls.functions) {
    const auto count = static_cast<double>(each.durations.count);
    Json function = {{"function", function_json(recording, each.function)},
                     {"calls", each.durations.count},
                     {"failed", each.failed},
                     {"per_second", seconds > 0 ? Json(count / seconds) : Json()}};
    function.update(spread_json(each.durations));
    functions.push_back(function);
  }
  return functions;
}

Json failures_json(const Recording& recording, const CallFigures& calls) {
  Json failures = Json::array();
  for (const FailureFigures& each : calls.failures) {
    failures.push_back({{"function", function_json(recording, each.function)},
                        {"code", each.code},
                        {"calls", each.calls}});
  }
  return failures;
}

Json slowest_json(const Recording& recording, const CallFigures& calls) {
  Json slowest = Json::array();
  for (const uint32_t index : calls.slowest) {
    const RecordedCall& call = recording.calls[index];
    const RecordedThread& thread = recording.threads[call.thread];
    slowest.push_back({{"function", function_json(recording, call.function)},
                       {"begin_ns", call.begin},
                       {"duration_ns", call.duration},
                       {"code", call.code},
                       {"pid", recording.processes[thread.process].pid},
                       {"thread", thread.number},
                       {"stack", stack_json(recording, call.stack)}});
  }
  return slowest;
}

Json kinds_json(const Recording& recording, const std::vector<KindMemory>& kinds) {
  Json all = Json::array();
  for (const KindMemory& kind : kinds) {
    all.push_back({{"kind", recording.object_kinds[kind.kind]},
                   {"objects", kind.objects},
                   {"bytes", kind.bytes}});
  }
  return all;
}

Json devices_json(const Recording& recording, const MemoryFigures& memory) {
  Json devices = Json::array();
  for (const DeviceMemory& device : memory.devices) {
    const uint64_t mean = device.allocations == 0 ? 0 : device.allocated / device.allocations;
    devices.push_back({{"device", device.device},
                       {"peak_bytes", device.peak.bytes},
                       {"peak_ns", device.peak.time},
                       {"end_bytes", device.at_end},
                       {"allocations", device.allocations},
                       {"allocated_bytes", device.allocated},
                       {"largest_bytes", device.largest},
                       {"mean_bytes", mean},
                       {"at_peak", kinds_json(recording, device.kinds_at_peak)},
                       {"at_end", kinds_json(recording, device.kinds_at_end)},
                       {"curve_bytes", device.curve}});
  }
  return devices;
}

Json fragmentation_json(const Fragmentation& found) {
  return {{"reserved_bytes", found.reserved},
          {"mapped_bytes", found.mapped},
          {"unmapped_share", found.unmapped_share()},
          {"allocated_bytes", found.allocated},
          {"holes", found.hole_count},
          {"hole_bytes", found.holes},
          {"largest_hole_bytes", found.largest_hole},
          {"hole_share", found.hole_share()},
          {"physical_bytes", found.physical},
          {"idle_physical_bytes", found.idle}};
}

Json fragmentations_json(const Recording& recording, const Summary& summary) {
  Json all = Json::array();
  for (const ProcessFragmentation& each : summary.fragmentation) {
    all.push_back({{"pid", recording.processes[each.process].pid},
                   {"device", each.device},
                   {"at_peak", fragmentation_json(each.at_peak)},
                   {"at_end", fragmentation_json(each.at_end)}});
  }
  return all;
}

Json places_json(const Recording& recording, const MemoryFigures& memory) {
  Json places = Json::array();
  for (const PlaceMemory& place : memory.places) {
    places.push_back({{"stack", stack_json(recording, place.stack)},
                      {"function", function_json(recording, place.function)},
                      {"allocations", place.allocations},
                      {"allocated_bytes", place.allocated},
                      {"peak_bytes", place.at_peak},
                      {"end_bytes", place.at_end},
                      {"end_objects", place.alive}});
  }
  return places;
}

Json kinds_of_tasks_json(const Recording& recording, const TaskFigures& tasks) {
  Json kinds = Json::array();
  for (const TaskKindFigures& each : tasks.kinds) {
    Json kind = {{"kind", recording.task_kinds[each.kind]},
                 {"tasks", each.tasks},
                 {"ran", each.durations.count},
                 {"failed", each.failed},
                 {"bytes", each.bytes},
                 {"bytes_per_second", each.rate()}};
    kind.update(spread_json(each.durations));
    kinds.push_back(kind);
  }
  return kinds;
}

Json streams_json(const Recording& recording, const TaskFigures& tasks) {
  Json streams = Json::array();
  for (const StreamFigures& each : tasks.streams) {
    const RecordedStream& stream = recording.streams[each.stream];
    streams.push_back({{"pid", recording.processes[stream.process].pid},
                       {"device", stream.device},
                       {"index", stream.index},
                       {"generation", stream.generation},
                       {"tasks", each.tasks},
                       {"unfinished", each.unfinished},
                       {"failed", each.failed},
                       {"begin_ns", each.begin},
                       {"end_ns", each.end},
                       {"busy_ns", each.busy},
                       {"busy_share", each.busy_share()},
                       {"waits", each.waits},
                       {"waited_ns", each.waited},
                       {"bytes", each.bytes},
                       {"bytes_per_second", each.rate()},
                       {"delay_mean_ns", each.delays.mean()},
                       {"delay_p99_ns", each.delays.p99}});
  }
  return streams;
}

}  // namespace

Json trace_json(const std::string& file, const Recording& recording, const Summary& summary) {
  return {{"file", file},
          {"wall_clock_ns", recording.wall_clock},
          {"duration_ns", recording.duration},
          {"lost", recording.lost},
          {"ring", recording.is_ring},
          {"stacks_recorded", recording.has_stacks},
          {"notes", recording.notes},
          {"processes", processes_json(recording, summary.calls)},
          {"calls", summary.calls.calls},
          {"failed_calls", summary.calls.failed},
          {"functions", functions_json(recording, summary.calls)},
          {"failures", failures_json(recording, summary.calls)},
          {"slowest", slowest_json(recording, summary.calls)},
          {"devices", devices_json(recording, summary.memory)},
          {"fragmentation", fragmentations_json(recording, summary)},
          {"places", places_json(recording, summary.memory)},
          {"alive", {{"objects", summary.memory.alive}, {"bytes", summary.memory.alive_bytes}}},
          {"tasks", summary.tasks.tasks},
          {"failed_tasks", summary.tasks.failed},
          {"task_kinds", kinds_of_tasks_json(recording, summary.tasks)},
          {"streams", streams_json(recording, summary.tasks)}};
}

}  // namespace understudy::command
