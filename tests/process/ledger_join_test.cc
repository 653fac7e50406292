// SPDX-License-Identifier: Apache-2.0
//
// Who joins which server: processes of one configuration and one directory, each by the devices
// that it sees. Sharing works wherever joining does.
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "process/ledger_objects.h"
#include "rules/ipc_objects.h"

namespace understudy_test::ledger {
namespace {

US_PEER(LedgerJoinUser) { serve_memory(channel); }
US_PEER(LedgerJoiner) { serve_first_call(channel); }
US_PEER(LedgerSharer) { ipc::serve_ipc(channel); }

US_PEER(LedgerFrugalSharer) {
  const rlimit few{64, 64};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  ipc::serve_ipc(channel);
}

// ---- Another configuration ----

struct Mismatch {
  const char* name;
  const char* variable;
  const char* here;
  const char* there;
  // How a text may name the two values.
  std::vector<std::string> names_here;
  std::vector<std::string> names_there;
};

void PrintTo(const Mismatch& mismatch, std::ostream* out) { *out << mismatch.name; }

bool names_any(const Outcome& outcome, const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return outcome.names(name); });
}

class LedgerMismatch : public testing::TestWithParam<Mismatch> {};
INSTANTIATE_TEST_SUITE_P(
    , LedgerMismatch,
    testing::Values(Mismatch{"product", "UNDERSTUDY_PRODUCT", "a2", "a3", {"a2"}, {"a3"}},
                    Mismatch{"devices", "UNDERSTUDY_DEVICES", "13", "17", {"13"}, {"17"}},
                    Mismatch{"memory",
                             "UNDERSTUDY_MEMORY",
                             "272M",
                             "528M",
                             {"272", "285212672"},
                             {"528", "553648128"}},
                    Mismatch{"idle_usage",
                             "UNDERSTUDY_IDLE_USAGE",
                             "34M",
                             "0",
                             {"idle_usage 34 MiB"},
                             {"idle_usage 0 bytes"}}),
    [](const testing::TestParamInfo<Mismatch>& parameter) {
      return std::string(parameter.param.name);
    });

TEST_P(LedgerMismatch, IsRefusedFromTheFirstCallWhileOthersLive) {
  const Mismatch& mismatch = GetParam();
  US_FRESH_PROCESS({mismatch.variable, mismatch.here});
  const auto differently = {Variable{mismatch.variable, mismatch.there}};
  User lives(LedgerJoinUser);
  EXPECT_EQ(lives.take(), ACL_SUCCESS);
  for (const FirstCall call : kFirstCalls) {
    SCOPED_TRACE(static_cast<int>(call));
    Peer joiner(LedgerJoiner, differently);
    const Outcome first = outcome_of(joiner, call);
    EXPECT_NE(first.code, ACL_SUCCESS);
    EXPECT_TRUE(names_any(first, mismatch.names_here)) << first.message();
    EXPECT_TRUE(names_any(first, mismatch.names_there)) << first.message();
    EXPECT_NE(outcome_of(joiner, FirstCall::kSetDevice).code, ACL_SUCCESS) << "and from the next";
  }
  EXPECT_EQ(lives.take(), ACL_SUCCESS) << "who lives there is not disturbed";
}

TEST_P(LedgerMismatch, IsServedOnceTheOthersAreGone) {
  const Mismatch& mismatch = GetParam();
  US_FRESH_PROCESS({mismatch.variable, mismatch.here});
  const auto differently = {Variable{mismatch.variable, mismatch.there}};
  Peer early(LedgerJoiner, differently);
  for (const bool by_signal : {false, true}) {
    SCOPED_TRACE(by_signal);
    User lives(LedgerJoinUser);
    EXPECT_EQ(lives.take(), ACL_SUCCESS);
    if (by_signal) {
      lives.peer().kill();
    } else {
      EXPECT_NE(outcome_of(early, FirstCall::kSetDevice).code, ACL_SUCCESS);
      lives.peer().finish();
    }
    User next(LedgerJoinUser, differently);
    expect_all_free(next.figures());
  }
  // Nobody is left, and a process that was refused may try again.
  const Outcome again = outcome_of(early, FirstCall::kSetDevice);
  EXPECT_EQ(again.code, ACL_SUCCESS) << again.message();
}

TEST(LedgerJoin, WhatDoesNotShapeTheDevicesMayDiffer) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  const Figures empty = figures_of(0);
  User user(LedgerJoinUser, {{"UNDERSTUDY_POISON", "on"}, {"UNDERSTUDY_COMMIT", "eager"}});
  EXPECT_EQ(user.take(), ACL_SUCCESS);
  EXPECT_EQ(figures(), less(empty, kPiece));
}

// ---- Several servers ----

TEST(LedgerJoin, ServersSideBySideDoNotSeeEachOther) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  const Figures empty = figures_of(0);
  const ServerDirectory first;
  const ServerDirectory second;
  User in_first(LedgerJoinUser, {{kServerVariable, first.path()}});
  User in_second(LedgerJoinUser, {{kServerVariable, second.path()}});
  EXPECT_EQ(in_first.take_all(), empty.huge_total / kPiece);
  expect_all_free(in_second.figures());
  expect_all_free(figures());
  EXPECT_EQ(in_second.take_all(), empty.huge_total / kPiece);
  Holdings own;
  EXPECT_EQ(own.take_all(), empty.huge_total / kPiece);
  own.give_back_all();

  // Even one of another product.
  const ServerDirectory third;
  User in_third(LedgerJoinUser, {{kServerVariable, third.path()}, {"UNDERSTUDY_PRODUCT", "a3"}});
  expect_all_free(in_third.figures());
}

