// SPDX-License-Identifier: Apache-2.0
#include "tools/held_signals.h"

#include <initializer_list>

namespace understudy::command {

namespace {

constexpr timespec kMoment{0, 100 * 1000 * 1000};

bool is_ignored(int signal) {
  struct sigaction action {};
  sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

}  // namespace

HeldSignals::HeldSignals() {
  struct sigaction action {};  // an ignored SIGCHLD would take the children's statuses away
  action.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &action, nullptr);
  sigemptyset(&held_);
  sigaddset(&held_, SIGCHLD);
  for (const int signal : {SIGINT, SIGTERM}) {
    if (!is_ignored(signal)) sigaddset(&held_, signal);
  }
  sigprocmask(SIG_BLOCK, &held_, &before_);
}

HeldSignals::~HeldSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

int HeldSignals::wait() const {
  const int signal = sigtimedwait(&held_, nullptr, &kMoment);
  return signal == SIGINT || signal == SIGTERM ? signal : 0;
}

}  // namespace understudy::command
