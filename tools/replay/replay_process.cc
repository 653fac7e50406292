// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/replay_process.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "platform/tick_clock.h"
#include "tools/replay/call_arguments.h"

namespace understudy::command {

namespace {

// The functions of the library by their place in the recording; null for those that are not called.
struct LoadedFunctions {
  std::vector<void*> functions;
  std::vector<void*> undoing;
  const char* (*recent_error)() = nullptr;
  aclError (*memory_info)(aclrtMemAttr, size_t*, size_t*) = nullptr;
  aclError (*set_device)(int32_t) = nullptr;
};

bool is_shortage(aclError code) {
  return code == ACL_ERROR_RT_MEMORY_ALLOCATION || code == ACL_ERROR_BAD_ALLOC ||
         code == ACL_ERROR_STORAGE_OVER_LIMIT;
}

class ReplayThread {
 public:
  ReplayThread(const ReplayedProcessFacts& facts, const LoadedFunctions& library,
               ProgramMemory& memory, uint32_t thread)
      : facts_(facts),
        library_(library),
        thread_(thread),
        now_(facts.state.thread(thread)),
        planned_(facts.plan.threads[thread]),
        arguments_(facts.recording, facts.plan, facts.state, memory) {}

  void play();

 private:
  void wait_for_turn(const PlannedCall& planned);
  void wait_for_pace(const RecordedCall& call);
  void make(uint32_t position);
  aclError call(uint32_t position);
  void undo(const PlannedCall& planned);
  void note_difference(uint32_t position, aclError code);
  // Whether a process ended that had finished: what it held is free then, as it may have been in
  // the recording.
  bool end_finished_processes(uint32_t position);
  void end_makers_of_what_is_used(uint32_t position);
  bool end_process(uint32_t process, uint32_t position);

