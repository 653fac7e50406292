// SPDX-License-Identifier: Apache-2.0
//
// Memory keys on each product: which of them share memory, and the two functions of A3.
// Covers: IPC-01, IPC-07, IPC-08, IPC-11, IPC-14, IPC-18, IPC-24, IPC-25, IPC-26.
#include <cstdint>
#include <string>
#include <vector>

#include "rules/ipc_objects.h"

namespace understudy_test::ipc {
namespace {

US_PEER(IpcProductsOther) { serve_ipc(channel); }

class IpcOnProductWithIt : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, IpcOnProductWithIt, testing::Values("a2", "a3", "inf", "trn", "950"),
                         host_product_name);

TEST_P(IpcOnProductWithIt, IPC_07_IPC_14_TwoProcessesShareMemory) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()});
  const DeviceSession session;
  Other other(IpcProductsOther);
  for (const size_t size : {size_t{512}, 4 * kMiB}) {
    SCOPED_TRACE(size);
    const ExportedBlock block(size, kForListed);
    block.fill(1);
    EXPECT_EQ(other.import(block.key()).code, ACL_ERROR_RT_NO_PERMISSION);
    EXPECT_EQ(allow(block.key(), {other.id()}), ACL_SUCCESS);
    void* const there = other.attach(block.key());
    EXPECT_TRUE(other.has(there, size, 1));
    other.fill(there, size, 2);
    EXPECT_TRUE(block.has(2));
    EXPECT_EQ(other.close(block.key()), ACL_SUCCESS);
  }
}

class IpcOnProductWithoutIt : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, IpcOnProductWithoutIt, testing::Values("200i", "200i-rc", "ipv350"),
                         host_product_name);

TEST_P(IpcOnProductWithoutIt, IPC_01_IPC_08_IPC_11_IPC_18_ProductIsAskedAfterTheOuterCheck) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()}, {"UNDERSTUDY_MEMORY", "8G"});
  const ContextSession session;
  const DeviceBlock block(2 * kMiB);
  copy_in(block.data(), pattern(kKiB, 1));
  const MemoryFigures before = memory_figures();
  Key key;
  int32_t id = 1;
  void* data = untouched_address();
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtIpcMemGetExportKey(nullptr, kMiB, key.text.data(), kKeySize, 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtIpcMemGetExportKey(block.data(), kMiB, nullptr, kKeySize, 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtIpcMemSetImportPid(nullptr, &id, 1));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtIpcMemSetImportPid("key", nullptr, 1));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtIpcMemImportByKey(nullptr, "key", 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtIpcMemImportByKey(&data, nullptr, 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtIpcMemClose(nullptr));

  for (const uint64_t flags : {kForListed, kForAll, uint64_t{99}}) {
    EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                 aclrtIpcMemGetExportKey(block.data(), kMiB, key.text.data(), kKeySize, flags));
    EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtIpcMemImportByKey(&data, "key", flags));
  }
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtIpcMemGetExportKey(block.data(), 0, key.text.data(), 0, 0));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtIpcMemSetImportPid("key", &id, 1));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtIpcMemClose("key"));
  EXPECT_TRUE(key == Key{});
  EXPECT_EQ(data, untouched_address());
  EXPECT_EQ(memory_figures(), before);
  EXPECT_TRUE(copy_out(block.data(), kKiB) == pattern(kKiB, 1));
}

// ---- aclrtIpcMemSetAttr ----

constexpr aclrtIpcMemAttrType kLink = ACL_RT_IPC_MEM_ATTR_ACCESS_LINK;

TEST(IpcAttribute, IPC_24_BadArgumentsAreRefused) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"});
  const DeviceSession session;
  const ExportedBlock block(kMiB);
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtIpcMemSetAttr(nullptr, kLink, 0));
  for (const int64_t type : {1, 2, 99, INT32_MAX, -1}) {
    SCOPED_TRACE(type);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtIpcMemSetAttr(block.key().get(), enum_value<aclrtIpcMemAttrType>(type), 0));
  }
  for (const uint64_t value : {uint64_t{4}, uint64_t{5}, uint64_t{1} << 32, UINT64_MAX}) {
    SCOPED_TRACE(value);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtIpcMemSetAttr(block.key().get(), kLink, value));
  }
}

