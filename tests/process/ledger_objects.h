// SPDX-License-Identifier: Apache-2.0
//
// What the tests of the ledger share: small devices, and processes that take memory, tell what they
// see, and end as a test wants. A test file declares them under names of its own:
//
//   US_PEER(LedgerUser) { serve_memory(channel); }
//
//   User user(LedgerUser);
//   EXPECT_EQ(user.take_all(), 120);
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <ostream>
#include <string>
#include <vector>

#include "support/peer.h"
#include "support/rule_test.h"
#include "support/server_directory.h"

namespace understudy_test::ledger {

inline constexpr size_t kPiece = 2 * kMiB;
inline constexpr size_t kChurnHolds = 6 * kPiece;  // at most

// Fills fast. For US_FRESH_PROCESS; peers of the fresh process inherit it.
#define US_SMALL_DEVICES \
  {"UNDERSTUDY_MEMORY", "256M"}, { "UNDERSTUDY_DEVICES", "2" }

struct Figures {
  size_t huge_free = 0;
  size_t huge_total = 0;
  size_t normal_free = 0;
  size_t normal_total = 0;

  friend bool operator==(const Figures&, const Figures&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Figures& figures) {
    return out << figures.huge_free << " of " << figures.huge_total << " bytes in huge pages and "
               << figures.normal_free << " of " << figures.normal_total << " in normal ones";
  }
};

// Of the current device.
inline Figures figures() {
  Figures seen;
  EXPECT_SUCCESS(aclrtGetMemInfo(ACL_HBM_MEM_HUGE, &seen.huge_free, &seen.huge_total));
  EXPECT_SUCCESS(aclrtGetMemInfo(ACL_HBM_MEM_NORMAL, &seen.normal_free, &seen.normal_total));
  return seen;
}

inline Figures figures_of(int32_t device) {
  EXPECT_SUCCESS(aclrtSetDevice(device));
  return figures();
}

inline Figures less(Figures from, size_t huge, size_t normal = 0) {
  from.huge_free -= huge;
  from.normal_free -= normal;
  return from;
}

inline void expect_all_free(const Figures& seen) {
  EXPECT_EQ(seen.huge_free, seen.huge_total);
  EXPECT_EQ(seen.normal_free, seen.normal_total);
  EXPECT_GT(seen.huge_total, 0u);
}

// Memory of the current device, held until told otherwise.
class Holdings {
 public:
  aclError take(size_t size, aclrtMemMallocPolicy policy = ACL_MEM_MALLOC_HUGE_ONLY) {
    void* data = nullptr;
    const aclError code = aclrtMallocAlign32(&data, size, policy);
    if (code == ACL_SUCCESS) held_.push_back(data);
    return code;
  }
  aclError take_block(size_t size) {
    int32_t device = 0;
    EXPECT_SUCCESS(aclrtGetDevice(&device));
    const aclrtPhysicalMemProp property = block_property(
        ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, static_cast<uint32_t>(device));
    aclrtDrvMemHandle block = nullptr;
    const aclError code = aclrtMallocPhysical(&block, size, &property, 0);
    if (code == ACL_SUCCESS) blocks_.push_back(block);
    return code;
  }
  // Piece by piece, until there is no more; how many it were.
  size_t take_all() {
    size_t count = 0;
    aclError code = ACL_SUCCESS;
    while ((code = count % 2 == 0 ? take(kPiece) : take_block(kPiece)) == ACL_SUCCESS) ++count;
    EXPECT_EQ(code, ACL_ERROR_RT_MEMORY_ALLOCATION) << recent_error();
    (void)recent_error();
    return count;
  }
  void give_back_one() {
    if (!held_.empty()) {
      EXPECT_SUCCESS(aclrtFree(held_.back()));
      held_.pop_back();
    } else if (!blocks_.empty()) {
      EXPECT_SUCCESS(aclrtFreePhysical(blocks_.back()));
      blocks_.pop_back();
    }
  }
  void give_back_all() {
    while (!held_.empty() || !blocks_.empty()) give_back_one();
  }

