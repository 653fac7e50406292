// SPDX-License-Identifier: Apache-2.0
#include "tools/diff_text.h"

#include <algorithm>

#include "base/size_text.h"
#include "tools/figure_text.h"
#include "tools/recording/place_names.h"
#include "tools/text_table.h"

namespace understudy::command {

namespace {

constexpr size_t kShownChanges = 8;

using Cell = std::string (*)(uint64_t value);
using Rows = std::vector<PageOfText::Row>;

// "+1.5 GiB", "-12", "="
std::string growth_cell(const FigureChange& change, Cell cell) {
  if (!change.differs()) return "=";
  const bool has_grown = change.after > change.before;
  return (has_grown ? "+" : "-") +
         cell(has_grown ? change.after - change.before : change.before - change.after);
}

// Before, after, and the difference.
std::vector<std::string> cells_of(const FigureChange& change, Cell cell) {
  return {cell(change.before), cell(change.after), growth_cell(change, cell)};
}

std::vector<std::string> joined(std::vector<std::string> cells,
                                const std::vector<std::string>& more) {
  cells.insert(cells.end(), more.begin(), more.end());
  return cells;
}

class DiffWriter {
 public:
  DiffWriter(const Comparison& comparison, PageStyle style, TextLength length)
      : comparison_(comparison), page_(style), is_complete_(length == TextLength::kComplete) {}

  void write_head(const std::string& before, const std::string& after);
  void write_memory();
  void write_places();
  void write_failures();
  void write_calls();
  void write_times();
  void write_tasks();
  const std::string& text() const { return page_.text(); }

 private:
  // The rows of those that differ, or all; nothing if there are none.
  template <typename Entry, typename Differs, typename MakeRow>
  void write(const std::string& title, const std::vector<Entry>& entries, Differs differs,
             const std::vector<FigureColumn>& columns, const char* text_title, MakeRow make_row);

