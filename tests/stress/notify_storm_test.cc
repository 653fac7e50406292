// SPDX-License-Identifier: Apache-2.0
//
// Two healthy processes take turns by notifies, and four others record, wait for, import, export
// and destroy notifies at random, are stopped and killed at random instants and replaced. No turn
// of the healthy ones is lost, none of their calls answers a wrong code, and afterwards every
// notify still works.
//
// UNDERSTUDY_STORM_KILLS sets how many kills there are, UNDERSTUDY_STORM_SEED the first seed:
//   UNDERSTUDY_STORM_KILLS=5000 build/dev/bin/stress_tests --gtest_filter='NotifyStorm.*'
// Covers: XPROC-14.
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "rules/notify_objects.h"
#include "support/sanitizers.h"

namespace understudy_test::notify {
namespace {

constexpr unsigned kVictims = 4;
constexpr unsigned kShared = 4;  // notifies that all have; the last one is for those on its list
constexpr unsigned kTurns = 40;  // of the healthy ones between two kills
const unsigned kUsualKills = kSanitized ? 10 : 40;

struct Appointment {
  std::array<NotifyKey, kShared> keys;
  uint32_t seed = 0;
};

// A process that does anything with notifies until it is killed. It speaks only of wrong codes.
class Victim {
 public:
  Victim(const Appointment& appointment, Channel& channel)
      : appointment_(appointment), channel_(channel), random_(appointment.seed) {}

  void take_random_step() {
    const aclrtStream stream = streams_[below(streams_.size())].get();
    switch (below(8)) {
      case 0:
        if (notifies_.size() < 8) import(appointment_.keys[below(kShared)]);
        break;
      case 1:
        if (notifies_.size() < 8) create();
        break;
      case 2:
        destroy();
        break;
      case 3:
      case 4:
        if (!notifies_.empty()) expect_success(aclrtRecordNotify(any(), stream));
        break;
      case 5:
      case 6:
        if (!notifies_.empty()) {
          expect_success(aclrtWaitAndResetNotify(any(), stream, static_cast<uint32_t>(below(2))));
        }
        break;
      default:
        expect_success(aclrtStreamAbort(stream));
        break;
    }
  }

 private:
  size_t below(size_t count) { return random_() % count; }
  aclrtNotify any() { return notifies_[below(notifies_.size())]; }
  void expect_success(aclError code) {
    if (code != ACL_SUCCESS) channel_.send(code);
  }
  void import(const NotifyKey& key) {
    aclrtNotify notify = nullptr;
    expect_success(aclrtNotifyImportByKey(&notify, key.get(), 0));
    if (notify != nullptr) notifies_.push_back(notify);
  }
  // One of its own, that no process imports.
  void create() {
    aclrtNotify notify = nullptr;
    expect_success(aclrtCreateNotify(&notify, 0));
    notifies_.push_back(notify);
    NotifyKey key{};
    expect_success(aclrtNotifyGetExportKey(notify, key.text.data(), key.text.size(),
                                           below(2) == 0 ? kForAll : kForListed));
  }
  void destroy() {
    if (notifies_.empty()) return;
    std::swap(notifies_[below(notifies_.size())], notifies_.back());
    expect_success(aclrtDestroyNotify(notifies_.back()));
    notifies_.pop_back();
  }

  const Appointment appointment_;
  Channel& channel_;
  std::mt19937 random_;
  std::array<TestStream, 2> streams_;
  std::vector<aclrtNotify> notifies_;
};

US_PEER(NotifyStormVictim) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  channel.send(ipc::own_id());
  Victim victim(channel.receive<Appointment>(), channel);
  while (true) victim.take_random_step();
}

// Waits for the first notify and records the second one, as often as it is told.
US_PEER(NotifyStormPartner) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  {
    const TestStream stream;
    const TestNotify answer;
    channel.send(export_notify(answer.get()));
    const auto key = channel.receive<NotifyKey>();
    aclrtNotify question = nullptr;
    ASSERT_SUCCESS(aclrtNotifyImportByKey(&question, key.get(), 0));
    for (unsigned turns = 0; channel.receive_bytes(&turns, sizeof turns);) {
      for (unsigned i = 0; i < turns; ++i) {
        EXPECT_SUCCESS(aclrtWaitAndResetNotify(question, stream.get(), 0));
        answer.record(stream.get());
      }
      channel.send(finish_soon(stream.get()));
    }
    EXPECT_SUCCESS(aclrtDestroyNotify(question));
  }
  EXPECT_SUCCESS(aclrtResetDeviceForce(0));
}

