// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/replay_run.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <system_error>

#include "platform/tick_clock.h"
#include "tools/held_signals.h"
#include "tools/progress.h"
#include "tools/replay/call_text.h"
#include "tools/replay/replay_process.h"

namespace understudy::command {

namespace {

bool is_interrupted() {
  sigset_t pending;
  return sigpending(&pending) == 0 &&
         (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1);
}

class ReplayRun {
 public:
  ReplayRun(const Recording& recording, const ReplayPlan& plan, const ReplayState& state,
            const ReplayChoices& choices)
      : recording_(recording), plan_(plan), state_(state), choices_(choices) {}
  // Ends the processes that are left.
  ~ReplayRun();
  ReplayRun(const ReplayRun&) = delete;
  ReplayRun& operator=(const ReplayRun&) = delete;

  ReplayEnd run();

 private:
  struct Child {
    pid_t pid;
    uint32_t process;
  };

  void start_processes();
  bool are_all_ready() const { return state_.header().ready == started_; }
  void begin();
  // Takes note of processes that have ended. False if one ended that was not to.
  bool reap();
  std::string untimely_end(const Child& child, int status) const;
  // Calls that have ended; threads that pause count as if theirs did.
  uint64_t progress() const;
  bool stands_still();
  std::string standstill() const;

  const Recording& recording_;
  const ReplayPlan& plan_;
  const ReplayState& state_;
  const ReplayChoices& choices_;
  const HeldSignals signals_;
  std::vector<Child> children_;
  uint32_t started_ = 0;
  std::string failure_;
  uint64_t last_progress_ = UINT64_MAX;
  std::chrono::steady_clock::time_point last_change_;
};

ReplayRun::~ReplayRun() {
  for (const Child& child : children_) kill(child.pid, SIGKILL);
  for (const Child& child : children_) waitpid(child.pid, nullptr, 0);
}

void ReplayRun::start_processes() {
  for (uint32_t process = 0; process < recording_.processes.size(); ++process) {
    if (!plan_.processes[process].threads.empty()) ++started_;
  }
  state_.header().unfinished = started_;
  for (uint32_t process = 0; process < recording_.processes.size(); ++process) {
    if (plan_.processes[process].threads.empty()) continue;
    const pid_t pid = fork();
    if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid == 0) {
      play_process({recording_, plan_, state_, process, choices_.library,
                    choices_.environments[process], choices_.has_original_pace});
    }
    state_.process(process).pid = pid;
    children_.push_back({pid, process});
  }
}

void ReplayRun::begin() {
  state_.header().begin = platform::machine_time();
  state_.header().has_begun = true;
  state_.header().signal.raise();
}

std::string ReplayRun::untimely_end(const Child& child, int status) const {
  if (state_.header().failure[0] != '\0') return state_.header().failure.data();
  const std::string how = WIFSIGNALED(status)
                              ? std::string("was ended by signal ") + strsignal(WTERMSIG(status))
                              : "ended with status " + std::to_string(WEXITSTATUS(status));
  std::string text = "the process that plays process " +
                     std::to_string(recording_.processes[child.process].pid) + " " + how;
  for (const uint32_t thread : plan_.processes[child.process].threads) {
    const ThreadNow& now = state_.thread(thread);
    if (now.phase != ThreadPhase::kCalls) continue;
    text += ", in " + call_text(recording_, recording_.calls[plan_.calls[now.call].call]);
  }
  return text;
}

bool ReplayRun::reap() {
  bool is_well = true;
  std::erase_if(children_, [&](const Child& child) {
    int status = 0;
    if (waitpid(child.pid, &status, WNOHANG) != child.pid) return false;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      if (is_well) failure_ = untimely_end(child, status);
      is_well = false;
    }
    state_.process(child.process).has_ended = true;
    state_.header().signal.raise();
    return true;
  });
  return is_well;
}

uint64_t ReplayRun::progress() const {
  uint64_t ended = 0;
  for (uint32_t thread = 0; thread < recording_.threads.size(); ++thread) {
    ended += state_.thread(thread).ended;
  }
  return ended;
}

bool ReplayRun::stands_still() {
  const auto now = std::chrono::steady_clock::now();
  const uint64_t progress = this->progress();
  // A call that took long in the recording may do so again.
  uint64_t expected = 0;
  bool pauses = false;
  for (uint32_t thread = 0; thread < recording_.threads.size(); ++thread) {
    const ThreadNow& each = state_.thread(thread);
    if (each.phase == ThreadPhase::kPauses) pauses = true;
    if (each.phase != ThreadPhase::kCalls) continue;
    const RecordedCall& call = recording_.calls[plan_.calls[each.call].call];
    expected = std::max(expected, call.duration);
  }
  if (progress != last_progress_ || pauses) {
    last_progress_ = progress;
    last_change_ = now;
    return false;
  }
  const auto limit = std::chrono::seconds(choices_.longest_standstill) +
                     std::chrono::nanoseconds(std::min<uint64_t>(expected, uint64_t{1} << 60));
  return now - last_change_ > limit;
}

std::string ReplayRun::standstill() const {
  std::string text = "no call has ended for " + std::to_string(choices_.longest_standstill) + " s";
  uint64_t waiting = 0;
  for (uint32_t thread = 0; thread < recording_.threads.size(); ++thread) {
    const ThreadNow& now = state_.thread(thread);
    if (now.phase == ThreadPhase::kWaits) ++waiting;
    if (now.phase != ThreadPhase::kCalls) continue;
    const RecordedCall& call = recording_.calls[plan_.calls[now.call].call];
    const std::string place = place_text(recording_, call);
    text += "; " + thread_text(recording_, thread) + " is in " + call_text(recording_, call) +
            (place.empty() ? "" : ", called by " + place);
  }
  if (waiting != 0)
    text += "; threads that wait for other calls to end: " + std::to_string(waiting);
  return text;
}

ReplayEnd ReplayRun::run() {
  ReplayEnd end;
  start_processes();
  Signal& signal = state_.header().signal;
  for (uint32_t seen = signal.value(); !are_all_ready(); seen = signal.value()) {
    signal.wait(seen);
    end.interruption = is_interrupted() ? signals_.wait() : 0;
    if (end.interruption != 0) return end;
    if (!reap()) {
      end.failure = failure_;
      return end;
    }
  }
  const uint64_t first_tick = platform::tick();
  const uint64_t first_time = platform::machine_time();
  begin();
  Progress shown("calls", plan_.calls.size());
  last_change_ = std::chrono::steady_clock::now();
  while (!children_.empty()) {
    end.interruption = signals_.wait();
    if (end.interruption != 0) return end;
    if (!reap()) end.failure = failure_;
    if (end.failure.empty() && stands_still()) end.failure = standstill();
    if (!end.failure.empty()) break;
    shown.show(state_.order().ended());
  }
  const uint64_t ticks = platform::tick() - first_tick;
  if (ticks != 0) {
    end.nanoseconds_per_tick =
        static_cast<double>(platform::machine_time() - first_time) / static_cast<double>(ticks);
  }
  end.duration = state_.header().last_end > state_.header().begin
                     ? state_.header().last_end - state_.header().begin
                     : 0;
  return end;
}

}  // namespace

ReplayEnd run_replay(const Recording& recording, const ReplayPlan& plan, const ReplayState& state,
                     const ReplayChoices& choices) {
  return ReplayRun(recording, plan, state, choices).run();
}

}  // namespace understudy::command
