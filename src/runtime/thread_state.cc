// SPDX-License-Identifier: Apache-2.0
#include "runtime/thread_state.h"

#include <utility>

namespace understudy {

void ErrorTexts::add(std::string text) {
  texts_.push_front(std::move(text));
  if (texts_.size() > kMaxTexts) texts_.pop_back();
}

std::string ErrorTexts::take() {
  std::string joined;
  for (const std::string& text : std::exchange(texts_, {})) joined += text + "\n";
  return joined;
}

namespace {

thread_local ThreadState* own_state [[gnu::tls_model("initial-exec")]] = nullptr;

struct StateReturner {
  ~StateReturner() { delete std::exchange(own_state, nullptr); }
};

}  // namespace

ThreadState& thread_state() {
  if (own_state == nullptr) [[unlikely]] {
    thread_local StateReturner returner;
    (void)returner;
    own_state = new ThreadState;
  }
  return *own_state;
}

}  // namespace understudy
