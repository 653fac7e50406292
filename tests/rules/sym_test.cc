// SPDX-License-Identifier: Apache-2.0
//
// Variables of kernels. No kernel is loaded, so that every symbol is unknown; what is wrong with
// the other arguments is said first.
// Covers: SYM-01, SYM-02, SYM-03, SYM-04, SYM-05, SYM-06.
#include <cstdint>
#include <string>
#include <vector>

#include "rules/async_objects.h"

namespace understudy_test {
namespace {

constexpr auto kOut = ACL_MEMCPY_DEVICE_TO_HOST;
constexpr auto kIn = ACL_MEMCPY_HOST_TO_DEVICE;
constexpr auto kDefault = ACL_MEMCPY_DEFAULT;
constexpr aclError kOuter = ACL_ERROR_INVALID_PARAM;
constexpr aclError kUnknown = ACL_ERROR_RT_INVALID_SYMBOL;

int variable = 7;

// Each expects the code of both forms.
void expect_from(aclError code, void* to, size_t room, const void* symbol, size_t count,
                 size_t offset, aclrtMemcpyKind kind) {
  EXPECT_EQ(aclrtMemcpyFromSymbol(to, room, symbol, count, offset, kind), code);
  EXPECT_EQ(aclrtMemcpyFromSymbolAsync(to, room, symbol, count, offset, kind, nullptr), code);
  (void)recent_error();
}
void expect_to(aclError code, const void* symbol, const void* from, size_t count, size_t offset,
               aclrtMemcpyKind kind) {
  EXPECT_EQ(aclrtMemcpyToSymbol(symbol, from, count, offset, kind), code);
  EXPECT_EQ(aclrtMemcpyToSymbolAsync(symbol, from, count, offset, kind, nullptr), code);
  (void)recent_error();
}

class Symbols : public HostMemoryTest {
 protected:
  void TearDown() override {
    EXPECT_EQ(variable, 7);
    EXPECT_TRUE(bytes_ == pattern(64, 9));
    HostMemoryTest::TearDown();
  }
  std::vector<uint8_t> bytes_ = pattern(64, 9);
};

TEST_F(Symbols, SYM_01_NothingToCopyIsASuccess) {
  const auto copy_nothing = [] {
    expect_from(ACL_SUCCESS, nullptr, 0, nullptr, 0, SIZE_MAX, kIn);
    expect_to(ACL_SUCCESS, nullptr, nullptr, 0, SIZE_MAX, kOut);
  };
  copy_nothing();
  on_bare_thread(copy_nothing);
}

TEST_F(Symbols, SYM_01_NullIsRefusedFirst) {
  const auto refuse = [&] {
    expect_from(kOuter, nullptr, 64, &variable, 4, 0, kOut);
    expect_from(kOuter, bytes_.data(), 64, nullptr, 4, 0, kOut);
    expect_to(kOuter, nullptr, bytes_.data(), 4, 0, kIn);
    expect_to(kOuter, &variable, nullptr, 4, 0, kIn);
    void* start = nullptr;
    size_t size = 0;
    EXPECT_FAILS(kOuter, aclrtGetSymbolAddress(nullptr, &start));
    EXPECT_FAILS(kOuter, aclrtGetSymbolAddress(&variable, nullptr));
    EXPECT_FAILS(kOuter, aclrtGetSymbolSize(nullptr, &size));
    EXPECT_FAILS(kOuter, aclrtGetSymbolSize(&variable, nullptr));
  };
  refuse();
  on_bare_thread(refuse);
}

TEST_F(Symbols, SYM_02_NoSymbolIsKnown) {
  const DeviceBlock block(64);
  void* start = untouched_address();
  size_t size = 77;
  for (const void* const symbol :
       {static_cast<const void*>(&variable), static_cast<const void*>(block.data()),
        static_cast<const void*>(address(8))}) {
    EXPECT_FAILS(kUnknown, aclrtGetSymbolAddress(symbol, &start));
    EXPECT_FAILS(kUnknown, aclrtGetSymbolSize(symbol, &size));
    for (const aclrtMemcpyKind kind : {kOut, kDefault}) {
      expect_from(kUnknown, bytes_.data(), 64, symbol, 4, 0, kind);
    }
    for (const aclrtMemcpyKind kind : {kIn, kDefault}) {
      expect_to(kUnknown, symbol, bytes_.data(), 4, 0, kind);
    }
  }
  EXPECT_EQ(start, untouched_address());
  EXPECT_EQ(size, 77u);
}

TEST_F(Symbols, SYM_03_FromCopiesHaveRoomAndADirection) {
  expect_from(kOuter, bytes_.data(), 3, &variable, 4, 0, kOut);
  expect_from(kOuter, bytes_.data(), 0, &variable, 4, 0, kOut);
  for (const int64_t kind : {0, 1, 3, 5, 6, 7, 8, 99}) {
    SCOPED_TRACE(kind);
    expect_from(kOuter, bytes_.data(), 64, &variable, 4, 0, enum_value<aclrtMemcpyKind>(kind));
  }
}

TEST_F(Symbols, SYM_04_ToCopiesHaveADirection) {
  for (const int64_t kind : {0, 2, 3, 5, 6, 7, 8, 99}) {
    SCOPED_TRACE(kind);
    expect_to(kOuter, &variable, bytes_.data(), 4, 0, enum_value<aclrtMemcpyKind>(kind));
  }
}

TEST_F(Symbols, SYM_05_BeyondTheEndOfEverySymbol) {
  expect_from(kOuter, bytes_.data(), 64, &variable, 4, SIZE_MAX, kOut);
  expect_from(kOuter, bytes_.data(), 64, &variable, 4, SIZE_MAX - 3, kOut);
  expect_to(kOuter, &variable, bytes_.data(), 4, SIZE_MAX, kIn);
}

TEST_F(Symbols, SYM_05_SYM_06_AContextIsNeeded) {
  const TestStream stream;
  on_bare_thread([&] {
    constexpr aclError kNone = ACL_ERROR_RT_CONTEXT_NULL;
    expect_from(kNone, bytes_.data(), 64, &variable, 4, 0, kOut);
    expect_to(kNone, &variable, bytes_.data(), 4, 0, kIn);
    void* start = nullptr;
    size_t size = 0;
    EXPECT_FAILS(kNone, aclrtGetSymbolAddress(&variable, &start));
    EXPECT_FAILS(kNone, aclrtGetSymbolSize(&variable, &size));
  });
  BadStreams bad;
  bad.expect_refused("aclrtMemcpyFromSymbolAsync", [&](aclrtStream wrong) {
    return aclrtMemcpyFromSymbolAsync(bytes_.data(), 64, &variable, 4, 0, kOut, wrong);
  });
  bad.expect_refused("aclrtMemcpyToSymbolAsync", [&](aclrtStream wrong) {
    return aclrtMemcpyToSymbolAsync(&variable, bytes_.data(), 4, 0, kIn, wrong);
  });
  EXPECT_FAILS(kUnknown,
               aclrtMemcpyFromSymbolAsync(bytes_.data(), 64, &variable, 4, 0, kOut, stream.get()));
  EXPECT_EQ(stream_status(stream.get()), ACL_STREAM_STATUS_COMPLETE);
}

class SymbolsOnProduct : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, SymbolsOnProduct,
                         testing::Values("a2", "a3", "inf", "trn", "200i", "200i-rc", "950",
                                         "ipv350"),
                         host_product_name);

TEST_P(SymbolsOnProduct, SYM_02_NotEveryProductHasThem) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()}, {"UNDERSTUDY_MEMORY", "4G"});
  const std::string product = GetParam();
  const bool has_them = product == "a2" || product == "a3" || product == "950" || product == "inf";
  const ContextSession session;
  aclrtStream stream = nullptr;
  EXPECT_SUCCESS(aclrtCreateStream(&stream));
  const aclError code = has_them ? kUnknown : ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
  std::vector<uint8_t> bytes(64);
  void* start = nullptr;
  size_t size = 0;
  EXPECT_FAILS(code, aclrtGetSymbolAddress(&variable, &start));
  EXPECT_FAILS(code, aclrtGetSymbolSize(&variable, &size));
  EXPECT_FAILS(code, aclrtMemcpyFromSymbol(bytes.data(), 64, &variable, 4, 0, kOut));
  EXPECT_FAILS(code, aclrtMemcpyToSymbol(&variable, bytes.data(), 4, 0, kIn));
  EXPECT_FAILS(code, aclrtMemcpyFromSymbolAsync(bytes.data(), 64, &variable, 4, 0, kOut, stream));
  EXPECT_FAILS(code, aclrtMemcpyToSymbolAsync(&variable, bytes.data(), 4, 0, kIn, stream));
  EXPECT_SUCCESS(aclrtDestroyStream(stream));
}

}  // namespace
}  // namespace understudy_test
