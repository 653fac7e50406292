// SPDX-License-Identifier: Apache-2.0
#include "sharing/share_names.h"

#include <gtest/gtest.h>

#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "unit/expect_result.h"

namespace understudy {
namespace {

constexpr ServerId kServer{0x0123456789abcdef, 0xfedcba9876543210};
constexpr ServerId kOtherServer{0x0123456789abcdef, 0xfedcba9876543211};
constexpr ShareToken kToken(77, 0xabcdef012);

TEST(ShareKey, NamesItsTokenAndItsServer) {
  const std::string key = key_of(KeyKind::kMemory, kToken, kServer);
  EXPECT_EQ(key.size(), kKeyLength);
  EXPECT_EQ(value_of(token_of_key(KeyKind::kMemory, key, kServer)).word(), kToken.word());
  for (const uint64_t word : {uint64_t{0}, uint64_t{1}, UINT64_MAX}) {
    const std::string other = key_of(KeyKind::kMemory, ShareToken(word), {0, UINT64_MAX});
    EXPECT_EQ(other.size(), kKeyLength);
    EXPECT_EQ(value_of(token_of_key(KeyKind::kMemory, other, {0, UINT64_MAX})).word(), word);
  }
}

TEST(ShareKey, OfAnotherServerIsToldApartFromOneThatWasMadeUp) {
  const auto other =
      token_of_key(KeyKind::kMemory, key_of(KeyKind::kMemory, kToken, kOtherServer), kServer);
  ASSERT_TRUE(fails_with(other, ErrorCode::kInvalidHandle));
  EXPECT_NE(std::string(other.error().text()).find("another server"), std::string::npos);
  const auto made_up = token_of_key(KeyKind::kMemory, "made up", kServer);
  ASSERT_TRUE(fails_with(made_up, ErrorCode::kInvalidHandle));
  EXPECT_NE(std::string(made_up.error().text()).find("never issued"), std::string::npos);
}

TEST(ShareKey, AnythingElseIsNone) {
  const std::string key = key_of(KeyKind::kMemory, kToken, kServer);
  std::vector<std::string> wrong{"",
                                 "us-",
                                 key.substr(1),
                                 key.substr(0, kKeyLength - 1),
                                 key + "0",
                                 key + std::string(1, '\0'),
                                 " " + key.substr(0, kKeyLength - 1),
                                 std::string(kKeyLength, '\0'),
                                 std::string(kKeyLength, '%'),
                                 std::string(100'000, 'f')};
  for (size_t at = 0; at < key.size(); ++at) {
    for (const char letter : {'\0', ' ', '-', '+', 'x', 'g', '/'}) {
      if (key[at] == letter) continue;
      wrong.push_back(key);
      wrong.back()[at] = letter;
    }
    // Digits have one spelling.
    if (std::islower(key[at]) != 0) {
      wrong.push_back(key);
      wrong.back()[at] = static_cast<char>(std::toupper(key[at]));
    }
  }
  for (const std::string& each : wrong) {
    EXPECT_TRUE(
        fails_with(token_of_key(KeyKind::kMemory, each, kServer), ErrorCode::kInvalidHandle))
        << each;
  }
}

class ShareBlob : public testing::Test {
 protected:
  ShareBlob() { write_blob(blob_, BlobKind::kFabric, kToken, kServer); }

  std::array<std::byte, 64> blob_;
};

TEST_F(ShareBlob, NamesItsToken) {
  const BlobToken read = value_of(read_blob(blob_, BlobKind::kFabric, kServer));
  EXPECT_TRUE(read.is_whole);
  EXPECT_EQ(read.token.word(), kToken.word());
  uint64_t first = 0;
  memcpy(&first, blob_.data(), sizeof first);
  EXPECT_EQ(first, kToken.word());
}

TEST_F(ShareBlob, OfAnotherServerIsRefused) {
  EXPECT_TRUE(
      fails_with(read_blob(blob_, BlobKind::kFabric, kOtherServer), ErrorCode::kNotSupported));
}

TEST_F(ShareBlob, OfAnotherKindIsNotWhole) {
  EXPECT_FALSE(value_of(read_blob(blob_, BlobKind::kEvent, kServer)).is_whole);
  write_blob(blob_, BlobKind::kEvent, kToken, kServer);
  EXPECT_TRUE(value_of(read_blob(blob_, BlobKind::kEvent, kServer)).is_whole);
  EXPECT_FALSE(value_of(read_blob(blob_, BlobKind::kFabric, kServer)).is_whole);
}

TEST_F(ShareBlob, DamageAnywhereIsNoticed) {
  for (size_t at = 0; at < blob_.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      blob_[at] ^= std::byte{1} << bit;
      const Result<BlobToken> read = read_blob(blob_, BlobKind::kFabric, kServer);
      EXPECT_TRUE(is_ok(read)) << at;
      EXPECT_FALSE(read.ok() && read.value().is_whole) << at << " bit " << bit;
      blob_[at] ^= std::byte{1} << bit;
    }
  }
}

TEST_F(ShareBlob, BytesThatWereNeverWrittenAreNotWhole) {
  for (const int fill : {0, 0xff, 0x78}) {
    blob_.fill(static_cast<std::byte>(fill));
    EXPECT_FALSE(value_of(read_blob(blob_, BlobKind::kFabric, kServer)).is_whole);
  }
}

TEST(ShareBlobSize, LeastIsEnough) {
  std::array<std::byte, 48> blob;
  write_blob(blob, BlobKind::kEvent, kToken, kServer);
  EXPECT_TRUE(value_of(read_blob(blob, BlobKind::kEvent, kServer)).is_whole);
}

}  // namespace
}  // namespace understudy