unsigned number_from(const char* variable, unsigned usual) {
  const char* const text = getenv(variable);
  return text != nullptr ? static_cast<unsigned>(strtoul(text, nullptr, 10)) : usual;
}

class Storm {
 public:
  explicit Storm(unsigned seed) : random_(seed), seed_(seed) {
    for (unsigned i = 0; i < kShared; ++i) {
      appointment_.keys[i] =
          export_notify(shared_[i].get(), i + 1 < kShared ? kForAll : kForListed);
    }
    partner_.send(export_notify(question_.get()));
    const auto key = partner_.receive<NotifyKey>();
    EXPECT_SUCCESS(aclrtNotifyImportByKey(&answer_, key.get(), 0));
    for (auto& victim : victims_) start(victim);
  }

  // Turns of the healthy processes, of which none may be lost.
  void take_turns() {
    partner_.send(kTurns);
    for (unsigned i = 0; i < kTurns; ++i) {
      question_.record(stream_.get());
      EXPECT_SUCCESS(aclrtWaitAndResetNotify(answer_, stream_.get(), 0));
    }
    EXPECT_SUCCESS(finish_soon(stream_.get()));
    EXPECT_EQ(partner_.receive<aclError>(), ACL_SUCCESS);
  }
  void kill_one() {
    std::unique_ptr<Peer>& victim = victims_[random_() % kVictims];
    if (random_() % 2 == 0) {
      victim->signal(SIGSTOP);
      take_turns();
      victim->signal(SIGCONT);
    }
    EXPECT_FALSE(victim->channel().becomes_readable(std::chrono::milliseconds(0)))
        << "a victim had a wrong code, seed " << seed_;
    victim->kill();
    start(victim);
  }
  // With no victim left, all notifies work.
  void end() {
    for (auto& victim : victims_) {
      victim->kill();
      victim.reset();
    }
    for (const TestNotify& each : shared_) {
      aclrtNotify list[] = {each.get()};
      EXPECT_SUCCESS(aclrtNotifyBatchReset(list, 1));
      EXPECT_FALSE(take(each.get()));
      each.record(nullptr);
      EXPECT_SUCCESS(finish_soon(nullptr));
      EXPECT_TRUE(take(each.get()));
    }
    take_turns();
    partner_.finish();
    EXPECT_SUCCESS(aclrtDestroyNotify(answer_));
  }

 private:
  void start(std::unique_ptr<Peer>& victim) {
    victim = std::make_unique<Peer>(NotifyStormVictim);
    EXPECT_EQ(allow(shared_.back().get(), {victim->receive<int32_t>()}), ACL_SUCCESS);
    appointment_.seed = static_cast<uint32_t>(random_());
    victim->send(appointment_);
  }

  std::mt19937 random_;
  const unsigned seed_;
  const TestStream stream_;
  const TestNotify question_;
  aclrtNotify answer_ = nullptr;
  std::array<TestNotify, kShared> shared_;
  Appointment appointment_;
  Peer partner_{NotifyStormPartner};
  std::array<std::unique_ptr<Peer>, kVictims> victims_;
};

using NotifyStorm = DeviceTest;

TEST_F(NotifyStorm, XPROC_14_TurnsOfLiveProcessesOutliveTheDeathOfOthers) {
  const unsigned kills = number_from("UNDERSTUDY_STORM_KILLS", kUsualKills);
  const unsigned seed = number_from("UNDERSTUDY_STORM_SEED", 1);
  Storm storm(seed);
  for (unsigned i = 0; i < kills && !HasFailure(); ++i) {
    storm.take_turns();
    storm.kill_one();
  }
  storm.end();
}

}  // namespace
}  // namespace understudy_test::notify
