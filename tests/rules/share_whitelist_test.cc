// SPDX-License-Identifier: Apache-2.0
//
// aclrtMemSetPidToShareableHandle and its V2: which processes an exporter lets in.
// Covers: SHARE-15, SHARE-16, SHARE-17, SHARE-18, SHARE-19, SHARE-20, SHARE-21, SHARE-22, SHARE-23.
#include <climits>
#include <cstring>
#include <optional>
#include <vector>

#include "rules/share_objects.h"

namespace understudy_test::share {
namespace {

// A block that only listed processes may import.
class ShareWhitelist : public VirtualMemoryTest {
 protected:
  void SetUp() override {
    VirtualMemoryTest::SetUp();
    block_.emplace();
    token_ = token_of(block_->handle(), kListed);
  }
  void TearDown() override {
    block_.reset();
    VirtualMemoryTest::TearDown();
  }

  static aclError list_many(Version version, uint64_t token, std::vector<int32_t>& ids) {
    return version == Version::kV1
               ? aclrtMemSetPidToShareableHandle(token, ids.data(), ids.size())
               : aclrtMemSetPidToShareableHandleV2(&token, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT,
                                                   ids.data(), ids.size());
  }

  std::optional<Block> block_;
  uint64_t token_ = 0;
};

TEST_F(ShareWhitelist, SHARE_15_MissingArgumentsAreRefused) {
  const FiguresStay figures;
  Remote importer;
  int32_t id = importer.id();
  const auto type = ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemSetPidToShareableHandle(token_, nullptr, 1));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemSetPidToShareableHandle(token_, &id, 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtMemSetPidToShareableHandleV2(&token_, type, nullptr, 1));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemSetPidToShareableHandleV2(&token_, type, &id, 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemSetPidToShareableHandleV2(nullptr, type, &id, 1));
  EXPECT_EQ(importer.import(token_), ACL_ERROR_RT_NO_PERMISSION);
}

TEST_F(ShareWhitelist, SHARE_15_MissingArgumentsAreLookedForFirst) {
  int32_t id = own_id();
  const auto unknown_type = enum_value<aclrtMemSharedHandleType>(0);
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemSetPidToShareableHandle(1, nullptr, SIZE_MAX));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtMemSetPidToShareableHandleV2(&token_, unknown_type, nullptr, 1));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtMemSetPidToShareableHandleV2(&token_, unknown_type, &id, 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtMemSetPidToShareableHandleV2(nullptr, unknown_type, &id, 1));
}

TEST_F(ShareWhitelist, SHARE_16_UnknownShareTypesAreRefused) {
  Remote importer;
  int32_t id = importer.id();
  aclrtMemFabricHandle room{};  // whoever reads a larger handle must find it
  memcpy(&room, &token_, sizeof token_);
  for (const int64_t type : {0, 3, 4, 99, -1}) {
    SCOPED_TRACE(type);
    const FiguresStay figures;
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtMemSetPidToShareableHandleV2(
                     &room, enum_value<aclrtMemSharedHandleType>(type), &id, 1));
  }
  EXPECT_EQ(importer.import(token_), ACL_ERROR_RT_NO_PERMISSION);
}

TEST_F(ShareWhitelist, SHARE_17_TooManyIdsAreRefused) {
  Remote importer;
  std::vector<int32_t> ids(65536, importer.id());
  for (const Version version : kVersions) {
    SCOPED_TRACE(static_cast<int>(version));
    const CheckedCall call("aclrtMemSetPidToShareableHandle");
    EXPECT_EQ(call.returned(list_many(version, token_, ids)), ACL_ERROR_RT_PARAM_INVALID);
    // The number is an argument, the handle is state.
    EXPECT_EQ(list_many(version, token_ + 1, ids), ACL_ERROR_RT_PARAM_INVALID);
  }
  // Nobody reads so far.
  int32_t id = importer.id();
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemSetPidToShareableHandle(token_, &id, SIZE_MAX));
  EXPECT_EQ(importer.import(token_), ACL_ERROR_RT_NO_PERMISSION);
}

