// SPDX-License-Identifier: Apache-2.0
//
// The terminal as a full screen, for as long as this lives. Whatever ends the program, except for a
// kill that it cannot see, leaves the terminal as it was: the destructor, and handlers of the
// signals by which programs crash. One at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tools/top_lines.h"

namespace understudy::command {

enum class Key : uint8_t { kNone, kQuit, kHelp, kNext, kPrevious, kOther };

class Terminal {
 public:
  // Fails if there is none, or none that can move its cursor.
  static Result<Terminal> open();
  Terminal(Terminal&& other) noexcept : is_open_(std::exchange(other.is_open_, false)) {}
  Terminal& operator=(Terminal&&) = delete;
  ~Terminal();

  ScreenSize size() const;
  void draw(const std::vector<ScreenLine>& lines);
  // Waits at most so long.
  Key read_key(int milliseconds);
  // The signal that asked the program to end, if one did.
  static std::optional<int> ended_by();

 private:
  Terminal() = default;

  bool is_open_ = true;
};

}  // namespace understudy::command
