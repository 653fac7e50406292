// SPDX-License-Identifier: Apache-2.0
//
// Two recordings side by side: what grew from the first, `before`, to the second, `after`.
//
// Places are compared by the texts of their stacks. A change of the program moves lines: of stacks
// that differ by nothing but line numbers (and addresses), each is compared by itself where one
// recording has all that the other one has; else they are compared together, by what all have in
// common.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/recording/recording.h"
#include "tools/recording/summary.h"

namespace understudy::command {

// The figures of one recording that can be compared with those of another, by names.
struct ComparableFigures {
  struct Device {
    uint64_t peak = 0;
    uint64_t at_end = 0;
    uint64_t allocations = 0;
  };
  struct Function {
    uint64_t calls = 0;
    uint64_t total = 0;  // nanoseconds
  };
  struct Place {
    uint64_t at_peak = 0;
    uint64_t at_end = 0;
    uint64_t allocations = 0;
    uint64_t allocated = 0;

    void add(const Place& other);
  };
  struct Tasks {
    uint64_t tasks = 0;
    uint64_t total = 0;
    uint64_t bytes = 0;
  };

  uint64_t duration = 0;
  uint64_t calls = 0;
  uint64_t failed = 0;
  uint64_t tasks = 0;
  bool has_stacks = false;
  std::map<int32_t, Device> devices;
  std::map<std::string, Function> functions;
  std::map<std::pair<std::string, int32_t>, uint64_t> failures;  // by function and code
  std::map<std::string, Place> places;                           // by stack, or function
  std::map<std::string, Place> places_by_function;
  std::map<std::string, Tasks> task_kinds;
};

ComparableFigures comparable_figures(const Recording& recording, const Summary& summary);

struct FigureChange {
  uint64_t before = 0;
  uint64_t after = 0;

  bool differs() const { return before != after; }
  // As far as 64 bits reach.
  int64_t growth() const { return static_cast<int64_t>(after - before); }
};

struct ComparedDevice {
  int32_t device = 0;
  FigureChange peak;
  FigureChange at_end;
  FigureChange allocations;
};

struct ComparedFunction {
  std::string name;
  FigureChange calls;
  FigureChange total;
  FigureChange mean;
};

struct ComparedFailure {
  std::string function;
  int32_t code = 0;
  FigureChange calls;
};

enum class Presence : uint8_t { kBoth, kNew, kVanished };

struct ComparedPlace {
  std::string name;
  Presence presence = Presence::kBoth;
  bool has_moved = false;  // its line numbers differ
  FigureChange at_peak;
  FigureChange at_end;
  FigureChange allocations;
  FigureChange allocated;

  bool differs() const;
};

struct ComparedTasks {
  std::string kind;
  FigureChange tasks;
  FigureChange total;
  FigureChange bytes;
};

// Each list is in the order of growth, what grew most first.
struct Comparison {
  FigureChange duration;
  FigureChange calls;
  FigureChange failed;
  FigureChange tasks;
  bool has_stacks = false;  // in both; else places are functions
  std::vector<ComparedDevice> devices;
  std::vector<ComparedFunction> functions;
  std::vector<ComparedFailure> failures;
  std::vector<ComparedPlace> places;
  std::vector<ComparedTasks> task_kinds;

  // Whether nothing differs but times. The same recording twice has the same times as well.
  bool is_equal_but_for_times() const;
  bool has_equal_times() const;
};

Comparison compare(const ComparableFigures& before, const ComparableFigures& after);

// "fill at kv.cc < main at kv.cc" of "fill at kv.cc:41 < main at kv.cc:80".
std::string without_lines(std::string_view place);

}  // namespace understudy::command