  const ReplayedProcessFacts& facts_;
  const LoadedFunctions& library_;
  const uint32_t thread_;
  ThreadNow& now_;
  const ReplayedThread& planned_;
  CallArguments arguments_;
};

void ReplayThread::wait_for_turn(const PlannedCall& planned) {
  now_.phase.store(ThreadPhase::kWaits);
  facts_.state.order().await(planned.awaited, thread_);
}

void ReplayThread::wait_for_pace(const RecordedCall& call) {
  const uint64_t first = facts_.recording.calls[facts_.plan.calls.front().call].begin;
  const uint64_t due = facts_.state.header().begin + (call.begin - first);
  const uint64_t now = platform::machine_time();
  if (now >= due) return;
  now_.phase.store(ThreadPhase::kPauses);
  std::this_thread::sleep_for(std::chrono::nanoseconds(due - now));
}

aclError ReplayThread::call(uint32_t position) {
  const PlannedCall& planned = facts_.plan.calls[position];
  const uint32_t function = facts_.recording.calls[planned.call].function;
  CallResult& result = facts_.state.result(position);
  const auto invoke = facts_.plan.functions[function].called->invoke;
  void* const address = library_.functions[function];
  const uint64_t begin = platform::tick();
  const aclError code = invoke(address, arguments_.words());
  result.ticks = platform::tick() - begin;
  return code;
}

bool ReplayThread::end_process(uint32_t process, uint32_t position) {
  ProcessNow& other = facts_.state.process(process);
  const ReplayedProcess& planned = facts_.plan.processes[process];
  if (process == facts_.process || planned.threads.empty() || other.has_ended ||
      planned.over_at > facts_.plan.calls[position].awaited || planned.needed_until >= position) {
    return false;
  }
  other.is_to_end = true;
  Signal& signal = facts_.state.header().signal;
  signal.raise();
  for (uint32_t seen = signal.value(); !other.has_ended; seen = signal.value()) signal.wait(seen);
  return true;
}

bool ReplayThread::end_finished_processes(uint32_t position) {
  bool has_ended = false;
  for (uint32_t process = 0; process < facts_.recording.processes.size(); ++process) {
    has_ended = end_process(process, position) || has_ended;
  }
  return has_ended;
}

void ReplayThread::end_makers_of_what_is_used(uint32_t position) {
  const PlannedCall& planned = facts_.plan.calls[position];
  const auto& roles = facts_.plan.functions[facts_.recording.calls[planned.call].function].roles;
  if (std::none_of(roles.begin(), roles.end(),
                   [](const auto& role) { return role.is_public() && !role.is_written; })) {
    return;
  }
  const size_t end = position + 1 < facts_.plan.calls.size()
                         ? facts_.plan.calls[position + 1].first_reference
                         : facts_.plan.references.size();
  for (size_t i = planned.first_reference; i < end; ++i) {
    const Reference& reference = facts_.plan.references[i];
    if (reference.source != Source::kThing) continue;
    end_process(facts_.plan.things[reference.thing].process, position);
  }
}

// It failed in the recording: what it makes here is not what later calls count on.
void ReplayThread::undo(const PlannedCall& planned) {
  void* const function = library_.undoing[facts_.recording.calls[planned.call].function];
  if (function == nullptr) return;
  const uint64_t made = arguments_.made(planned);
  (void)reinterpret_cast<aclError (*)(uint64_t)>(function)(made);
}

void ReplayThread::note_difference(uint32_t position, aclError code) {
  const uint32_t number = facts_.state.header().differences.fetch_add(1);
  if (number >= kKeptDifferences) return;
  DifferenceNow& difference = facts_.state.difference(number);
  difference.call = position;
  if (code != ACL_SUCCESS) {
    const char* const sentence = library_.recent_error();
    if (sentence != nullptr) {
      // The sentences of other failures may follow.
      snprintf(difference.sentence.data(), difference.sentence.size(), "%.*s",
               static_cast<int>(std::min<size_t>(strcspn(sentence, "\n"), INT_MAX)), sentence);
    }
  }
  size_t free = 0;
  size_t total = 0;
  if (is_shortage(code) && library_.memory_info(ACL_HBM_MEM, &free, &total) == ACL_SUCCESS) {
    difference.free_bytes = free;
    difference.total_bytes = total;
  }
  difference.is_complete.store(true, std::memory_order_release);
}

void ReplayThread::make(uint32_t position) {
  const PlannedCall& planned = facts_.plan.calls[position];
  const aclError recorded = facts_.recording.calls[planned.call].code;
  CallResult& result = facts_.state.result(position);
  if (recorded != ACL_SUCCESS) end_makers_of_what_is_used(position);
  if (!arguments_.prepare(planned)) {
    arguments_.give_up_things(planned);
    result.outcome = CallOutcome::kImpossible;
    return;
  }
  now_.phase.store(ThreadPhase::kCalls);
  result.code = call(position);
  if (recorded == ACL_SUCCESS && is_shortage(result.code) && end_finished_processes(position)) {
    (void)arguments_.prepare(planned);
    result.code = call(position);
  }
  if (result.code == ACL_SUCCESS && recorded == ACL_SUCCESS) {
    arguments_.publish_things(planned);
  } else if (recorded == ACL_SUCCESS) {
    arguments_.give_up_things(planned);
  }
  if (result.code != recorded) note_difference(position, result.code);
  if (result.code == ACL_SUCCESS && recorded != ACL_SUCCESS) undo(planned);
  result.outcome = CallOutcome::kMade;
}

void ReplayThread::play() {
  if (planned_.device >= 0) (void)library_.set_device(planned_.device);
  for (const uint32_t position : planned_.calls) {
    const PlannedCall& planned = facts_.plan.calls[position];
    now_.call.store(position);
    wait_for_turn(planned);
    if (facts_.has_original_pace) wait_for_pace(facts_.recording.calls[planned.call]);
    make(position);
    now_.ended.fetch_add(1);
    facts_.state.order().note_end(planned.place);
  }
  std::atomic<uint64_t>& last = facts_.state.header().last_end;
  const uint64_t end = platform::machine_time();
  for (uint64_t known = last.load(); known < end && !last.compare_exchange_weak(known, end);) {
  }
  now_.phase.store(ThreadPhase::kEnded);
}

class ReplayProcess {
 public:
  explicit ReplayProcess(const ReplayedProcessFacts& facts)
      : facts_(facts),
        memory_(facts.plan.processes[facts.process].host_bytes,
                facts.plan.processes[facts.process].uses_what_ended) {}

