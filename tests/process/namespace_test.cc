// SPDX-License-Identifier: Apache-2.0
//
// Processes in namespaces of their own, as containers have them, that have the server's directory
// in common. What is guaranteed:
// - Network and System V IPC namespaces make no difference at all.
// - Across pid namespaces, capacity is common, the end of a process is noticed, and what is open to
//   all can be imported, by handle and by key. That holds with one /proc for all and with one each,
//   and when processes of two namespaces have the same number.
// - A whitelist has the numbers that the exporter sees. It admits a process of a namespace inside
//   the exporter's by the number that this one has outside; what that process takes for its own
//   number means another one, or nobody. A process that the exporter does not see at all cannot be
//   listed.
// Covers: IPC-14, SHARE-30, SHARE-31, SHARE-32, SHARE-35, SHARE-39, SHARE-42.
#include <optional>
#include <string>
#include <vector>

#include "process/process_namespace.h"
#include "process/sharing_objects.h"

namespace understudy_test::share {
namespace {

constexpr size_t kSize = 2 * kGranule;

std::string name_of_surroundings(const testing::TestParamInfo<Surroundings>& surroundings) {
  return surroundings.param.name;
}

bool import_key_and_look(ipc::Key key, size_t size) {
  const ipc::Import import(key);
  return is_marked(import.data(), size, 7);
}

// One process inside, one outside.
class Namespaces : public VirtualMemoryTest, public testing::WithParamInterface<Surroundings> {
 protected:
  void SetUp() override {
    VirtualMemoryTest::SetUp();
    start_inside(GetParam(), inside_);
  }

  Remote& inside() { return *inside_; }
  Remote& outside() { return outside_; }

  template <typename Body>
  void both_ways(Body body) {
    body("from inside to outside", inside(), outside());
    body("from outside to inside", outside(), inside());
  }