TEST(LedgerJoin, KeysOfAnotherServerAreUnknown) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  EXPECT_SUCCESS(aclrtSetDevice(0));
  const ServerDirectory elsewhere;
  ipc::Other stranger(LedgerSharer, 0, {{kServerVariable, elsewhere.path()}});
  const ipc::ExportedBlock here(kMiB);
  EXPECT_NE(stranger.import(here.key()).code, ACL_SUCCESS);
  const ipc::Key there = stranger.export_block(stranger.allocate(kMiB), kMiB);
  void* data = untouched_address();
  EXPECT_NE(aclrtIpcMemImportByKey(&data, there.get(), 0), ACL_SUCCESS);
  EXPECT_EQ(data, untouched_address());
}

// The path of a socket has at most 107 characters; that of a directory may have more.
TEST(LedgerJoin, ALongPathIsAsGoodForSharing) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  const ServerDirectory short_directory;
  const std::string path =
      short_directory.path() + "/" + std::string(120, 'd') + "/" + std::string(100, 'e');
  ASSERT_TRUE(std::filesystem::create_directories(path));
  ASSERT_EQ(chmod(path.c_str(), 0700), 0);
  ipc::Other exporter(LedgerSharer, 0, {{kServerVariable, path}});
  ipc::Other importer(LedgerSharer, 0, {{kServerVariable, path}});
  void* const data = exporter.allocate(kMiB);
  exporter.fill(data, kMiB, 1);
  for (const uint64_t flags : {ipc::kForListed, ipc::kForAll}) {
    SCOPED_TRACE(flags);
    const ipc::Key key = exporter.export_block(data, kMiB, flags);
    if (flags == ipc::kForListed) {
      EXPECT_EQ(importer.import(key).code, ACL_ERROR_RT_NO_PERMISSION);
      EXPECT_EQ(exporter.allow(key, importer.id()), ACL_SUCCESS);
    }
    EXPECT_TRUE(importer.has(importer.attach(key), kMiB, 1));
    EXPECT_EQ(importer.free_bytes(), exporter.free_bytes());
    EXPECT_EQ(importer.close(key), ACL_SUCCESS);
    EXPECT_EQ(exporter.close(key), ACL_SUCCESS);
  }
}

TEST(LedgerJoin, FewDescriptorsAreEnoughForManyShares) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  constexpr size_t kShares = 100;
  ipc::Other exporter(LedgerFrugalSharer);
  ipc::Other importer(LedgerFrugalSharer);
  std::vector<std::pair<ipc::Key, void*>> shares;
  for (size_t i = 0; i < kShares; ++i) {
    void* const data = exporter.allocate(512);
    exporter.fill(data, 512, static_cast<uint8_t>(i));
    const ipc::Key key = exporter.export_block(data, 512);
    shares.emplace_back(key, importer.attach(key));
  }
  for (size_t i = 0; i < kShares; ++i) {
    EXPECT_TRUE(importer.has(shares[i].second, 512, static_cast<uint8_t>(i))) << i;
  }
  for (const auto& [key, data] : shares) EXPECT_EQ(importer.close(key), ACL_SUCCESS) << data;
}

// ---- Devices by other numbers ----

TEST(LedgerJoin, AProcessThatSeesOneDeviceUsesThatOne) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  const Figures empty = figures_of(1);
  User user(LedgerJoinUser, {{"ASCEND_RT_VISIBLE_DEVICES", "1"}});
  EXPECT_EQ(user.take(20 * kMiB), ACL_SUCCESS);
  EXPECT_EQ(user.take_block(2 * kMiB), ACL_SUCCESS);
  EXPECT_EQ(figures_of(1), less(empty, 22 * kMiB));
  expect_all_free(figures_of(0));
  EXPECT_EQ(user.figures(), less(empty, 22 * kMiB));

  // It competes for the memory of that one, and of no other.
  Holdings own;
  EXPECT_SUCCESS(aclrtSetDevice(0));
  EXPECT_EQ(own.take_all(), empty.huge_total / kPiece);
  EXPECT_EQ(user.take(), ACL_SUCCESS);
  EXPECT_SUCCESS(aclrtSetDevice(1));
  Holdings own_there;
  EXPECT_EQ(own_there.take_all(), empty.huge_total / kPiece - 12);
  EXPECT_EQ(user.take(), ACL_ERROR_RT_MEMORY_ALLOCATION);
  user.peer().kill();
  EXPECT_EQ(own_there.take(24 * kMiB), ACL_SUCCESS);
}

TEST(LedgerJoin, SharesReachAProcessThatNumbersDevicesOtherwise) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  EXPECT_SUCCESS(aclrtSetDevice(1));
  const Figures before = figures();
  {
    ipc::Other other(LedgerSharer, 0, {{"ASCEND_RT_VISIBLE_DEVICES", "1"}});
    const ipc::ExportedBlock block(kMiB);
    block.fill(3);
    void* const there = other.attach(block.key());
    EXPECT_TRUE(other.has(there, kMiB, 3));
    EXPECT_TRUE(other.is_device_memory(there));
    EXPECT_EQ(other.free_bytes(), free_bytes());
    EXPECT_EQ(other.close(block.key()), ACL_SUCCESS);
  }
  EXPECT_EQ(figures(), before);
}

}  // namespace
}  // namespace understudy_test::ledger
