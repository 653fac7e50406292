// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/replay_report.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "base/size_text.h"
#include "tools/figure_text.h"
#include "tools/replay/call_text.h"
#include "tools/text_table.h"

namespace understudy::command {

namespace {

constexpr size_t kShownDifferences = 10;
constexpr size_t kShownFunctions = 12;

std::string calls_text(uint64_t count) { return counted(count, "call", "calls"); }

// "1.25 ms"
std::string time_text(double nanoseconds) {
  struct Unit {
    double size;
    const char* name;
  };
  char text[32];
  for (const Unit unit : {Unit{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}}) {
    if (nanoseconds < unit.size) continue;
    snprintf(text, sizeof text, "%.3g %s", nanoseconds / unit.size, unit.name);
    return text;
  }
  snprintf(text, sizeof text, "%.0f ns", nanoseconds);
  return text;
}

std::string called_at(const Recording& recording, const RecordedCall& call) {
  const std::string place = place_text(recording, call);
  return call_text(recording, call) + (place.empty() ? "" : ", called by " + place);
}

std::string headline(const ReportedReplay& replay) {
  const ReplayResult& result = replay.result;
  std::string text = calls_text(result.made) + " made again on " +
                     std::string(replay.settings.product.key) + ", " +
                     counted(replay.settings.devices, "device", "devices") + " of " +
                     SizeText(replay.settings.memory).c_str() + ": ";
  if (result.different == 0) {
    return text + (result.made == 1 ? "it answers" : "all answer") + " as recorded\n";
  }
  return text + std::to_string(result.different) +
         (result.different == 1 ? " answers differently\n" : " answer differently\n");
}

std::string first_difference(const ReportedReplay& replay) {
  const ReplayDifference& first = replay.result.differences.front();
  const RecordedCall& call = replay.recording.calls[first.call];
  std::string text = "\nThe first: " + called_at(replay.recording, call) + "\n";
  text += "  answers " + std::to_string(first.code) + ", and " + std::to_string(call.code) +
          " when it was recorded\n";
  if (!first.sentence.empty()) text += "  " + first.sentence + "\n";
  if (first.total_bytes != 0) {
    text +=
        std::string("  the device had ") +
        RoughSizeText(first.total_bytes - std::min(first.free_bytes, first.total_bytes)).c_str() +
        " of " + SizeText(first.total_bytes).c_str() + " in use\n";
  }
  text += "  " + thread_text(replay.recording, call.thread) + ", " +
          time_text(static_cast<double>(call.begin)) + " after the recording began\n";
  return text;
}

std::string other_differences(const ReportedReplay& replay) {
  const std::vector<ReplayDifference>& all = replay.result.differences;
  if (all.size() < 2) return {};
  TextTable table({{"DIFFERENT CALL"}, {"RECORDED", Align::kRight}, {"REPLAY", Align::kRight}});
  const size_t shown = std::min(all.size(), kShownDifferences);
  for (size_t i = 0; i < shown; ++i) {
    const RecordedCall& call = replay.recording.calls[all[i].call];
    table.add_row({called_at(replay.recording, call), std::to_string(call.code),
                   std::to_string(all[i].code)});
  }
  std::string text = "\n" + table.text();
  if (replay.result.different > shown) {
    text += "and " + std::to_string(replay.result.different - shown) + " more\n";
  }
  return text;
}

std::string memory_and_time(const ReportedReplay& replay) {
  TextTable table({{""}, {"RECORDED", Align::kRight}, {"REPLAY", Align::kRight}});
  std::map<int32_t, std::pair<uint64_t, uint64_t>> peaks;
  for (const auto& [device, peak] : replay.result.recorded_peaks) peaks[device].first = peak.bytes;
  for (const auto& [device, peak] : replay.result.replayed_peaks) peaks[device].second = peak.bytes;
  for (const auto& [device, peak] : peaks) {
    table.add_row({device == kHost ? "peak of host memory"
                                   : "peak memory of device " + std::to_string(device),
                   size_cell(peak.first), size_cell(peak.second)});
  }
  double recorded = 0;
  double replayed = 0;
  for (const FunctionTimes& times : replay.result.times) {
    recorded += times.recorded;
    replayed += times.replayed;
  }
  table.add_row({"from the first call to the last",
                 time_text(static_cast<double>(replay.result.recorded_duration)),
                 time_text(static_cast<double>(replay.end.duration))});
  table.add_row({"in calls", time_text(recorded), time_text(replayed)});
  return "\n" + table.text();
}

std::string function_times(const ReportedReplay& replay) {
  TextTable table({{"MEAN TIME OF"},
                   {"CALLS", Align::kRight},
                   {"RECORDED", Align::kRight},
                   {"REPLAY", Align::kRight}});
  const std::vector<FunctionTimes>& all = replay.result.times;
  for (size_t i = 0; i < std::min(all.size(), kShownFunctions); ++i) {
    const auto calls = static_cast<double>(all[i].calls);
    table.add_row({replay.recording.functions[all[i].function].name, std::to_string(all[i].calls),
                   time_text(all[i].recorded / calls), time_text(all[i].replayed / calls)});
  }
  std::string text = "\n" + table.text();
  if (all.size() > kShownFunctions) {
    text += "and " + counted(all.size() - kShownFunctions, "other function", "other functions") +
            "; --json has all\n";
  }
  return text;
}

// What was not made, and why.
std::string missing_calls(const ReportedReplay& replay) {
  std::string text;
  if (replay.result.impossible != 0) {
    text += calls_text(replay.result.impossible) + " not made: they use what was not made here\n";
  }
  if (replay.result.not_reached != 0) {
    text += calls_text(replay.result.not_reached) + " not reached\n";
  }
  for (const LeftOut& each : replay.plan.left_out) {
    text += calls_text(each.calls) + " of " + replay.recording.functions[each.function].name +
            " not made: " + each.why + "\n";
  }
  for (const std::string& note : replay.notes) text += note + "\n";
  return text.empty() ? text : "\n" + text;
}

Json difference_json(const Recording& recording, const ReplayDifference& difference) {
  const RecordedCall& call = recording.calls[difference.call];
  const RecordedThread& thread = recording.threads[call.thread];
  Json json = {{"call", recording.functions[call.function].name},
               {"arguments", call_text(recording, call)},
               {"recorded", call.code},
               {"replay", difference.code},
               {"sentence", difference.sentence},
               {"stack", call.stack < recording.stacks.size() ? recording.stacks[call.stack] : ""},
               {"process", recording.processes[thread.process].pid},
               {"thread", thread.number},
               {"nanoseconds", call.begin}};
  if (difference.total_bytes != 0) {
    json["device_free"] = difference.free_bytes;
    json["device_memory"] = difference.total_bytes;
  }
  return json;
}

}  // namespace

std::string replay_text(const ReportedReplay& replay) {
  std::string text = headline(replay);
  if (!replay.end.failure.empty()) text += "\nIt ended early: " + replay.end.failure + "\n";
  if (!replay.result.differences.empty()) {
    text += first_difference(replay) + other_differences(replay);
  }
  text += memory_and_time(replay);
  if (!replay.result.times.empty()) text += function_times(replay);
  return text + missing_calls(replay);
}

Json replay_json(const ReportedReplay& replay) {
  const ReplayResult& result = replay.result;
  Json json = {
      {"same", result.is_same() && replay.end.failure.empty()},
      {"failure", replay.end.failure},
      {"product", replay.settings.product.key},
      {"devices", replay.settings.devices},
      {"memory", replay.settings.memory},
      {"calls",
       {{"recorded", result.recorded_calls},
        {"made", result.made},
        {"different", result.different},
        {"impossible", result.impossible},
        {"not_reached", result.not_reached},
        {"left_out", result.left_out}}},
      {"nanoseconds", {{"recorded", result.recorded_duration}, {"replay", replay.end.duration}}},
      {"notes", replay.notes}};
  json["differences"] = Json::array();
  for (const ReplayDifference& difference : result.differences) {
    json["differences"].push_back(difference_json(replay.recording, difference));
  }
  json["left_out"] = Json::array();
  for (const LeftOut& each : replay.plan.left_out) {
    json["left_out"].push_back({{"call", replay.recording.functions[each.function].name},
                                {"calls", each.calls},
                                {"why", each.why}});
  }
  json["peaks"] = Json::array();
  std::map<int32_t, Json> peaks;
  for (const auto& [device, peak] : result.recorded_peaks) peaks[device]["recorded"] = peak.bytes;
  for (const auto& [device, peak] : result.replayed_peaks) peaks[device]["replay"] = peak.bytes;
  for (auto& [device, peak] : peaks) {
    json["peaks"].push_back({{"device", device == kHost ? Json() : Json(device)},
                             {"recorded", peak.value("recorded", uint64_t{0})},
                             {"replay", peak.value("replay", uint64_t{0})}});
  }
  json["functions"] = Json::array();
  for (const FunctionTimes& times : result.times) {
    const auto calls = static_cast<double>(times.calls);
    json["functions"].push_back({{"call", replay.recording.functions[times.function].name},
                                 {"calls", times.calls},
                                 {"recorded_mean", times.recorded / calls},
                                 {"replay_mean", times.replayed / calls}});
  }
  return json;
}

}  // namespace understudy::command