  void play();

 private:
  [[noreturn]] void fail(const std::string& sentence) const;
  void load();
  void await_begin() const;
  void await_end() const;

  const ReplayedProcessFacts& facts_;
  ProgramMemory memory_;
  LoadedFunctions library_;
};

void ReplayProcess::fail(const std::string& sentence) const {
  ReplayHeader& header = facts_.state.header();
  snprintf(header.failure.data(), header.failure.size(), "%s", sentence.c_str());
  _exit(EXIT_FAILURE);
}

void ReplayProcess::load() {
  for (const auto& [name, value] : facts_.environment) setenv(name.c_str(), value.c_str(), 1);
  void* const library = dlopen(facts_.library.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) fail(dlerror());
  const auto find = [&](const char* name) {
    void* const function = dlsym(library, name);
    if (function == nullptr) fail(facts_.library + " has no function " + name);
    return function;
  };
  for (const PlannedFunction& function : facts_.plan.functions) {
    const ReplayedCall* const called = function.called;
    library_.functions.push_back(called == nullptr ? nullptr : find(called->name));
    library_.undoing.push_back(called == nullptr || called->undo == nullptr ? nullptr
                                                                            : find(called->undo));
  }
  library_.recent_error = reinterpret_cast<const char* (*)()>(find("aclGetRecentErrMsg"));
  library_.memory_info =
      reinterpret_cast<aclError (*)(aclrtMemAttr, size_t*, size_t*)>(find("aclrtGetMemInfo"));
  library_.set_device = reinterpret_cast<aclError (*)(int32_t)>(find("aclrtSetDevice"));
}

void ReplayProcess::await_begin() const {
  const ReplayHeader& header = facts_.state.header();
  for (uint32_t seen = header.signal.value(); !header.has_begun; seen = header.signal.value()) {
    header.signal.wait(seen);
  }
}

void ReplayProcess::await_end() const {
  ReplayHeader& header = facts_.state.header();
  ProcessNow& now = facts_.state.process(facts_.process);
  header.unfinished.fetch_sub(1);
  header.signal.raise();
  for (uint32_t seen = header.signal.value(); header.unfinished != 0 && !now.is_to_end;
       seen = header.signal.value()) {
    header.signal.wait(seen);
  }
}

void ReplayProcess::play() {
  load();
  wait_in_functions_for(facts_.state);
  const std::vector<uint32_t>& threads = facts_.plan.processes[facts_.process].threads;
  std::vector<std::unique_ptr<ReplayThread>> players;
  std::vector<std::thread> running;
  std::atomic<uint32_t> known = 0;  // threads by which others call them
  try {
    for (const uint32_t thread : threads) {
      players.push_back(std::make_unique<ReplayThread>(facts_, library_, memory_, thread));
      running.emplace_back([this, &known, thread, player = players.back().get()] {
        facts_.state.thread(thread).identity = static_cast<uint64_t>(pthread_self());
        known.fetch_add(1);
        known.notify_one();
        await_begin();
        player->play();
      });
    }
  } catch (const std::exception& error) {
    fail("the host has no room for " + std::to_string(threads.size()) +
         " threads: " + error.what());
  }
  for (uint32_t seen = known; seen < threads.size(); seen = known) known.wait(seen);
  facts_.state.header().ready.fetch_add(1);
  facts_.state.header().signal.raise();
  for (std::thread& thread : running) thread.join();
  await_end();
}

}  // namespace

void play_process(const ReplayedProcessFacts& facts) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, "understudy-play");
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  try {
    ReplayProcess(facts).play();
  } catch (const std::exception&) {
    _exit(EXIT_FAILURE);
  }
  // As a program that ends without a word: what it holds is the next one's at once.
  _exit(EXIT_SUCCESS);
}

}  // namespace understudy::command