 private:
  std::vector<void*> held_;
  std::vector<aclrtDrvMemHandle> blocks_;
};

// ---- A process that uses memory ----

enum class Job : uint8_t {
  kTake,
  kTakeNormal,
  kTakeBlock,
  kTakeAll,
  kGiveBackOne,
  kGiveBackAll,
  kFigures,
  kChurn,
};

struct JobRequest {
  Job job = Job::kFigures;
  size_t size = kPiece;  // or a number of rounds
};

struct JobAnswer {
  aclError code = ACL_SUCCESS;
  size_t count = 0;
  Figures seen{};
};

// Takes and gives back, round after round; it says when it has begun. The first refusal counts.
inline aclError churn(Channel& channel, Holdings& holdings, size_t rounds) {
  aclError worst = ACL_SUCCESS;
  const auto note = [&worst](aclError code) { worst = worst == ACL_SUCCESS ? code : worst; };
  for (size_t round = 0; round < rounds; ++round) {
    for (int i = 0; i < 3; ++i) {
      note(holdings.take(kPiece));
      note(holdings.take_block(kPiece));
      note(holdings.take(4 * kKiB, ACL_MEM_MALLOC_NORMAL_ONLY));
    }
    holdings.give_back_all();
    if (round == 20) channel.send(JobAnswer{});
  }
  return worst;
}

inline JobAnswer work(Channel& channel, Holdings& holdings, const JobRequest& request) {
  JobAnswer answer;
  switch (request.job) {
    case Job::kTake:
      answer.code = holdings.take(request.size);
      break;
    case Job::kTakeNormal:
      answer.code = holdings.take(request.size, ACL_MEM_MALLOC_NORMAL_ONLY);
      break;
    case Job::kTakeBlock:
      answer.code = holdings.take_block(request.size);
      break;
    case Job::kTakeAll:
      answer.count = holdings.take_all();
      break;
    case Job::kGiveBackOne:
      holdings.give_back_one();
      break;
    case Job::kGiveBackAll:
      holdings.give_back_all();
      break;
    case Job::kFigures:
      break;
    case Job::kChurn:
      answer.code = churn(channel, holdings, request.size);
      break;
  }
  answer.seen = figures();
  return answer;
}

// Ends with all that it holds: to give it back is the library's part.
inline void serve_memory(Channel& channel) {
  Holdings holdings;
  ASSERT_SUCCESS(aclrtSetDevice(channel.receive<int32_t>()));
  for (JobRequest request; channel.receive_bytes(&request, sizeof request);) {
    channel.send(work(channel, holdings, request));
  }
}

class User {
 public:
  explicit User(PeerBody body, std::initializer_list<Variable> environment = {}, int32_t device = 0)
      : peer_(body, environment) {
    peer_.send(device);
  }

  void tell(const JobRequest& request) { peer_.send(request); }
  JobAnswer answer() { return peer_.receive<JobAnswer>(); }
  JobAnswer ask(const JobRequest& request) {
    tell(request);
    return answer();
  }
  aclError take(size_t size = kPiece) { return ask({.job = Job::kTake, .size = size}).code; }
  aclError take_normal(size_t size) { return ask({.job = Job::kTakeNormal, .size = size}).code; }
  aclError take_block(size_t size) { return ask({.job = Job::kTakeBlock, .size = size}).code; }
  size_t take_all() { return ask({.job = Job::kTakeAll}).count; }
  void give_back_one() { ask({.job = Job::kGiveBackOne}); }
  void give_back_all() { ask({.job = Job::kGiveBackAll}); }
  Figures figures() { return ask({.job = Job::kFigures}).seen; }
  Peer& peer() { return peer_; }

 private:
  Peer peer_;
};

// ---- A process whose first call may fail ----

enum class FirstCall : uint8_t { kInit, kSetDevice, kDeviceCount };
inline constexpr std::array kFirstCalls = {FirstCall::kInit, FirstCall::kSetDevice,
                                           FirstCall::kDeviceCount};

struct Outcome {
  aclError code = ACL_SUCCESS;
  std::array<char, 2000> text{};

  std::string message() const { return {text.data(), strnlen(text.data(), text.size())}; }
  bool names(const std::string& part) const { return message().find(part) != std::string::npos; }
};

inline aclError make_first_call(FirstCall call) {
  uint32_t count = 0;
  switch (call) {
    case FirstCall::kInit:
      return aclInit(nullptr);
    case FirstCall::kSetDevice:
      return aclrtSetDevice(0);
    case FirstCall::kDeviceCount:
      return aclrtGetDeviceCount(&count);
  }
  return ACL_SUCCESS;
}

// Makes a call each time it is told one.
inline void serve_first_call(Channel& channel) {
  for (FirstCall call{}; channel.receive_bytes(&call, sizeof call);) {
    Outcome outcome;
    outcome.code = make_first_call(call);
    const std::string text = recent_error();
    text.copy(outcome.text.data(), std::min(text.size(), outcome.text.size() - 1));
    channel.send(outcome);
  }
}

// The outcome of a call in the process. One that hangs is ended, so that the test can end.
inline Outcome outcome_of(Peer& peer, FirstCall call) {
  Outcome outcome;
  peer.send(call);
  if (!peer.channel().receive_bytes(&outcome, sizeof outcome)) {
    ADD_FAILURE() << "the first call of a process crashed or did not return";
    peer.kill();
  }
  return outcome;
}

}  // namespace understudy_test::ledger
