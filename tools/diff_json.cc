// SPDX-License-Identifier: Apache-2.0
#include "tools/diff_json.h"

namespace understudy::command {

namespace {

Json change_json(const FigureChange& change) {
  return {{"before", change.before}, {"after", change.after}, {"growth", change.growth()}};
}

const char* presence_text(Presence presence) {
  switch (presence) {
    case Presence::kBoth:
      return "both";
    case Presence::kNew:
      return "new";
    case Presence::kVanished:
      return "vanished";
  }
  return "";
}

template <typename Entry, typename MakeJson>
Json list_json(const std::vector<Entry>& entries, MakeJson make_json) {
  Json list = Json::array();
  for (const Entry& entry : entries) list.push_back(make_json(entry));
  return list;
}

}  // namespace

Json diff_json(const std::string& before, const std::string& after, const Comparison& comparison) {
  Json facts = {{"before", before},
                {"after", after},
                {"equal_but_for_times", comparison.is_equal_but_for_times()},
                {"duration_ns", change_json(comparison.duration)},
                {"calls", change_json(comparison.calls)},
                {"failed_calls", change_json(comparison.failed)},
                {"tasks", change_json(comparison.tasks)},
                {"places_are_stacks", comparison.has_stacks}};
  facts["devices"] = list_json(comparison.devices, [](const ComparedDevice& device) -> Json {
    return {{"device", device.device},
            {"peak_bytes", change_json(device.peak)},
            {"end_bytes", change_json(device.at_end)},
            {"allocations", change_json(device.allocations)}};
  });
  facts["places"] = list_json(comparison.places, [](const ComparedPlace& place) -> Json {
    return {{"place", place.name},
            {"presence", presence_text(place.presence)},
            {"moved", place.has_moved},
            {"peak_bytes", change_json(place.at_peak)},
            {"end_bytes", change_json(place.at_end)},
            {"allocations", change_json(place.allocations)},
            {"allocated_bytes", change_json(place.allocated)}};
  });
  facts["functions"] =
      list_json(comparison.functions, [](const ComparedFunction& function) -> Json {
        return {{"function", function.name},
                {"calls", change_json(function.calls)},
                {"total_ns", change_json(function.total)},
                {"mean_ns", change_json(function.mean)}};
      });
  facts["failures"] = list_json(comparison.failures, [](const ComparedFailure& failure) -> Json {
    return {{"function", failure.function},
            {"code", failure.code},
            {"calls", change_json(failure.calls)}};
  });
  facts["task_kinds"] = list_json(comparison.task_kinds, [](const ComparedTasks& kind) -> Json {
    return {{"kind", kind.kind},
            {"tasks", change_json(kind.tasks)},
            {"total_ns", change_json(kind.total)},
            {"bytes", change_json(kind.bytes)}};
  });
  return facts;
}

}  // namespace understudy::command
