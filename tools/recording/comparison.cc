// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/comparison.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "tools/recording/compared_places.h"
#include "tools/recording/place_names.h"

namespace understudy::command {

namespace {

// Calls back for each name of either, with a default where one lacks it.
template <typename Name, typename Figures, typename Visit>
void visit_both(const std::map<Name, Figures>& before, const std::map<Name, Figures>& after,
                Visit visit) {
  static const Figures kNothing{};
  for (const auto& [name, figures] : before) {
    const auto other = after.find(name);
    visit(name, figures, other == after.end() ? kNothing : other->second);
  }
  for (const auto& [name, figures] : after) {
    if (!before.contains(name)) visit(name, kNothing, figures);
  }
}

uint64_t mean(const ComparableFigures::Function& function) {
  return function.calls == 0 ? 0 : function.total / function.calls;
}

template <typename Row, typename Growth>
void sort_by_growth(std::vector<Row>& rows, Growth growth) {
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const Row& left, const Row& right) { return growth(left) > growth(right); });
}

template <typename Rows, typename Differs>
bool none_differs(const Rows& rows, Differs differs) {
  return std::none_of(rows.begin(), rows.end(), differs);
}

}  // namespace

void ComparableFigures::Place::add(const Place& other) {
  at_peak += other.at_peak;
  at_end += other.at_end;
  allocations += other.allocations;
  allocated += other.allocated;
}

ComparableFigures comparable_figures(const Recording& recording, const Summary& summary) {
  ComparableFigures figures;
  figures.duration = recording.duration;
  figures.calls = summary.calls.calls;
  figures.failed = summary.calls.failed;
  figures.tasks = summary.tasks.tasks;
  figures.has_stacks = recording.has_stacks;
  for (const DeviceMemory& device : summary.memory.devices) {
    figures.devices[device.device] = {device.peak.bytes, device.at_end, device.allocations};
  }
  for (const FunctionFigures& function : summary.calls.functions) {
    auto& named = figures.functions[recording.functions[function.function].name];
    named.calls += function.durations.count;
    named.total += function.durations.total;
  }
  for (const FailureFigures& failure : summary.calls.failures) {
    figures.failures[{recording.functions[failure.function].name, failure.code}] += failure.calls;
  }
  for (const PlaceMemory& place : summary.memory.places) {
    const ComparableFigures::Place sums{place.at_peak, place.at_end, place.allocations,
                                        place.allocated};
    if (place.allocations == 0) continue;
    figures.places[place_name(recording, place.stack, place.function)].add(sums);
    figures.places_by_function[place_name(recording, kNone, place.function)].add(sums);
  }
  for (const TaskKindFigures& kind : summary.tasks.kinds) {
    auto& named = figures.task_kinds[recording.task_kinds[kind.kind]];
    named.tasks += kind.tasks;
    named.total += kind.durations.total;
    named.bytes += kind.bytes;
  }
  return figures;
}

Comparison compare(const ComparableFigures& before, const ComparableFigures& after) {
  Comparison found;
  found.duration = {before.duration, after.duration};
  found.calls = {before.calls, after.calls};
  found.failed = {before.failed, after.failed};
  found.tasks = {before.tasks, after.tasks};
  found.has_stacks = before.has_stacks && after.has_stacks;
  visit_both(before.devices, after.devices, [&](int32_t device, const auto& one, const auto& two) {
    found.devices.push_back({device,
                             {one.peak, two.peak},
                             {one.at_end, two.at_end},
                             {one.allocations, two.allocations}});
  });
  visit_both(before.functions, after.functions,
             [&](const std::string& name, const auto& one, const auto& two) {
               found.functions.push_back(
                   {name, {one.calls, two.calls}, {one.total, two.total}, {mean(one), mean(two)}});
             });
  visit_both(before.failures, after.failures, [&](const auto& name, uint64_t one, uint64_t two) {
    found.failures.push_back({name.first, name.second, {one, two}});
  });
  visit_both(before.task_kinds, after.task_kinds,
             [&](const std::string& kind, const auto& one, const auto& two) {
               found.task_kinds.push_back(
                   {kind, {one.tasks, two.tasks}, {one.total, two.total}, {one.bytes, two.bytes}});
             });
  found.places = found.has_stacks
                     ? compare_places(before.places, after.places)
                     : compare_places(before.places_by_function, after.places_by_function);
  sort_by_growth(found.devices, [](const ComparedDevice& row) {
    return std::tuple(row.peak.growth(), row.at_end.growth());
  });
  sort_by_growth(found.functions, [](const ComparedFunction& row) {
    return std::tuple(row.calls.growth(), row.total.growth());
  });
  sort_by_growth(found.failures, [](const ComparedFailure& row) { return row.calls.growth(); });
  sort_by_growth(found.places, [](const ComparedPlace& row) {
    return std::tuple(row.at_peak.growth(), row.at_end.growth(), row.allocations.growth());
  });
  sort_by_growth(found.task_kinds, [](const ComparedTasks& row) {
    return std::tuple(row.tasks.growth(), row.total.growth());
  });
  return found;
}

bool ComparedPlace::differs() const {
  return presence != Presence::kBoth || at_peak.differs() || at_end.differs() ||
         allocations.differs() || allocated.differs();
}

bool Comparison::is_equal_but_for_times() const {
  return none_differs(devices,
                      [](const ComparedDevice& row) {
                        return row.peak.differs() || row.at_end.differs() ||
                               row.allocations.differs();
                      }) &&
         none_differs(functions, [](const ComparedFunction& row) { return row.calls.differs(); }) &&
         none_differs(failures, [](const ComparedFailure& row) { return row.calls.differs(); }) &&
         none_differs(places, [](const ComparedPlace& row) { return row.differs(); }) &&
         none_differs(task_kinds, [](const ComparedTasks& row) {
           return row.tasks.differs() || row.bytes.differs();
         });
}

bool Comparison::has_equal_times() const {
  return !duration.differs() &&
         none_differs(functions, [](const ComparedFunction& row) { return row.total.differs(); }) &&
         none_differs(task_kinds, [](const ComparedTasks& row) { return row.total.differs(); });
}

}  // namespace understudy::command