TEST_F(ShareWhitelist, SHARE_17_TheLargestNumberOfIdsIsTaken) {
  for (const Version version : kVersions) {
    SCOPED_TRACE(static_cast<int>(version));
    Remote importer;
    std::vector<int32_t> ids(65535, 0);
    ids.back() = importer.id();
    EXPECT_EQ(list_many(version, token_, ids), ACL_SUCCESS);
    EXPECT_EQ(importer.import(token_), ACL_SUCCESS);
  }
}

TEST_F(ShareWhitelist, SHARE_18_UnknownAndDestroyedHandlesAreRefused) {
  Block destroyed;
  const uint64_t destroyed_token = token_of(destroyed.handle(), kListed);
  list(destroyed_token, {own_id()});
  destroyed.free();
  for (const Version version : kVersions) {
    for (const uint64_t token :
         {uint64_t{0}, uint64_t{1}, UINT64_MAX, token_ ^ 1, token_ + 1, destroyed_token}) {
      SCOPED_TRACE(token);
      EXPECT_EQ(list_with(version, token, {own_id()}), ACL_ERROR_RT_INVALID_HANDLE);
    }
  }
}

TEST_F(ShareWhitelist, SHARE_18_FreedHandleThatIsStillMappedIsDestroyed) {
  MappedBlock scene;
  const uint64_t token = token_of(scene.block.handle(), kListed);
  scene.block.free();
  for (const Version version : kVersions) {
    EXPECT_EQ(list_with(version, token, {own_id()}), ACL_ERROR_RT_INVALID_HANDLE);
  }
}

// Before the question who may list, and before anyone has noticed the end: nothing else is asked of
// the server in between.
TEST_F(ShareWhitelist, SHARE_18_HandleOfAnEndedExporterIsDestroyed_C20) {
  for (const uint64_t rule : kAccessRules) {
    for (const Version version : kVersions) {
      SCOPED_TRACE(testing::Message() << "flags " << rule << ", V" << static_cast<int>(version));
      Remote exporter;
      const Offer offer = exporter.call(offer_block, kGranule, rule, uint8_t{7});
      std::vector<int32_t> ids = {own_id()};
      exporter.kill();
      EXPECT_EQ(list_many(version, offer.token, ids), ACL_ERROR_RT_INVALID_HANDLE);
    }
  }
}

TEST_F(ShareWhitelist, SHARE_18_HandleOfAnEndedExporterIsDestroyedThoughItsMemoryIsHeld_C20) {
  Remote exporter;
  Remote holder;
  const Offer offer = exporter.call(offer_block, kGranule, kListed, uint8_t{7});
  ASSERT_EQ(exporter.call(list_with, Version::kV1, offer.token, Ids{holder.id()}), ACL_SUCCESS);
  RemoteView held(holder, offer.token);
  exporter.kill();
  for (const Version version : kVersions) {
    SCOPED_TRACE(static_cast<int>(version));
    EXPECT_EQ(list_with(version, offer.token, {own_id()}), ACL_ERROR_RT_INVALID_HANDLE);
    EXPECT_EQ(holder.call(list_with, version, offer.token, Ids{holder.id()}),
              ACL_ERROR_RT_INVALID_HANDLE);
  }
  EXPECT_TRUE(held.shows(7));
}

TEST_F(ShareWhitelist, SHARE_19_OnlyTheExporterLists) {
  Remote intruder;
  Remote listed;
  list(token_, {listed.id()});
  const RemoteView held(listed, token_);
  for (const Version version : kVersions) {
    SCOPED_TRACE(static_cast<int>(version));
    const Ids wish = {intruder.id()};
    EXPECT_EQ(intruder.call(list_with, version, token_, wish), ACL_ERROR_RT_NO_PERMISSION);
    EXPECT_EQ(listed.call(list_with, version, token_, wish), ACL_ERROR_RT_NO_PERMISSION);
  }
  EXPECT_EQ(intruder.import(token_), ACL_ERROR_RT_NO_PERMISSION);
  list(token_, {intruder.id()});
  EXPECT_EQ(intruder.import(token_), ACL_SUCCESS);
}

