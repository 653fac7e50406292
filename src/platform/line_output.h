// SPDX-License-Identifier: Apache-2.0
//
// Where lines for people go: standard error, standard output, or a file that they are appended to.
// A line is one write, so that the lines of threads and processes do not mix; beyond the 4 KiB that
// a pipe takes at once it may be several. Nothing here takes a lock, and nothing but the making of
// an output takes heap memory: a fork child and a call from inside an allocator may write at any
// moment. errno stays as it was. Outputs are never destroyed. Any thread may call anything.
//
// - A full pipe keeps a thread that may wait for a second at most. Then lines are lost at once
//   until there is room again, and a line says how many.
// - Standard streams follow dup2. One that was found closed, when the library was loaded or by a
//   line, is gone for good: its number may be that of a file of the program by then.
// - A file whose descriptor is lost, in a fork child or because the program closes all of them, is
//   opened again. If that is refused, lines go to standard error.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace understudy::platform {

// Whether the calling thread may wait for the reader of a full pipe: not if it holds a lock.
enum class Patience : uint8_t { kNone, kBrief };

class LineOutput {
 public:
  static LineOutput& standard_error();
  static LineOutput& standard_output();
  // The one that appends to a file, the same for all who name the same path. The file is made if it
  // is not there, by the first line. May throw std::bad_alloc.
  static LineOutput& appending_to(std::string_view path);

  LineOutput(const LineOutput&) = delete;
  LineOutput& operator=(const LineOutput&) = delete;

  // `line` ends with its newline.
  void write(std::string_view line, Patience patience) noexcept;

 private:
  struct Appended;

  constexpr explicit LineOutput(int standard) : descriptor_(standard) {}
  constexpr explicit LineOutput(const char* path) : path_(path) {}

  static bool look_at_standard_streams();
  // The descriptor to write to at this moment; -1 if there is none.
  int descriptor() noexcept;
  int reopen(int lost) noexcept;
  bool names_the_file(int descriptor) const noexcept;
  // False if it was not written.
  bool write_now(std::string_view line, Patience patience) noexcept;
  // In one write, so that the notice waits for room for a line: where there is room for the notice
  // alone, it would be false at once. Where lines are being lost, none waits. Returns how many are
  // lost now.
  uint32_t write_after_notice(uint32_t lost, std::string_view line) noexcept;

  static const bool looked_at_load_;

  const char* const path_ = nullptr;  // of a file; null: a standard stream
  std::atomic<int> descriptor_{-1};
  std::atomic<uint64_t> file_system_{0};  // which file the descriptor is to name
  std::atomic<uint64_t> inode_{0};
  std::atomic<bool> was_refused_{false};  // the file could not be opened, and that was said
  std::atomic<uint32_t> lost_{0};         // lines, not said to be lost yet
};

// Whether people see standard error in colors: on a terminal, unless NO_COLOR says otherwise.
bool standard_error_has_colors() noexcept;

}  // namespace understudy::platform