  const Comparison& comparison_;
  PageOfText page_;
  bool is_complete_;
};

template <typename Entry, typename Differs, typename MakeRow>
void DiffWriter::write(const std::string& title, const std::vector<Entry>& entries, Differs differs,
                       const std::vector<FigureColumn>& columns, const char* text_title,
                       MakeRow make_row) {
  Rows rows;
  for (const Entry& entry : entries) {
    if (is_complete_ || differs(entry)) rows.push_back(make_row(entry));
  }
  if (rows.empty()) return;
  const size_t rest = is_complete_ ? 0 : rows.size() - std::min(rows.size(), kShownChanges);
  rows.resize(rows.size() - rest);
  page_.add_title(title);
  page_.add_table(columns, text_title, rows);
  if (rest > 0) {
    page_.add_emphasized("  and " + std::to_string(rest) + " more: --all", Emphasis::kFaint);
  }
}

void DiffWriter::write_head(const std::string& before, const std::string& after) {
  page_.add_foreign_line("A: ", before + ", " + duration_cell(comparison_.duration.before) + ", " +
                                    counted(comparison_.calls.before, "call", "calls"));
  page_.add_foreign_line("B: ", after + ", " + duration_cell(comparison_.duration.after) + ", " +
                                    counted(comparison_.calls.after, "call", "calls"));
}

void DiffWriter::write_memory() {
  Rows rows;
  for (const ComparedDevice& device : comparison_.devices) {
    const std::string name = device_name(device.device);
    const auto add = [&](const FigureChange& change, const std::string& what, Cell cell) {
      if (is_complete_ || change.differs()) rows.push_back({cells_of(change, cell), name + what});
    };
    add(device.peak, ", at its peak", size_cell);
    add(device.at_end, ", at the end", size_cell);
    add(device.allocations, ", allocations", count_cell);
  }
  if (rows.empty()) return;
  page_.add_title("Memory");
  page_.add_table({{"A"}, {"B"}, {"GROWTH"}}, "WHERE", rows);
}

void DiffWriter::write_places() {
  const std::string title = comparison_.has_stacks
                                ? "Memory by place"
                                : "Memory by function (not both have stacks: --trace-stacks)";
  write(
      title, comparison_.places, [](const ComparedPlace& place) { return place.differs(); },
      {{"PEAK A"},
       {"PEAK B"},
       {"GROWTH"},
       {"END A", true},
       {"END B", true},
       {"ALLOCS A", true},
       {"ALLOCS B", true}},
      "PLACE",
      [](const ComparedPlace& place) {
        std::string name = place.name;
        if (place.presence == Presence::kNew) name = "new: " + name;
        if (place.presence == Presence::kVanished) name = "gone: " + name;
        if (place.has_moved) name = "moved: " + name;
        return PageOfText::Row{
            joined(cells_of(place.at_peak, size_cell),
                   {size_cell(place.at_end.before), size_cell(place.at_end.after),
                    count_cell(place.allocations.before), count_cell(place.allocations.after)}),
            name};
      });
}

void DiffWriter::write_failures() {
  write(
      "Failed calls", comparison_.failures,
      [](const ComparedFailure& failure) { return failure.calls.differs(); },
      {{"A"}, {"B"}, {"GROWTH"}}, "FAILURE",
      [](const ComparedFailure& failure) {
        return PageOfText::Row{cells_of(failure.calls, count_cell),
                               failure.function + " with " + std::to_string(failure.code)};
      });
}

void DiffWriter::write_calls() {
  write(
      "Calls", comparison_.functions,
      [](const ComparedFunction& function) { return function.calls.differs(); },
      {{"A"}, {"B"}, {"GROWTH"}}, "FUNCTION",
      [](const ComparedFunction& function) {
        return PageOfText::Row{cells_of(function.calls, count_cell), function.name};
      });
}

void DiffWriter::write_times() {
  std::vector<ComparedFunction> functions = comparison_.functions;
  std::stable_sort(functions.begin(), functions.end(), [](const auto& left, const auto& right) {
    return left.total.growth() > right.total.growth();
  });
  write(
      "Time in calls", functions,
      [](const ComparedFunction& function) { return function.total.growth() > 0; },
      {{"A"}, {"B"}, {"GROWTH"}, {"MEAN A", true}, {"MEAN B", true}}, "FUNCTION",
      [](const ComparedFunction& function) {
        return PageOfText::Row{
            joined(cells_of(function.total, duration_cell),
                   {duration_cell(function.mean.before), duration_cell(function.mean.after)}),
            function.name};
      });
}

void DiffWriter::write_tasks() {
  write(
      "Tasks", comparison_.task_kinds,
      [](const ComparedTasks& kind) { return kind.tasks.differs() || kind.bytes.differs(); },
      {{"A"},
       {"B"},
       {"GROWTH"},
       {"TIME A", true},
       {"TIME B", true},
       {"BYTES A", true},
       {"BYTES B", true}},
      "KIND",
      [](const ComparedTasks& kind) {
        return PageOfText::Row{
            joined(cells_of(kind.tasks, count_cell),
                   {duration_cell(kind.total.before), duration_cell(kind.total.after),
                    size_cell(kind.bytes.before), size_cell(kind.bytes.after)}),
            kind.kind};
      });
}

std::string equality(const Comparison& comparison) {
  if (comparison.has_equal_times()) return "The recordings are equal.\n";
  return "The recordings are equal but for times: " + duration_cell(comparison.duration.before) +
         ", then " + duration_cell(comparison.duration.after) + ".\n";
}

}  // namespace

std::string diff_text(const std::string& before, const std::string& after,
                      const Comparison& comparison, PageStyle style, TextLength length) {
  if (comparison.is_equal_but_for_times() && length == TextLength::kScreen) {
    return equality(comparison);
  }
  DiffWriter writer(comparison, style, length);
  writer.write_head(before, after);
  writer.write_memory();
  writer.write_places();
  writer.write_failures();
  writer.write_calls();
  writer.write_times();
  writer.write_tasks();
  return writer.text();
}

}  // namespace understudy::command
