// SPDX-License-Identifier: Apache-2.0
//
// What is looked for in a program while it runs (key `check`). Everything that observes a program
// asks `is_checked` first: where no check is chosen, that test is all that it costs. Any thread may
// call anything.
#pragma once

#include <array>
#include <atomic>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace understudy {

enum class Check : uint8_t {
  kHistory,  // wrong use of objects, explained by their lives
  kLeaks,    // objects that outlive what they belong to
  kHost,     // device pointers that the CPU follows
  kOrder,    // uses of the same bytes that nothing puts in order
  kInit,     // reads of device memory that was never written
  kAdvice,   // what is legal, but costly or fragile
};
inline constexpr std::array<std::string_view, 6> kCheckNames = {"history", "leaks", "host",
                                                                "order",   "init",  "advice"};
constexpr std::string_view name_of(Check check) { return kCheckNames[static_cast<size_t>(check)]; }

class CheckSet {
 public:
  constexpr CheckSet() = default;
  constexpr explicit CheckSet(uint8_t bits) : bits_(bits) {}
  static constexpr CheckSet of(std::same_as<Check> auto... checks) {
    return CheckSet(static_cast<uint8_t>((0U | ... | bit_of(checks))));
  }
  static constexpr CheckSet all() { return CheckSet((1U << kCheckNames.size()) - 1); }
  // All but advice, which is for programs that are right already.
  static constexpr CheckSet mistakes() { return CheckSet(all().bits() & ~bit_of(Check::kAdvice)); }
  // "off", "on" (all mistakes), or a list with commas; nothing if it is none of that.
  static std::optional<CheckSet> parse(std::string_view text);
  // What `parse` takes, for people.
  static std::string allowed();

  constexpr void add(Check check) { bits_ |= bit_of(check); }
  constexpr bool has(Check check) const { return (bits_ & bit_of(check)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr uint8_t bits() const { return bits_; }

 private:
  static constexpr uint8_t bit_of(Check check) {
    return static_cast<uint8_t>(1U << static_cast<unsigned>(check));
  }
  uint8_t bits_ = 0;
};

// What a configuration asks for.
struct CheckChoice {
  static constexpr int kDefaultExitStatus = 86;

  CheckSet checks;
  int exit_status = kDefaultExitStatus;  // of a program with findings
  std::string report;                    // file for them, .json or .xml; empty: none
  std::string suppressions;              // file of findings that are not told; empty: none
};

extern constinit std::atomic<uint8_t> chosen_checks;  // bits of a CheckSet, and this one:
inline constexpr uint8_t kRecordingBit = 0x80;  // the process is recorded (observe/recorder.h)
static_assert((CheckSet::all().bits() & kRecordingBit) == 0);

inline bool is_checked(Check check) {
  return CheckSet(chosen_checks.load(std::memory_order_relaxed)).has(check);
}
// Whether one of them is.
inline bool is_checked(CheckSet checks) {
  return (chosen_checks.load(std::memory_order_relaxed) & checks.bits()) != 0;
}
inline bool is_any_checked() { return is_checked(CheckSet::all()); }
inline bool is_recorded() {
  return (chosen_checks.load(std::memory_order_relaxed) & kRecordingBit) != 0;
}
// Whether checks or a recording want to know what begins and ends.
inline bool is_observed() { return chosen_checks.load(std::memory_order_relaxed) != 0; }

}  // namespace understudy
