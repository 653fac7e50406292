// SPDX-License-Identifier: Apache-2.0
//
// What the worker threads do, as numbers, and which of them is to take up new work. There are about
// as many workers as processors, however many streams there are; those inside functions of the
// program do not count, so that one that blocks holds up its own stream alone.
// Not synchronised: the run queue guards it.
#pragma once

#include <cstdint>

namespace understudy {

class WorkerCounts {
 public:
  explicit WorkerCounts(unsigned most_workers) : most_(most_workers) {}

  enum class Call : uint8_t { kNone, kDozer, kSleeper, kNewWorker };
  // Whether work may wait until a worker that dozes looks in.
  enum class Urgency : uint8_t { kSoon, kNow };
  // Whom to call for work that was added. Counts the call; one for a new worker is taken back with
  // remove_worker() if that cannot be started.
  Call call(Urgency urgency = Urgency::kSoon) {
    if (looking_out_ > 0) return Call::kNone;  // it will see
    if (is_dozing_) {
      if (urgency == Urgency::kSoon || is_dozer_called_) return Call::kNone;
      is_dozer_called_ = true;
      return Call::kDozer;
    }
    if (sleeping_ > called_) {
      ++called_;
      return Call::kSleeper;
    }
    if (called_ > 0 || workers_ - in_user_code_ >= most_) return Call::kNone;
    ++workers_;
    return Call::kNewWorker;
  }

  bool has_worker() const { return workers_ > 0; }
  bool has_too_many() const { return workers_ - in_user_code_ > most_; }
  void add_worker() { ++workers_; }
  void remove_worker() { --workers_; }
  void enter_user_code() { ++in_user_code_; }
  void leave_user_code() { --in_user_code_; }
  void begin_looking_out() { ++looking_out_; }
  void end_looking_out() { --looking_out_; }
  // False if another worker dozes: one is enough.
  bool try_doze() {
    if (is_dozing_) return false;
    is_dozing_ = true;
    is_dozer_called_ = false;
    return true;
  }
  void end_dozing() { is_dozing_ = false; }
  void fall_asleep() { ++sleeping_; }
  void wake_up() {
    --sleeping_;
    if (called_ > 0) --called_;
  }

 private:
  const unsigned most_;
  unsigned workers_ = 0;
  unsigned in_user_code_ = 0;
  unsigned looking_out_ = 0;
  bool is_dozing_ = false;        // a worker looks in now and then
  bool is_dozer_called_ = false;  // and was told to look at once
  unsigned sleeping_ = 0;
  unsigned called_ = 0;  // sleepers that were called and are not up yet
};

}  // namespace understudy
