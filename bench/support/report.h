// SPDX-License-Identifier: Apache-2.0
//
// What every benchmark prints: one row per case, in columns that are the same for all of them.
// Options of every benchmark: --smoke for a run that only shows that it works, --json for a line
// of JSON per row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace bench {

struct Unit {
  const char* name;
  bool more_is_better = false;
};
inline constexpr Unit kNanoseconds{"ns"};
inline constexpr Unit kMicroseconds{"us"};
inline constexpr Unit kMilliseconds{"ms"};
inline constexpr Unit kBytes{"B"};
inline constexpr Unit kMillionsPerSecond{"M/s", true};

// What a row is held against; parts that are not set do not count.
struct Goal {
  std::optional<double> at_most = {};          // the figure itself
  std::optional<double> at_least = {};         // the same, where more is better
  std::optional<double> at_least_better = {};  // so many times better than the baseline
  std::optional<double> at_most_above = {};    // so much above the baseline, in the unit of the row
};

// How much there is of what the row is about: "8 threads alive". Rows that differ in nothing else
// are points of one line of scripts/plot_growth.py.
struct Amount {
  uint64_t count;
  const char* of;
};

struct Row {
  std::string name;
  Unit unit;
  double understudy = 0;
  std::optional<double> baseline;
  Goal goal;
  std::optional<Amount> amount = {};
};

class Report {
 public:
  Report(const char* question, int argc, char** argv);

  // The size of something in a full run and in a smoke run.
  template <typename T>
  T full_or_smoke(T full, T smoke) const {
    return smoke_ ? smoke : full;
  }
  void add(const Row& row) const;
  // A fact without which the rows could be misread.
  [[gnu::format(printf, 2, 3)]] void note(const char* format, ...) const;

 private:
  const char* question_;
  bool smoke_ = false;
  bool json_ = false;
};

}  // namespace bench
