// SPDX-License-Identifier: Apache-2.0
//
// A server with a directory of its own, which processes of a test join. A process may have one
// ledger of it at a time: file locks belong to processes.
#pragma once

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "device/capacity.h"
#include "device/ledger.h"
#include "platform/private_directory.h"
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
  Result<std::unique_ptr<Ledger>> try_join(const ServerShape& wanted = shape()) const {
    US_TRY_ASSIGN(platform::PrivateDirectory opened,
                  platform::PrivateDirectory::open_or_make(directory_.path()));
    return Ledger::join(std::move(opened), wanted);
  }
  std::unique_ptr<Ledger> join() const { return value_of(try_join()); }

  // A process that joins, does its part and is killed with what it has; returns when it is dead.
  template <typename Body>
  void with_process_that_dies(Body body) const {
    OtherProcess process([&](const Line&) {
      const std::unique_ptr<Ledger> ledger = join();
      body(*ledger);
      OtherProcess::end_child();
    });
    EXPECT_TRUE(process.ended_well());
  }
  // The same while it has the mutex of the ledger.
  template <typename Body>
  void with_process_that_dies_locked(Body body) const {
    with_process_that_dies([&](Ledger& ledger) {
      const LedgerLock lock = value_of(ledger.lock());
      body(ledger);
      OtherProcess::end_child();
    });
  }

  // The body of a process that joins, says its tag and lives until it is told or killed.
  auto member() const {
    return [this](const Line& line) {
      const std::unique_ptr<Ledger> ledger = join();
      line.say(ledger->own_tag().word());
      line.hear();
    };
  }

 private:
  TemporaryDirectory directory_;
};

}  // namespace understudy
