// SPDX-License-Identifier: Apache-2.0
//
// A server with a directory of its own, which processes of a test join.
#pragma once

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "platform/private_directory.h"
#include "server/server.h"
#include "unit/expect_result.h"
#include "unit/other_process.h"
#include "unit/temporary_directory.h"

namespace understudy {

class TestServer {
 public:
  static constexpr unsigned kDevices = 2;
  static constexpr uint64_t kNormalMemory = 4 * kMiB;
  static constexpr uint64_t kHugeMemory = 64 * kMiB;

  static ServerShape shape() {
    ServerShape shape;
    shape.product = {'t', 'e', 's', 't'};
    shape.devices = kDevices;
    shape.memory = kNormalMemory + kHugeMemory;
    shape.normal_memory = kNormalMemory;
    return shape;
  }
  static std::vector<int32_t> numbers() {
    std::vector<int32_t> all(kDevices);
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  const TemporaryDirectory& directory() const { return directory_; }
  std::string ledger_path() const { return directory_.at("ledger"); }
  Result<std::unique_ptr<Server>> try_join(const ServerShape& wanted = shape(),
                                           std::vector<int32_t> devices = numbers()) const {
    US_TRY_ASSIGN(platform::PrivateDirectory opened,
                  platform::PrivateDirectory::open_or_make(directory_.path()));
    return Server::join(std::move(opened), wanted, std::move(devices));
  }
  std::unique_ptr<Server> join() const { return value_of(try_join()); }

  // A process that joins, does its part and is killed with what it has; returns when it is dead.
  template <typename Body>
  void with_process_that_dies(Body body) const {
    OtherProcess process([&](const Line&) {
      const std::unique_ptr<Server> joined = join();
      body(*joined);
      OtherProcess::end_child();
    });
    EXPECT_TRUE(process.ended_well());
  }
  // The same while it has the ledger's lock.
  template <typename Body>
  void with_process_that_dies_locked(Body body) const {
    with_process_that_dies([&](Server& joined) {
      const LedgerLock lock(joined.slots().mutex(), kNever);
      body(joined);
      OtherProcess::end_child();
    });
  }

  // The body of a process that joins, says its tag and lives until it is told or killed.
  auto member() const {
    return [this](const Line& line) {
      const std::unique_ptr<Server> joined = join();
      line.say(joined->slots().own_tag().word());
      line.hear();
    };
  }

 private:
  TemporaryDirectory directory_;
};

inline bool can_lock(Server& joined) {
  return LedgerLock(joined.slots().mutex(), ledger_deadline()).taken().ok();
}

inline void reclaim(Server& joined) {
  const LedgerLock lock(joined.slots().mutex(), ledger_deadline());
  ASSERT_TRUE(lock.taken().ok());
  joined.slots().reclaim();
}

}  // namespace understudy