 private:
  std::optional<Remote> inside_;
  Remote outside_;
};

INSTANTIATE_TEST_SUITE_P(, Namespaces,
                         testing::Values(Surroundings{"Network", CLONE_NEWNET, Proc::kCommon},
                                         Surroundings{"Ipc", CLONE_NEWIPC, Proc::kCommon},
                                         Surroundings{"Pid", CLONE_NEWPID, Proc::kCommon},
                                         Surroundings{"PidAndProc", CLONE_NEWPID, Proc::kOwn}),
                         name_of_surroundings);

TEST_P(Namespaces, SHARE_32_SHARE_35_WhatIsOpenToAllIsSharedBothWays) {
  both_ways([](const char* way, Remote& exporter, Remote& importer) {
    SCOPED_TRACE(way);
    const Offer offer = exporter.call(offer_block, kSize, kEveryone, uint8_t{1});
    {
      RemoteView view(importer, offer.token, kSize);
      EXPECT_TRUE(view.shows(1));
      view.write(2);
      EXPECT_TRUE(exporter.call(is_marked, offer.view.start, kSize, uint8_t{2}));
    }
    exporter.call(close_view, offer.view);
    EXPECT_EQ(importer.import(offer.token), ACL_ERROR_RT_INVALID_HANDLE);
  });
}

TEST_P(Namespaces, IPC_14_KeysAreSharedBothWays) {
  both_ways([](const char* way, Remote& exporter, Remote& importer) {
    SCOPED_TRACE(way);
    for (const size_t size : {4 * kKiB, 4 * kMiB}) {
      const KeyOffer offer = exporter.call(offer_key, size, uint8_t{7});
      EXPECT_TRUE(importer.call(import_key_and_look, offer.key, size));
      exporter.call(withdraw_key, offer);
    }
  });
}

TEST_P(Namespaces, SHARE_42_CapacityIsCommonAndTheEndOfAProcessIsNoticed) {
  const size_t before = huge_bytes_free();
  both_ways([&](const char* way, Remote& exporter, Remote& importer) {
    SCOPED_TRACE(way);
    const Offer offer = exporter.call(offer_block, kSize, kEveryone, uint8_t{1});
    RemoteView view(importer, offer.token, kSize);
    for (Remote* const each : {&exporter, &importer}) {
      EXPECT_EQ(each->call(huge_bytes_free), before - kSize);
    }
    view.close();
    exporter.call(close_view, offer.view);
  });
  const Offer offer = inside().call(offer_block, kSize, kEveryone, uint8_t{3});
  RemoteView view(outside(), offer.token, kSize);
  (void)inside().call(offer_block, kSize, kEveryone, uint8_t{4});
  inside().kill();
  EXPECT_EQ(huge_bytes_free(), before - kSize);
  EXPECT_TRUE(view.shows(3));
  EXPECT_EQ(outside().import(offer.token), ACL_ERROR_RT_INVALID_HANDLE);
  view.close();
  EXPECT_EQ(huge_bytes_free(), before);
}

TEST_P(Namespaces, SHARE_39_MemoryOfADeadExporterInsideGoesBackToTheSystem) {
  constexpr size_t kBlocks = 32;
  std::vector<Offer> offers;
  for (size_t i = 0; i < kBlocks; ++i) {
    offers.push_back(inside().call(offer_block, kGranule, kEveryone, static_cast<uint8_t>(i + 1)));
  }
  RemoteView view(outside(), offers[5].token);
  EXPECT_TRUE(view.shows(6));
  inside().kill();
  EXPECT_TRUE(comes_true([&] {
    return outside().call(bytes_in_memory_files) < kBlocks / 4 * kGranule;
  })) << outside().call(bytes_in_memory_files)
      << " bytes are left, of which one block is held";
  EXPECT_TRUE(view.shows(6));
}

TEST_P(Namespaces, SHARE_31_TheNumberThatTheExporterSeesIsListed) {
  const Offer offer = outside().call(offer_block, kSize, kListed, uint8_t{1});
  EXPECT_EQ(inside().import(offer.token), ACL_ERROR_RT_NO_PERMISSION);
  outside().call(list, offer.token, Ids{inside().pid()});
  EXPECT_EQ(inside().import(offer.token), ACL_SUCCESS);
  outside().call(close_view, offer.view);
}

TEST_P(Namespaces, SHARE_30_NumbersOfAnotherPidNamespaceMeanNobody) {
  const bool same_numbers = GetParam().kind != CLONE_NEWPID;
  const aclError expected = same_numbers ? ACL_SUCCESS : ACL_ERROR_RT_NO_PERMISSION;
  both_ways([&](const char* way, Remote& exporter, Remote& importer) {
    SCOPED_TRACE(way);
    const Offer offer = exporter.call(offer_block, kSize, kListed, uint8_t{1});
    // As the documented flow has it: the importer tells its number.
    exporter.call(list, offer.token, Ids{importer.id()});
    EXPECT_EQ(importer.import(offer.token), expected);
    exporter.call(close_view, offer.view);
  });
}

// ---- Processes with the same number ----

class TwinNamespaces : public Namespaces {
 protected:
  void SetUp() override {
    Namespaces::SetUp();
    if (!IsSkipped()) start_inside(GetParam(), twin_);
  }
  Remote& twin() { return *twin_; }

 private:
  std::optional<Remote> twin_;
};
INSTANTIATE_TEST_SUITE_P(, TwinNamespaces,
                         testing::Values(Surroundings{"Pid", CLONE_NEWPID, Proc::kCommon},
                                         Surroundings{"PidAndProc", CLONE_NEWPID, Proc::kOwn}),
                         name_of_surroundings);

TEST_P(TwinNamespaces, SHARE_30_SHARE_32_TheFirstProcessesOfTwoNamespacesAreNotTheSame) {
  ASSERT_EQ(inside().id(), twin().id()) << "both are the first of their namespace";
  const Offer open = inside().call(offer_block, kSize, kEveryone, uint8_t{1});
  const Offer listed = inside().call(offer_block, kSize, kListed, uint8_t{2});
  inside().call(list, listed.token, Ids{twin().id()});  // its own number
  {
    RemoteView view(twin(), open.token, kSize);
    EXPECT_TRUE(view.shows(1));
  }
  EXPECT_EQ(twin().import(listed.token), ACL_ERROR_RT_NO_PERMISSION);
  EXPECT_EQ(inside().import(open.token), ACL_ERROR_RT_NO_PERMISSION) << "it is the exporter";
  for (const Offer& offer : {open, listed}) inside().call(close_view, offer.view);
}

}  // namespace
}  // namespace understudy_test::share
