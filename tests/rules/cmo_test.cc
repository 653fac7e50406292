// SPDX-License-Identifier: Apache-2.0
//
// Cache operations: their checks, their place in the stream, and that no byte changes.
// Covers: CMO-01, CMO-02, CMO-03, CMO-04, CMO-05, CMO-06, CMO-07, CMO-08, CMO-09, CMO-10, CMO-11,
// GEN-09.
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "rules/async_objects.h"

namespace understudy_test {
namespace {

constexpr aclrtCmoType kTypes[] = {ACL_RT_CMO_TYPE_PREFETCH, ACL_RT_CMO_TYPE_WRITEBACK,
                                   ACL_RT_CMO_TYPE_INVALID, ACL_RT_CMO_TYPE_FLUSH};
constexpr auto kPrefetch = ACL_RT_CMO_TYPE_PREFETCH;
constexpr size_t kBytes = 8 * kKiB;

size_t description_size() {
  size_t size = 0;
  EXPECT_SUCCESS(aclrtCmoGetDescSize(&size));
  return size;
}

// A block with known bytes.
class KnownBlock {
 public:
  KnownBlock() { copy_in(block_.data(), pattern(kBytes, 30)); }
  void* data() const { return block_.data(); }
  void* at(size_t offset) const { return block_.at(offset); }
  void expect_unchanged() const { EXPECT_TRUE(copy_out(data(), kBytes) == pattern(kBytes, 30)); }

 private:
  DeviceBlock block_{kBytes, ACL_MEM_MALLOC_HUGE_FIRST, kMallocAlign32};
};

using CacheOperation = HostMemoryTest;

TEST_F(CacheOperation, CMO_01_NullAndZeroAreRefusedFirst) {
  const KnownBlock block;
  const auto refuse = [&] {
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCmoAsync(nullptr, kBytes, kPrefetch, nullptr));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCmoAsync(block.data(), 0, kPrefetch, nullptr));
  };
  refuse();
  on_bare_thread(refuse);
  on_bare_thread([&] {
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL,
                 aclrtCmoAsync(block.data(), kBytes, kPrefetch, nullptr));
  });
  BadStreams().expect_refused("aclrtCmoAsync", [&](aclrtStream bad) {
    return aclrtCmoAsync(block.data(), kBytes, kPrefetch, bad);
  });
}

TEST_F(CacheOperation, CMO_02_UnknownTypesAreNotSupported) {
  const KnownBlock block;
  const TestStream stream;
  for (const int64_t type : {int64_t{4}, int64_t{5}, int64_t{99}, int64_t{INT32_MAX}}) {
    SCOPED_TRACE(type);
    EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                 aclrtCmoAsync(block.data(), kBytes, enum_value<aclrtCmoType>(type), stream.get()));
  }
  EXPECT_EQ(stream_status(stream.get()), ACL_STREAM_STATUS_COMPLETE);
}

TEST_F(CacheOperation, CMO_03_EveryTypeIsQueuedAndChangesNothing) {
  const KnownBlock block;
  const TestStream stream;
  for (const aclrtCmoType type : kTypes) {
    for (const aclrtStream used : {stream.get(), aclrtStream{nullptr}}) {
      {
        Gate gate(used);
        EXPECT_SUCCESS(
            while_held(gate, [&] { return aclrtCmoAsync(block.data(), kBytes, type, used); }));
        EXPECT_SUCCESS(aclrtCmoAsync(block.at(1), 3, type, used));
        EXPECT_EQ(stream_status(used), ACL_STREAM_STATUS_NOT_READY);
      }
      EXPECT_SUCCESS(finish(used));
    }
  }
  block.expect_unchanged();
}

// ---- Barriers ----

constexpr aclError kNoModel = ACL_ERROR_RT_FEATURE_NOT_SUPPORT;

aclrtBarrierTaskInfo barriers(size_t count) {
  aclrtBarrierTaskInfo info;
  memset(&info, 0, sizeof info);
  info.barrierNum = count;
  info.cmoInfo[0] = {ACL_RT_CMO_TYPE_INVALID, 1};
  return info;
}

