// SPDX-License-Identifier: Apache-2.0
//
// For work with child processes that must clean up when it is interrupted: while this lives,
// SIGINT, SIGTERM (unless ignored) and the ends of children are not delivered but waited for.
#pragma once

#include <csignal>

namespace understudy::command {

class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  // Waits for the end of a child or an interruption, for a moment. The signal that interrupts; 0 if
  // none does.
  int wait() const;

 private:
  sigset_t held_;
  sigset_t before_;
};

}  // namespace understudy::command
