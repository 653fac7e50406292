// SPDX-License-Identifier: Apache-2.0
//
// aclrtMemManagedPrefetchAsync and aclrtMemManagedPrefetchBatchAsync: what is refused, the place in
// the stream, and what is remembered.
// Covers: MANAGED-14, MANAGED-15, MANAGED-16, MANAGED-17, MANAGED-18, MANAGED-19.
#include <cstdint>
#include <vector>

#include "rules/managed_objects.h"

namespace understudy_test {
namespace {

constexpr aclError kOuter = ACL_ERROR_INVALID_PARAM;
constexpr aclError kInner = ACL_ERROR_RT_PARAM_INVALID;
constexpr size_t kSize = 4 * kGranule;

// The arguments of a batch, to be spoiled one by one.
struct Batch {
  std::vector<const void*> starts;
  std::vector<size_t> sizes;
  std::vector<aclrtMemManagedLocation> locations;
  std::vector<size_t> indexes;
  uint64_t flags = 0;

  aclError queue(aclrtStream stream) {
    return aclrtMemManagedPrefetchBatchAsync(starts.data(), sizes.data(), starts.size(),
                                             locations.data(), indexes.data(), locations.size(),
                                             flags, stream);
  }
  void expect_refused(aclError code, aclrtStream stream) {
    (void)recent_error();
    EXPECT_TRUE(fails_with(code, queue(stream), "aclrtMemManagedPrefetchBatchAsync"));
  }
};

class ManagedPrefetch : public HostMemoryTest {
 protected:
  void SetUp() override {
    HostMemoryTest::SetUp();
    block_.emplace(kSize);
    stream_.emplace();
    store(data(), pattern(kSize, 22));
  }
  void TearDown() override {
    EXPECT_TRUE(holds(data(), pattern(kSize, 22)));
    stream_.reset();
    block_.reset();
    HostMemoryTest::TearDown();
  }

  void* data() const { return block_->data(); }
  void* at(size_t offset) const { return block_->at(offset); }
  aclrtStream stream() const { return stream_->get(); }
  Batch three() const {
    return {{data(), at(kGranule), at(2 * kGranule)},
            {kGranule, kGranule, 2 * kGranule},
            {on_device(1), on_host()},
            {0, 2},
            0};
  }
  void expect_nothing_happened() const {
    EXPECT_EQ(stream_status(stream()), ACL_STREAM_STATUS_COMPLETE);
    EXPECT_EQ(last_prefetch(data(), kSize), kNoId);
    EXPECT_EQ(last_prefetch_type(data(), kSize), ACL_MEM_LOCATIONTYPE_INVALID);
  }