TEST(IpcAttribute, IPC_24_LinksTheMachineLacksAreRefused) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"});
  const DeviceSession session;
  const ExportedBlock block(kMiB);
  for (const uint64_t link : {ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_UB_ONE_PORT_PATH,
                              ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_UB_MULTI_PORT_PATH}) {
    SCOPED_TRACE(link);
    (void)recent_error();
    const aclError code =
        noted("aclrtIpcMemSetAttr", aclrtIpcMemSetAttr(block.key().get(), kLink, link));
    EXPECT_TRUE(code == ACL_ERROR_RT_FEATURE_NOT_SUPPORT ||
                code == ACL_ERROR_RT_LINK_TYPE_NOT_SUPPORTED)
        << code;
  }
}

TEST(IpcAttribute, IPC_25_KnownLinksChangeNothing) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"});
  const DeviceSession session;
  Other other(IpcProductsOther);
  const ExportedBlock block(kMiB, kForListed);
  block.fill(3);
  const MemoryFigures before = memory_figures();
  for (const uint64_t link :
       {ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_SIO, ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_HCCS}) {
    SCOPED_TRACE(link);
    EXPECT_SUCCESS(aclrtIpcMemSetAttr(block.key().get(), kLink, link));
    EXPECT_EQ(memory_figures(), before);
    EXPECT_EQ(other.import(block.key()).code, ACL_ERROR_RT_NO_PERMISSION);
  }
  EXPECT_EQ(allow(block.key(), {other.id()}), ACL_SUCCESS);
  void* const there = other.attach(block.key());
  EXPECT_TRUE(other.has(there, kMiB, 3));
  EXPECT_SUCCESS(aclrtIpcMemSetAttr(block.key().get(), kLink, ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_SIO));
  other.fill(there, kMiB, 4);
  EXPECT_TRUE(block.has(4));
  EXPECT_EQ(other.close(block.key()), ACL_SUCCESS);
}

class IpcAttributeElsewhere : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, IpcAttributeElsewhere, testing::Values("a2", "inf", "trn", "950"),
                         host_product_name);

TEST_P(IpcAttributeElsewhere, IPC_24_IPC_25_OnlyA3HasAttributes) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()});
  const DeviceSession session;
  const ExportedBlock block(kMiB);
  for (const uint64_t link : {uint64_t{0}, uint64_t{1}, uint64_t{2}, uint64_t{3}}) {
    EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                 aclrtIpcMemSetAttr(block.key().get(), kLink, link));
  }
}

// ---- aclrtIpcMemImportPidInterServer ----

class IpcBetweenServers : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, IpcBetweenServers, testing::Values("a2", "a3", "inf", "trn", "950"),
                         host_product_name);

TEST_P(IpcBetweenServers, IPC_26_NullIsRefusedAndTheRestNotSupported) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()});
  const DeviceSession session;
  Other other(IpcProductsOther);
  const ExportedBlock block(kMiB, kForListed);
  int32_t id = other.id();
  aclrtServerPid server{};
  server.pid = &id;
  server.num = 1;
  const char* const key = block.key().get();
  for (const size_t count : {0u, 1u}) {
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtIpcMemImportPidInterServer(nullptr, &server, count));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtIpcMemImportPidInterServer(key, nullptr, count));
    EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                 aclrtIpcMemImportPidInterServer(key, &server, count));
    EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                 aclrtIpcMemImportPidInterServer("nobody", &server, count));
  }
  EXPECT_EQ(other.import(block.key()).code, ACL_ERROR_RT_NO_PERMISSION) << "it listed nobody";
}

}  // namespace
}  // namespace understudy_test::ipc
