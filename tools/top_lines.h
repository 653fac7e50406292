// SPDX-License-Identifier: Apache-2.0
//
// What `understudy top` shows, as lines of a size, without a terminal: the server's devices and
// processes with their bars, and how fast they allocate.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/server_view.h"

namespace understudy::command {

enum class LineStyle : uint8_t { kPlain, kTitle, kSelected, kFaint };

// A line of the screen, and which part of it is the full part of a bar.
struct ScreenLine {
  std::string text;
  LineStyle style = LineStyle::kPlain;
  size_t bar_begin = 0;
  size_t bar_end = 0;
};

struct ScreenSize {
  size_t rows = 0;
  size_t columns = 0;
};

// Allocations per second of each process, from one view to the next.
class AllocationRates {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  void update(const ServerView& server, Moment now);
  // Nothing for a process that was seen once.
  std::optional<double> of(const ProcessView& process) const;

 private:
  struct Seen {
    uint64_t allocations = 0;
    std::optional<double> rate;
  };
  std::map<int32_t, Seen> seen_;
  Moment last_;
};

// What the user chose.
struct TopChoice {
  std::optional<size_t> device;  // none: all of them together
  bool help = false;

  // The next or previous device; before the first and behind the last are all.
  enum class Step : uint8_t { kNext, kPrevious };
  void move(Step step, size_t devices);
};

std::vector<ScreenLine> top_lines(const ServerView& server, const AllocationRates& rates,
                                  const TopChoice& choice, ScreenSize size);

}  // namespace understudy::command