 private:
  std::optional<ManagedBlock> block_;
  std::optional<TestStream> stream_;
};

TEST_F(ManagedPrefetch, MANAGED_14_NullZeroAndFlagsAreRefusedFirst) {
  const auto refuse = [&] {
    EXPECT_FAILS(kOuter, aclrtMemManagedPrefetchAsync(nullptr, kSize, on_host(), 0, stream()));
    EXPECT_FAILS(kOuter, aclrtMemManagedPrefetchAsync(data(), 0, on_host(), 0, stream()));
    EXPECT_FAILS(kOuter, aclrtMemManagedPrefetchAsync(data(), kSize, on_host(), 1, stream()));
  };
  refuse();
  on_bare_thread(refuse);
  on_bare_thread([&] {
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL,
                 aclrtMemManagedPrefetchAsync(data(), kSize, on_host(), 0, stream()));
  });
  BadStreams().expect_refused("aclrtMemManagedPrefetchAsync", [&](aclrtStream bad) {
    return aclrtMemManagedPrefetchAsync(data(), kSize, on_host(), 0, bad);
  });
  expect_nothing_happened();
}

TEST_F(ManagedPrefetch, MANAGED_14_TheSameForBatches) {
  Batch good = three();
  const auto refuse = [&](const void** starts, size_t* sizes, size_t count,
                          aclrtMemManagedLocation* locations, size_t* indexes, size_t places,
                          uint64_t flags) {
    EXPECT_FAILS(kOuter, aclrtMemManagedPrefetchBatchAsync(starts, sizes, count, locations, indexes,
                                                           places, flags, stream()));
  };
  const auto** const starts = good.starts.data();
  size_t* const sizes = good.sizes.data();
  aclrtMemManagedLocation* const locations = good.locations.data();
  size_t* const indexes = good.indexes.data();
  refuse(nullptr, sizes, 3, locations, indexes, 2, 0);
  refuse(starts, nullptr, 3, locations, indexes, 2, 0);
  refuse(starts, sizes, 0, locations, indexes, 0, 0);
  refuse(starts, sizes, 3, nullptr, indexes, 2, 0);
  refuse(starts, sizes, 3, locations, nullptr, 2, 0);
  refuse(starts, sizes, 3, locations, indexes, 2, 1);
  refuse(starts, sizes, 1, locations, indexes, 2, 0);
  refuse(starts, sizes, 1, locations, indexes, SIZE_MAX, 0);
  Batch hole = three();
  hole.starts[1] = nullptr;
  hole.expect_refused(kOuter, stream());
  Batch empty = three();
  empty.sizes[2] = 0;
  empty.expect_refused(kOuter, stream());
  BadStreams().expect_refused("aclrtMemManagedPrefetchBatchAsync",
                              [&](aclrtStream bad) { return three().queue(bad); });
  expect_nothing_happened();
}

TEST_F(ManagedPrefetch, MANAGED_15_IndexesStartAtZeroRiseAndStayBelowTheCount) {
  for (const std::vector<size_t>& wrong :
       {std::vector<size_t>{1, 2}, {0, 0}, {2, 1}, {0, 3}, {0, SIZE_MAX}}) {
    Batch batch = three();
    batch.indexes = wrong;
    batch.expect_refused(kInner, stream());
  }
  Batch no_location = three();
  EXPECT_FAILS(
      kInner, aclrtMemManagedPrefetchBatchAsync(no_location.starts.data(), no_location.sizes.data(),
                                                3, no_location.locations.data(),
                                                no_location.indexes.data(), 0, 0, stream()));
  expect_nothing_happened();
}

TEST_F(ManagedPrefetch, MANAGED_16_MANAGED_18_TheRequestIsNamedBeforeTheTaskHasRun_C7) {
  {
    Gate gate(stream());
    EXPECT_SUCCESS(while_held(gate, [&] {
      return aclrtMemManagedPrefetchAsync(data(), kSize, on_device(2), 0, stream());
    }));
    EXPECT_EQ(last_prefetch(data(), kSize), 2);
    EXPECT_EQ(last_prefetch_type(data(), kSize), ACL_MEM_LOCATIONTYPE_DEVICE);
    EXPECT_EQ(last_prefetch_id(data(), kSize), 2);
    EXPECT_EQ(stream_status(stream()), ACL_STREAM_STATUS_NOT_READY);
    // The last request counts, whatever has run.
    EXPECT_SUCCESS(while_held(gate, [&] {
      return aclrtMemManagedPrefetchAsync(at(kGranule), kGranule, on_host(), 0, stream());
    }));
    EXPECT_EQ(last_prefetch(at(kGranule), kGranule), kHostId);
    EXPECT_EQ(last_prefetch(data(), kGranule), 2);
    EXPECT_EQ(last_prefetch(data(), kSize), kNoId);
  }
  EXPECT_SUCCESS(finish(stream()));
  EXPECT_EQ(last_prefetch(at(kGranule), kGranule), kHostId);
  EXPECT_SUCCESS(aclrtMemManagedPrefetchAsync(data(), kSize, on_node(0), 0, nullptr));
  EXPECT_SUCCESS(finish(nullptr));
  EXPECT_EQ(last_prefetch(data(), kSize), 0);
  EXPECT_EQ(last_prefetch_type(data(), kSize), ACL_MEM_LOCATIONTYPE_HOST_NUMA);
}

TEST_F(ManagedPrefetch, MANAGED_16_ItKeepsItsPlaceAmongOtherTasks) {
  const ManagedBlock other;
  const TestEvent event;
  {
    Gate gate(stream());
    EXPECT_SUCCESS(aclrtMemsetAsync(other.data(), 4, 1, 4, stream()));
    EXPECT_SUCCESS(aclrtMemManagedPrefetchAsync(other.data(), kGranule, on_device(0), 0, stream()));
    EXPECT_SUCCESS(aclrtRecordEvent(event.get(), stream()));
    EXPECT_SUCCESS(aclrtMemsetAsync(other.at(1), 1, 2, 1, stream()));
    EXPECT_EQ(other.bytes()[0], 0);
    EXPECT_EQ(event_status(event.get()), ACL_EVENT_RECORDED_STATUS_NOT_READY);
  }
  EXPECT_SUCCESS(finish(stream()));
  EXPECT_EQ(event_status(event.get()), ACL_EVENT_RECORDED_STATUS_COMPLETE);
  EXPECT_EQ(other.bytes()[0], 1);
  EXPECT_EQ(other.bytes()[1], 2);
}

TEST_F(ManagedPrefetch, MANAGED_16_ABatchNamesALocationForEachOfItsRanges) {
  {
    Gate gate(stream());
    Batch batch = three();
    EXPECT_SUCCESS(while_held(gate, [&] { return batch.queue(stream()); }));
    EXPECT_EQ(last_prefetch(data(), 2 * kGranule), 1);
    EXPECT_EQ(last_prefetch(at(2 * kGranule), 2 * kGranule), kHostId);
  }
  EXPECT_SUCCESS(finish(stream()));
}

TEST_F(ManagedPrefetch, MANAGED_17_LocationsThatDoNotExistAreRefused) {
  for (const aclrtMemManagedLocation wrong :
       {on_device(8), on_device(-1), on_node(1023), on_node(-1),
        location(enum_value<aclrtMemManagedLocationType>(5))}) {
    EXPECT_FAILS(kInner, aclrtMemManagedPrefetchAsync(data(), kSize, wrong, 0, stream()));
    Batch batch = three();
    batch.locations[1] = wrong;
    batch.expect_refused(kInner, stream());
  }
  expect_nothing_happened();
  const auto current = location(ACL_MEM_LOCATIONTYPE_HOST_NUMA_CURRENT, 99);
  EXPECT_SUCCESS(aclrtMemManagedPrefetchAsync(data(), kSize, current, 0, stream()));
  EXPECT_EQ(last_prefetch_type(data(), kSize), ACL_MEM_LOCATIONTYPE_HOST_NUMA);
  EXPECT_GE(last_prefetch_id(data(), kSize), 0);
  EXPECT_SUCCESS(aclrtMemManagedPrefetchAsync(data(), kSize, nowhere(), 0, stream()));
  EXPECT_EQ(last_prefetch(data(), kSize), kNoId);
}

TEST_F(ManagedPrefetch, MANAGED_19_OnlyWholeGranulesOfManagedMemoryAndAllOrNothing) {
  const DeviceBlock device(kGranule);
  ManagedBlock gone(kGranule);
  void* const freed = gone.data();
  gone.free();
  const struct {
    const void* start;
    size_t size;
  } cases[] = {{data(), 1},
               {data(), kGranule + kPage},
               {data(), kSize + kGranule},
               {at(kGranule), kSize},
               {device.data(), kGranule},
               {freed, kGranule},
               {address(8), kGranule},
               {data(), SIZE_MAX / kGranule * kGranule}};
  for (const auto& wrong : cases) {
    EXPECT_FAILS(kInner,
                 aclrtMemManagedPrefetchAsync(wrong.start, wrong.size, on_host(), 0, stream()));
    Batch batch = three();
    batch.starts[2] = wrong.start;
    batch.sizes[2] = wrong.size;
    batch.expect_refused(kInner, stream());
  }
  expect_nothing_happened();
}

TEST_F(ManagedPrefetch, MANAGED_16_MemoryThatIsFreedBeforeTheTaskDoesNoHarm) {
  ManagedBlock block;
  {
    Gate gate(stream());
    EXPECT_SUCCESS(aclrtMemManagedPrefetchAsync(block.data(), kGranule, on_device(0), 0, stream()));
    block.free();
  }
  EXPECT_SUCCESS(finish(stream()));
}

}  // namespace
}  // namespace understudy_test