TEST(CacheBarrier, CMO_04_CMO_05_CMO_06_ArgumentsAreCheckedThoughNoStreamHasAModel) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "200i"}, {"UNDERSTUDY_MEMORY", "4G"});
  const DeviceSession session;
  const KnownBlock block;
  const TestStream stream;
  const auto refuse = [&](aclError code, void* src, size_t size, int64_t type, uint32_t id) {
    EXPECT_FAILS(code, aclrtCmoAsyncWithBarrier(src, size, enum_value<aclrtCmoType>(type), id,
                                                stream.get()));
  };
  refuse(ACL_ERROR_INVALID_PARAM, nullptr, kBytes, 2, 1);
  refuse(ACL_ERROR_INVALID_PARAM, block.data(), 0, 2, 1);
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCmoWaitBarrier(nullptr, stream.get(), 0));

  refuse(ACL_ERROR_RT_PARAM_INVALID, block.data(), kBytes, 2, 0);
  for (const int64_t type : {0, 1, 3}) {
    refuse(ACL_ERROR_RT_PARAM_INVALID, block.data(), kBytes, type, 1);
    refuse(kNoModel, block.data(), kBytes, type, 0);
  }
  refuse(kNoModel, block.data(), kBytes, 2, 1);
  refuse(kNoModel, block.data(), kBytes, 2, UINT32_MAX);
  refuse(ACL_ERROR_RT_PARAM_INVALID, block.data(), kBytes + 1, 2, 1);  // CMO-11
  for (const size_t count : {size_t{0}, size_t{7}, SIZE_MAX}) {
    aclrtBarrierTaskInfo info = barriers(count);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtCmoWaitBarrier(&info, stream.get(), 0));
  }
  for (const size_t count : {size_t{1}, size_t{6}}) {
    aclrtBarrierTaskInfo info = barriers(count);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtCmoWaitBarrier(&info, stream.get(), 1));
    EXPECT_FAILS(kNoModel, aclrtCmoWaitBarrier(&info, stream.get(), 0));
    EXPECT_FAILS(kNoModel, aclrtCmoWaitBarrier(&info, nullptr, 0));
  }
  EXPECT_SUCCESS(finish(stream.get()));
  block.expect_unchanged();
}

// ---- Descriptions ----

TEST_F(CacheOperation, CMO_07_TheInnerLayerRefusesNullAndZero) {
  const KnownBlock block;
  constexpr aclError kInner = ACL_ERROR_RT_PARAM_INVALID;
  const TestStream stream;
  EXPECT_FAILS(kInner, aclrtCmoGetDescSize(nullptr));
  EXPECT_FAILS(kInner, aclrtCmoSetDesc(nullptr, block.data(), kBytes));
  EXPECT_FAILS(kInner, aclrtCmoSetDesc(block.data(), nullptr, kBytes));
  EXPECT_FAILS(kInner, aclrtCmoSetDesc(block.data(), block.at(1024), 0));
  EXPECT_FAILS(kInner, aclrtCmoAsyncWithDesc(nullptr, kPrefetch, stream.get(), nullptr));
  EXPECT_GT(description_size(), 0u);
  on_bare_thread([&] {
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtCmoSetDesc(block.data(), block.at(1024), 1024));
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL,
                 aclrtCmoAsyncWithDesc(block.data(), kPrefetch, nullptr, nullptr));
  });
  BadStreams().expect_refused("aclrtCmoAsyncWithDesc", [&](aclrtStream bad) {
    return aclrtCmoAsyncWithDesc(block.data(), kPrefetch, bad, nullptr);
  });
  block.expect_unchanged();
}

TEST_F(CacheOperation, CMO_08_TheDescriptionIsDeviceMemoryAndNothingIsReserved) {
  const KnownBlock block;
  const size_t size = description_size();
  const HostBlock locked(kPage);
  store(locked.data(), pattern(kPage, 31));
  std::vector<uint8_t> heap = pattern(kPage, 32);
  const DeviceBlock exact(size, ACL_MEM_MALLOC_HUGE_FIRST, kMallocAlign32);
  const TestStream stream;
  int reserved = 0;
  for (void* const wrong : {locked.data(), static_cast<void*>(heap.data()),
                            block.at(kBytes - size + 1), address(UINT64_MAX), address(8)}) {
    SCOPED_TRACE(wrong);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtCmoSetDesc(wrong, block.data(), kBytes));
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtCmoAsyncWithDesc(wrong, kPrefetch, stream.get(), nullptr));
  }
  EXPECT_TRUE(holds(locked.data(), pattern(kPage, 31)));
  EXPECT_TRUE(heap == pattern(kPage, 32));
  block.expect_unchanged();

  EXPECT_SUCCESS(aclrtCmoSetDesc(exact.data(), block.data(), kBytes));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtCmoAsyncWithDesc(exact.data(), kPrefetch, stream.get(), &reserved));
  EXPECT_SUCCESS(aclrtCmoAsyncWithDesc(exact.data(), kPrefetch, stream.get(), nullptr));
  EXPECT_SUCCESS(finish(stream.get()));
}

TEST_F(CacheOperation, CMO_09_DescribedOperationsChangeNothing) {
  const KnownBlock block;
  const DeviceBlock description(64);
  EXPECT_SUCCESS(aclrtCmoSetDesc(description.data(), block.data(), kBytes));
  const std::vector<uint8_t> written = copy_out(description.data(), description_size());
  const TestStream stream;
  for (const aclrtCmoType type : kTypes) {
    for (const aclrtStream used : {stream.get(), aclrtStream{nullptr}}) {
      {
        Gate gate(used);
        EXPECT_SUCCESS(while_held(
            gate, [&] { return aclrtCmoAsyncWithDesc(description.data(), type, used, nullptr); }));
      }
      EXPECT_SUCCESS(finish(used));
    }
  }
  block.expect_unchanged();
  EXPECT_TRUE(copy_out(description.data(), description_size()) == written);
}