TEST_F(ShareWhitelist, SHARE_20_WithoutWhitelistThereIsNothingToList) {
  const Block open_block;
  const uint64_t open_token = token_of(open_block.handle(), kEveryone);
  Remote importer;
  Remote unlisted;
  for (const Version version : kVersions) {
    EXPECT_EQ(list_with(version, open_token, {importer.id()}), ACL_ERROR_RT_NO_PERMISSION);
  }
  EXPECT_EQ(importer.import(open_token), ACL_SUCCESS);
  EXPECT_EQ(unlisted.import(open_token), ACL_SUCCESS);
}

TEST_F(ShareWhitelist, SHARE_21_CallsAccumulate) {
  Remote first;
  Remote second;
  Remote third;
  list(token_, {first.id()});
  EXPECT_EQ(second.import(token_), ACL_ERROR_RT_NO_PERMISSION);
  EXPECT_EQ(list_with(Version::kV2, token_, {second.id()}), ACL_SUCCESS);
  EXPECT_EQ(first.import(token_), ACL_SUCCESS);
  EXPECT_EQ(second.import(token_), ACL_SUCCESS);
  EXPECT_EQ(third.import(token_), ACL_ERROR_RT_NO_PERMISSION);
  list(token_, {first.id(), third.id(), first.id()});
  for (Remote* process : {&first, &second, &third}) {
    EXPECT_EQ(process->import(token_), ACL_SUCCESS);
  }
}

TEST_F(ShareWhitelist, SHARE_21_EveryBlockHasAListOfItsOwn) {
  const Block other_block;
  const uint64_t other_token = token_of(other_block.handle(), kListed);
  Remote importer;
  list(token_, {importer.id()});
  EXPECT_EQ(importer.import(other_token), ACL_ERROR_RT_NO_PERMISSION);
  EXPECT_EQ(importer.import(token_), ACL_SUCCESS);
}

TEST_F(ShareWhitelist, SHARE_22_ZeroesAreSkipped) {
  Remote importer;
  list(token_, {0, importer.id(), 0, 0});
  EXPECT_EQ(importer.import(token_), ACL_SUCCESS);
}

TEST_F(ShareWhitelist, SHARE_22_NothingButZeroesIsRefused) {
  Remote importer;
  for (const Version version : kVersions) {
    EXPECT_EQ(list_with(version, token_, {0}), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_EQ(list_with(version, token_, {0, 0, 0}), ACL_ERROR_RT_PARAM_INVALID);
  }
  EXPECT_EQ(importer.import(token_), ACL_ERROR_RT_NO_PERMISSION);
}

TEST_F(ShareWhitelist, SHARE_22_IdsOfNobodyAreAcceptedAndMatchNobody) {
  int32_t ended = 0;
  {
    Remote short_lived;
    ended = short_lived.id();
  }
  Remote importer;
  for (const Version version : kVersions) {
    EXPECT_EQ(list_with(version, token_, {ended, INT_MAX, INT_MIN, -1, -importer.id()}),
              ACL_SUCCESS);
  }
  EXPECT_EQ(importer.import(token_), ACL_ERROR_RT_NO_PERMISSION);
  list(token_, {INT_MAX, importer.id(), -1});
  EXPECT_EQ(importer.import(token_), ACL_SUCCESS);
}

TEST_F(ShareWhitelist, SHARE_23_EveryProcessThatExistsCanBeListedBeforeItsFirstCall) {
  Remote importer(kNoDevice);
  list(token_, {static_cast<int32_t>(importer.pid())});
  importer.call(bind, 0);
  EXPECT_EQ(importer.import(token_), ACL_SUCCESS);
}

}  // namespace
}  // namespace understudy_test::share
