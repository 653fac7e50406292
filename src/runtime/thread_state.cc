// SPDX-License-Identifier: Apache-2.0
#include "runtime/thread_state.h"

#include <algorithm>
#include <utility>

#include "platform/fork_sentinel.h"

namespace understudy {

void ErrorTexts::add(const char* function, const Error& error) {
  std::string text = std::string(function) + ": " + error.text();
  // What programs named or threw may have lines, and a text is one.
  std::replace_if(
      text.begin(), text.end(), [](char each) { return each == '\n' || each == '\r'; }, ' ');
  texts_.push_front({function, false, std::move(text)});
  if (texts_.size() > kMaxTexts) texts_.pop_back();
}

std::string ErrorTexts::take() {
  std::string joined;
  for (const Text& each : texts_) {
    if (each.is_dated && &each != &texts_.front()) continue;
    joined += each.text + "\n";
  }
  texts_.clear();
  return joined;
}

void ErrorTexts::note_success(const char* function) noexcept {
  for (Text& each : texts_) each.is_dated |= each.function == function;
}

uint64_t ErrorTexts::awaited() const {
  uint64_t bits = 0;
  for (const Text& each : texts_) bits |= each.is_dated ? 0 : bit_of_function(each.function);
  return bits;
}

thread_local constinit uint64_t awaited_successes = 0;
thread_local constinit ThreadState* own_thread_state = nullptr;

namespace {

void forget_state() {
  delete std::exchange(own_thread_state, nullptr);
  awaited_successes = 0;
}

struct StateReturner {
  ~StateReturner() { forget_state(); }
};

// The context and the texts of a fork child's only thread are its parent's.
[[maybe_unused]] const bool registered = (platform::call_in_fork_child(forget_state), true);

}  // namespace

ThreadState& make_thread_state() {
  thread_local StateReturner returner;
  (void)returner;
  own_thread_state = new ThreadState;
  return *own_thread_state;
}

}  // namespace understudy