TEST_F(CacheOperation, CMO_09_GEN_09_BytesThatDescribeNothingFailOnTheStream) {
  const KnownBlock block;
  const TestStream stream;
  EXPECT_SUCCESS(aclrtCmoAsyncWithDesc(block.data(), kPrefetch, stream.get(), nullptr));
  expect_task_failed(stream.get(), block.data());
  block.expect_unchanged();
}

TEST_F(CacheOperation, CMO_10_UnknownTypesAreNotSupportedWithDescriptionsEither) {
  const KnownBlock block;
  const DeviceBlock description(64);
  EXPECT_SUCCESS(aclrtCmoSetDesc(description.data(), block.data(), kBytes));
  const TestStream stream;
  for (const int64_t type : {int64_t{4}, int64_t{99}, int64_t{INT32_MAX}}) {
    EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                 aclrtCmoAsyncWithDesc(description.data(), enum_value<aclrtCmoType>(type),
                                       stream.get(), nullptr));
  }
  EXPECT_EQ(stream_status(stream.get()), ACL_STREAM_STATUS_COMPLETE);
}

TEST_F(CacheOperation, CMO_11_OnlyMemoryOfTheStreamsDeviceIsMeant) {
  const KnownBlock block;
  const DeviceBlock description(64);
  const LiveMapping mapping(2 * kGranule);
  const LiveMapping on_host(kGranule, host_property());
  const HostBlock locked(kPage);
  std::vector<uint8_t> heap(kPage);
  DeviceBlock gone(kPage);
  void* const freed = gone.data();
  gone.free();
  const DeviceSession other(1);
  void* elsewhere = nullptr;
  EXPECT_SUCCESS(aclrtMalloc(&elsewhere, kBytes, ACL_MEM_MALLOC_HUGE_FIRST));
  EXPECT_SUCCESS(aclrtSetDevice(0));
  const TestStream stream;
  const struct {
    const char* name;
    void* start;
    size_t size;
  } cases[] = {
      {"another device", elsewhere, 64},
      {"page-locked", locked.data(), kPage},
      {"heap", heap.data(), kPage},
      {"mapped host block", on_host.data(), kPage},
      {"freed", freed, 64},
      {"past the allocation", block.data(), kBytes + 1},
      {"past the mapping", mapping.data(), 2 * kGranule + 1},
      {"past all addresses", block.data(), SIZE_MAX},
      {"no memory at all", address(8), 8},
  };
  for (const auto& bad : cases) {
    SCOPED_TRACE(bad.name);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtCmoAsync(bad.start, bad.size, kPrefetch, stream.get()));
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtCmoSetDesc(description.data(), bad.start, bad.size));
  }
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtCmoSetDesc(elsewhere, block.data(), kBytes));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtCmoAsyncWithDesc(elsewhere, kPrefetch, stream.get(), nullptr));
  EXPECT_EQ(stream_status(stream.get()), ACL_STREAM_STATUS_COMPLETE);
  EXPECT_SUCCESS(aclrtCmoAsync(mapping.data(), 2 * kGranule, kPrefetch, stream.get()));
  EXPECT_SUCCESS(finish(stream.get()));
}

// ---- Products ----

class CacheOperationOnProduct : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, CacheOperationOnProduct,
                         testing::Values("a2", "a3", "inf", "trn", "200i", "200i-rc", "950",
                                         "ipv350"),
                         host_product_name);

TEST_P(CacheOperationOnProduct, CMO_01_CMO_04_CMO_07_NotEveryProductHasThem) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()}, {"UNDERSTUDY_MEMORY", "4G"});
  const std::string product = GetParam();
  const bool has_operations = product == "a2" || product == "a3" || product == "950";
  const ContextSession session;
  const DeviceBlock block(kBytes);
  aclrtStream stream = nullptr;
  EXPECT_SUCCESS(aclrtCreateStream(&stream));
  const aclError code = has_operations ? ACL_SUCCESS : ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
  size_t size = 0;
  EXPECT_EQ(aclrtCmoAsync(block.data(), 64, kPrefetch, stream), code);
  EXPECT_EQ(aclrtCmoGetDescSize(&size), code);
  EXPECT_EQ(aclrtCmoSetDesc(block.data(), block.at(1024), 64), code);
  EXPECT_EQ(aclrtCmoAsyncWithDesc(block.data(), kPrefetch, stream, nullptr), code);
  // Without a model on any product; but arguments are checked only where they exist.
  aclrtBarrierTaskInfo none = barriers(0);
  const bool has_barriers = product == "200i" || product == "200i-rc";
  EXPECT_FAILS(has_barriers ? ACL_ERROR_RT_PARAM_INVALID : ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtCmoWaitBarrier(&none, stream, 0));
  EXPECT_FAILS(has_barriers ? ACL_ERROR_RT_PARAM_INVALID : ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtCmoAsyncWithBarrier(block.data(), 64, ACL_RT_CMO_TYPE_INVALID, 0, stream));
  EXPECT_SUCCESS(finish(stream));
  EXPECT_SUCCESS(aclrtDestroyStream(stream));
}

}  // namespace
}  // namespace understudy_test
