// SPDX-License-Identifier: Apache-2.0
//
// aclrtMemcpyBatchAsync and aclrtMemcpyBatchAsyncV2: what is checked in which order, what
// *failIndex says, and when the elements are moved.
// Covers: BATCH-01, BATCH-02, BATCH-03, BATCH-04, BATCH-05, BATCH-06, BATCH-07, BATCH-08, BATCH-09,
// BATCH-10, BATCH-11, BATCH-12, BATCH-13, BATCH-14, BATCH-15, BATCH-16, GEN-03, GEN-05, GEN-06.
#include <algorithm>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "rules/async_objects.h"
#include "rules/batch_objects.h"

namespace understudy_test {
namespace {

using BatchAsyncIndex = HostMemoryTest;

struct AsyncBatchForm {
  const char* name;
  bool tells_index;

  friend std::ostream& operator<<(std::ostream& out, const AsyncBatchForm& form) {
    return out << form.name;
  }
};
constexpr AsyncBatchForm kForms[] = {{"aclrtMemcpyBatchAsync", true},
                                     {"aclrtMemcpyBatchAsyncV2", false}};

aclError run(const AsyncBatchForm& form, const BatchArguments& with, size_t* index,
             aclrtStream stream) {
  if (form.tells_index) {
    return aclrtMemcpyBatchAsync(with.targets, with.rooms, with.sources, with.sizes, with.count,
                                 with.attributes, with.attribute_starts, with.attribute_count,
                                 index, stream);
  }
  return aclrtMemcpyBatchAsyncV2(with.targets, with.rooms, with.sources, with.sizes, with.count,
                                 with.attributes, with.attribute_starts, with.attribute_count,
                                 stream);
}

void expect_form_refuses(const AsyncBatchForm& form, aclError code, const BatchArguments& with,
                         size_t index, aclrtStream stream) {
  size_t told = kUntouchedIndex;
  (void)recent_error();
  EXPECT_TRUE(fails_with(code, run(form, with, &told, stream), form.name));
  EXPECT_EQ(told, form.tells_index ? index : kUntouchedIndex);
}

class BatchAsync : public HostMemoryTest, public testing::WithParamInterface<AsyncBatchForm> {
 protected:
  void expect_refused(aclError code, const BatchArguments& with, size_t index = kNoElement) const {
    expect_form_refuses(GetParam(), code, with, index, stream());
  }
  void expect_outer_refusal(const BatchArguments& with) const {
    expect_refused(ACL_ERROR_INVALID_PARAM, with, kUntouchedIndex);
  }
  void expect_inner_refusal(const BatchArguments& with, size_t index = kNoElement) const {
    expect_refused(ACL_ERROR_RT_PARAM_INVALID, with, index);
    EXPECT_SUCCESS(finish(stream()));
  }
  // Queued, or done where it cannot be.
  aclError accept(const BatchArguments& with, aclrtStream on) const {
    size_t told = kUntouchedIndex;
    const aclError code = run(GetParam(), with, &told, on);
    EXPECT_EQ(told, GetParam().tells_index ? kNoElement : kUntouchedIndex);
    return code;
  }

  void SetUp() override {
    HostMemoryTest::SetUp();
    EXPECT_SUCCESS(aclrtCreateStream(&stream_));
  }
  void TearDown() override {
    EXPECT_SUCCESS(aclrtDestroyStream(stream_));
    HostMemoryTest::TearDown();
  }
  aclrtStream stream() const { return stream_; }

 private:
  aclrtStream stream_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(, BatchAsync, testing::ValuesIn(kForms),
                         [](const testing::TestParamInfo<AsyncBatchForm>& parameter) {
                           return std::string(parameter.param.name);
                         });

// Device memory and page-locked memory with different known bytes, cut into slots.
class LockedSides {
 public:
  static constexpr size_t kSlot = BatchSides::kSlot;

  explicit LockedSides(size_t slots = 4) : slots_(slots) {
    copy_in(device_.data(), pattern(size(), 120));
    store(host_.data(), pattern(size(), 3));
  }

  size_t slots() const { return slots_; }
  size_t size() const { return slots_ * kSlot; }
  void* on_device(size_t slot) const { return device_.at(slot * kSlot); }
  void* on_host(size_t slot) const { return host_.at(slot * kSlot); }

  Batch to_device_batch() const {
    Batch batch;
    for (size_t i = 0; i < slots_; ++i) batch.add(on_device(i), on_host(i), BatchSides::size_of(i));
    batch.from_element(0, to_device());
    return batch;
  }
  Batch to_host_batch() const {
    Batch batch;
    for (size_t i = 0; i < slots_; ++i) batch.add(on_host(i), on_device(i), BatchSides::size_of(i));
    batch.from_element(0, to_host());
    return batch;
  }

  void expect_unchanged() const { expect_bytes(pattern(size(), 120), pattern(size(), 3)); }
  void expect_all_on_device() const {
    expect_bytes(moved(pattern(size(), 3), pattern(size(), 120)), pattern(size(), 3));
  }
  void expect_all_on_host() const {
    expect_bytes(pattern(size(), 120), moved(pattern(size(), 120), pattern(size(), 3)));
  }

 private:
  std::vector<uint8_t> moved(const std::vector<uint8_t>& from, std::vector<uint8_t> to) const {
    for (size_t i = 0; i < slots_; ++i) {
      const auto start = static_cast<ptrdiff_t>(i * kSlot);
      std::copy_n(from.begin() + start, BatchSides::size_of(i), to.begin() + start);
    }
    return to;
  }
  void expect_bytes(const std::vector<uint8_t>& device, const std::vector<uint8_t>& host) const {
    EXPECT_TRUE(copy_out(device_.data(), size()) == device) << "the device side is wrong";
    EXPECT_TRUE(holds(host_.data(), host)) << "the host side is wrong";
  }

  const size_t slots_;
  const DeviceBlock device_{slots_ * kSlot};
  const HostBlock host_{slots_ * kSlot};
};

// ---- Outer checks ----

TEST_F(BatchAsyncIndex, BATCH_01_NullIndexIsRefusedBeforeAnythingElse) {
  const LockedSides sides;
  Batch batch = sides.to_device_batch();
  size_t zero = 0;
  const TestStream stream;
  const BadStreams bad;
  const auto refuse = [&] {
    for (const aclrtStream any : {stream.get(), bad.destroyed()}) {
      (void)recent_error();
      EXPECT_TRUE(fails_with(ACL_ERROR_INVALID_PARAM,
                             run(kForms[0], batch.arguments(), nullptr, any), kForms[0].name));
      EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
                   aclrtMemcpyBatchAsync(nullptr, nullptr, nullptr, &zero, 1, nullptr, nullptr, 0,
                                         nullptr, any));
    }
  };
  refuse();
  on_bare_thread(refuse);
  EXPECT_SUCCESS(finish(stream.get()));
  sides.expect_unchanged();
}

TEST_P(BatchAsync, BATCH_02_BATCH_04_MissingArraysAndElementsAreRefused) {
  const LockedSides sides;
  Batch batch = sides.to_device_batch();
  std::vector<BatchArguments> calls = each_without_one_array(batch.arguments());
  calls.push_back(batch.arguments());
  calls.back().sizes = nullptr;
  calls.push_back(batch.arguments());
  calls.back().count = 0;
  for (const BatchArguments& call : calls) {
    expect_outer_refusal(call);
    on_bare_thread([&] { expect_outer_refusal(call); });
  }
  EXPECT_SUCCESS(finish(stream()));
  sides.expect_unchanged();
}

TEST_P(BatchAsync, BATCH_03_OnlyEmptyElementsSucceedWithoutALookAtTheRest) {
  const BadStreams bad;
  for (const size_t count : {size_t{1}, size_t{5000}}) {
    std::vector<size_t> sizes(count, 0);
    const BatchArguments only_sizes = {nullptr, nullptr, nullptr, sizes.data(),
                                       count,   nullptr, nullptr, 0};
    const auto succeed = [&] {
      for (const aclrtStream any : {stream(), aclrtStream{nullptr}, bad.destroyed()}) {
        EXPECT_SUCCESS(accept(only_sizes, any));
      }
    };
    succeed();
    on_bare_thread(succeed);
  }
}

TEST_P(BatchAsync, BATCH_05_TooLittleRoomAndReservedBytesAreRefused) {
  const LockedSides sides;
  for (size_t i = 0; i < sides.slots(); ++i) {
    SCOPED_TRACE(i);
    Batch no_room = sides.to_device_batch();
    no_room.rooms[i] = BatchSides::size_of(i) - 1;
    expect_outer_refusal(no_room.arguments());
    Batch reserved = sides.to_device_batch();
    for (size_t k = 1; k < sides.slots(); ++k) reserved.from_element(k, to_device());
    reserved.attributes[i].rsv[i * 5] = 1;
    expect_outer_refusal(reserved.arguments());
  }
  EXPECT_SUCCESS(finish(stream()));
  sides.expect_unchanged();
}

TEST_P(BatchAsync, BATCH_05_OuterChecksComeBeforeContextStreamAndInnerOnes) {
  const LockedSides sides;
  const BadStreams bad;
  Batch wrong = sides.to_device_batch();
  wrong.rooms[2] = 0;
  wrong.attribute_starts[0] = 5;
  wrong.sizes[1] = 0;
  const auto refuse = [&] {
    for (const aclrtStream any : {stream(), bad.destroyed()}) {
      expect_form_refuses(GetParam(), ACL_ERROR_INVALID_PARAM, wrong.arguments(), kUntouchedIndex,
                          any);
    }
  };
  refuse();
  on_bare_thread(refuse);
  sides.expect_unchanged();
}

// ---- Inner checks ----

TEST_P(BatchAsync, BATCH_06_GEN_03_GEN_05_GEN_06_ContextAndStreamBlameNoElement) {
  const LockedSides sides;
  BatchSides ordinary;
  Batch batches[] = {sides.to_device_batch(), sides.to_host_batch(), ordinary.to_device_batch()};
  BadStreams bad;
  for (Batch& batch : batches) {
    bad.expect_refused(GetParam().name, [&](aclrtStream other) {
      size_t told = kUntouchedIndex;
      const aclError code = run(GetParam(), batch.arguments(), &told, other);
      EXPECT_EQ(told, GetParam().tells_index ? kNoElement : kUntouchedIndex);
      return code;
    });
    on_bare_thread([&] { expect_refused(ACL_ERROR_RT_CONTEXT_NULL, batch.arguments()); });
  }
  sides.expect_unchanged();
  ordinary.expect_bytes();
}

TEST_P(BatchAsync, BATCH_07_NoAttributesOrMoreThanElementsAreRefused) {
  const LockedSides sides;
  Batch batch = sides.to_device_batch();
  for (size_t k = 1; k <= sides.slots(); ++k) batch.from_element(k, to_device());
  for (const size_t count : {size_t{0}, sides.slots() + 1}) {
    BatchArguments call = batch.arguments();
    call.attribute_count = count;
    expect_inner_refusal(call);
  }
  sides.expect_unchanged();
}

TEST_P(BatchAsync, BATCH_08_BATCH_13_AsyncFormHasNoLimit) {
  const LockedSides sides(5000);
  Batch batch = sides.to_device_batch();
  EXPECT_SUCCESS(accept(batch.arguments(), stream()));
  EXPECT_SUCCESS(finish(stream()));
  sides.expect_all_on_device();
}

TEST_P(BatchAsync, BATCH_09_IndexesMustStartAtZeroRiseAndNameElements) {
  const LockedSides sides;
  const std::vector<std::vector<size_t>> wrong_starts = {
      {1}, {SIZE_MAX}, {1, 2}, {0, 0}, {0, 2, 1}, {0, 4}, {0, 1, 4}, {0, SIZE_MAX}};
  for (const std::vector<size_t>& starts : wrong_starts) {
    SCOPED_TRACE(testing::PrintToString(starts));
    Batch batch = sides.to_device_batch();
    batch.attribute_starts = starts;
    batch.attributes.assign(starts.size(), to_device());
    expect_inner_refusal(batch.arguments());
  }
  sides.expect_unchanged();
}

TEST_P(BatchAsync, BATCH_10_ElementAtAnotherPlaceThanItsAttributeIsBlamed) {
  const LockedSides sides;
  const DeviceBlock elsewhere(LockedSides::kSlot);
  for (size_t wrong = 0; wrong < sides.slots(); ++wrong) {
    SCOPED_TRACE(wrong);
    const size_t other = wrong == 0 ? 1 : 0;
    std::vector<Batch> batches(4, sides.to_device_batch());
    batches[0].targets[wrong] = sides.on_host(other);
    batches[1].sources[wrong] = elsewhere.data();
    batches[2] = sides.to_host_batch();
    batches[2].targets[wrong] = elsewhere.data();
    if (wrong == 0) {
      batches[3].attributes[0] = to_device(1);
    } else {
      batches[3].from_element(wrong, to_host());
    }
    for (Batch& batch : batches) expect_inner_refusal(batch.arguments(), wrong);
  }
  Batch within = sides.to_device_batch();
  within.sources[0] = elsewhere.data();
  within.attributes[0] = batch_attribute(at_device(), at_device());
  expect_inner_refusal(within.arguments(), 0);
  sides.expect_unchanged();
}

TEST_P(BatchAsync, BATCH_11_EveryHostLocationIsTheHost) {
  const aclrtMemLocation hosts[] = {{77, ACL_MEM_LOCATION_TYPE_HOST},
                                    {5, ACL_MEM_LOCATION_TYPE_HOST_NUMA}};
  for (const aclrtMemLocation& host : hosts) {
    SCOPED_TRACE(host.type);
    const LockedSides sides;
    Batch batch = sides.to_device_batch();
    batch.attributes[0] = batch_attribute(at_device(), host);
    EXPECT_SUCCESS(accept(batch.arguments(), stream()));
    EXPECT_SUCCESS(finish(stream()));
    sides.expect_all_on_device();
  }
}

TEST_P(BatchAsync, BATCH_14_EmptyElementAmongOthersIsBlamed) {
  const LockedSides sides;
  BatchSides ordinary;
  for (size_t empty = 0; empty < sides.slots(); ++empty) {
    SCOPED_TRACE(empty);
    for (Batch batch :
         {sides.to_device_batch(), sides.to_host_batch(), ordinary.to_device_batch()}) {
      batch.sizes[empty] = 0;
      expect_inner_refusal(batch.arguments(), empty);
      batch.targets[empty] = nullptr;
      batch.sources[empty] = nullptr;
      expect_inner_refusal(batch.arguments(), empty);
    }
  }
  sides.expect_unchanged();
  ordinary.expect_bytes();
}

TEST_P(BatchAsync, BATCH_14_BATCH_10_FirstElementAtFaultIsBlamed) {
  const LockedSides sides;
  const DeviceBlock elsewhere(LockedSides::kSlot);
  Batch batch = sides.to_device_batch();
  batch.sizes[1] = 0;
  batch.sources[2] = elsewhere.data();
  expect_inner_refusal(batch.arguments(), 1);
  batch = sides.to_device_batch();
  batch.sources[1] = elsewhere.data();
  batch.sizes[2] = 0;
  expect_inner_refusal(batch.arguments(), 1);
  sides.expect_unchanged();
}

// ---- Queued ----

// Behind the gate neither the arrays nor the attributes are there any more.
TEST_P(BatchAsync, BATCH_12_BATCH_13_BATCH_16_ElementsMoveInStreamOrder) {
  for (const aclrtStream on : {stream(), aclrtStream{nullptr}}) {
    for (const bool to_the_device : {true, false}) {
      for (const size_t slots : {size_t{1}, size_t{7}, size_t{300}}) {
        SCOPED_TRACE(testing::Message() << slots << (to_the_device ? " in" : " out"));
        const LockedSides sides(slots);
        Gate gate(on);
        {
          Batch batch = to_the_device ? sides.to_device_batch() : sides.to_host_batch();
          EXPECT_SUCCESS(while_held(gate, [&] { return accept(batch.arguments(), on); }));
          std::fill(batch.targets.begin(), batch.targets.end(), nullptr);
          std::fill(batch.sources.begin(), batch.sources.end(), nullptr);
          std::fill(batch.sizes.begin(), batch.sizes.end(), SIZE_MAX);
        }
        EXPECT_EQ(stream_status(on), ACL_STREAM_STATUS_NOT_READY);
        sides.expect_unchanged();
        gate.open();
        EXPECT_SUCCESS(finish(on));
        if (to_the_device) {
          sides.expect_all_on_device();
        } else {
          sides.expect_all_on_host();
        }
      }
    }
  }
}

TEST_P(BatchAsync, BATCH_13_ElementThatLeavesItsAllocationFailsOnTheStream) {
  const DeviceBlock block(kNormalPage, ACL_MEM_MALLOC_HUGE_FIRST, kMallocAlign32);
  const HostBlock host(2 * kNormalPage);
  copy_in(block.data(), pattern(kNormalPage, 6));
  store(host.data(), pattern(2 * kNormalPage, 7));
  Batch in;
  in.add(block.at(1), host.data(), kNormalPage);
  in.from_element(0, to_device());
  Batch out;
  out.add(host.data(), block.at(1), kNormalPage);
  out.from_element(0, to_host());
  for (Batch* const batch : {&in, &out}) {
    EXPECT_SUCCESS(accept(batch->arguments(), stream()));
    expect_task_failed(stream());
    EXPECT_TRUE(copy_out(block.data(), kNormalPage) == pattern(kNormalPage, 6));
    EXPECT_TRUE(holds(host.data(), pattern(2 * kNormalPage, 7)));
  }
}

// ---- With an element the library does not know ----

TEST_P(BatchAsync, BATCH_15_OneOrdinaryElementMakesItAllDoneBehindTheQueue) {
  constexpr size_t kLarge = 8 * kMiB;
  const DeviceBlock busy(kLarge);
  for (const aclrtStream on : {stream(), aclrtStream{nullptr}}) {
    const HostBlock locked(kPage);
    const DeviceBlock target(3 * kPage);
    std::vector<uint8_t> heap = pattern(kPage, 8);
    store(locked.data(), pattern(kPage, 9));
    Batch in;
    in.add(target.data(), locked.data(), kPage);
    in.add(target.at(kPage), heap.data(), kPage);
    in.add(target.at(2 * kPage), locked.data(), kPage);
    in.from_element(0, to_device());
    Gate gate(on);
    for (const int32_t value : {1, 2, 3}) {
      EXPECT_SUCCESS(aclrtMemsetAsync(busy.data(), kLarge, value, kLarge, on));
    }
    EXPECT_SUCCESS(aclrtMemsetAsync(target.data(), 3 * kPage, 4, 3 * kPage, on));
    EXPECT_SUCCESS(while_opening(gate, [&] { return accept(in.arguments(), on); }));
    EXPECT_EQ(stream_status(on), ACL_STREAM_STATUS_COMPLETE);
    EXPECT_TRUE(copy_out(target.data(), kPage) == pattern(kPage, 9));
    EXPECT_TRUE(copy_out(target.at(kPage), kPage) == pattern(kPage, 8));
    EXPECT_TRUE(copy_out(target.at(2 * kPage), kPage) == pattern(kPage, 9));
  }
}

TEST_P(BatchAsync, BATCH_15_OrdinaryTargetsHoldTheBytesOnReturn) {
  BatchSides sides;
  Batch batch = sides.to_host_batch();
  EXPECT_SUCCESS(accept(batch.arguments(), stream()));
  for (size_t i = 0; i < sides.slots(); ++i) sides.expect_moved_to_host(i);
  sides.expect_bytes();
}

TEST_P(BatchAsync, BATCH_15_ErrorOfTheDrainedStreamIsReturnedAndNothingMoved) {
  BatchSides sides;
  const DeviceBlock small(kNormalPage, ACL_MEM_MALLOC_HUGE_FIRST, kMallocAlign32);
  Batch batch = sides.to_device_batch();
  EXPECT_SUCCESS(aclrtMemsetAsync(small.at(1), kNormalPage, 1, kNormalPage, stream()));
  expect_refused(ACL_ERROR_RT_SYS_DMA, batch.arguments());
  (void)finish(stream());
  sides.expect_bytes();
}

// ---- Products ----

class BatchAsyncOnProduct : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, BatchAsyncOnProduct,
                         testing::Values("a2", "a3", "950", "inf", "trn", "200i", "200i-rc",
                                         "ipv350"),
                         host_product_name);

TEST_P(BatchAsyncOnProduct, BATCH_05_BATCH_07_BATCH_13_ElementsAreCopiedOrTheFunctionIsMissing) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()}, {"UNDERSTUDY_MEMORY", "8G"});
  const ContextSession session;
  const bool has_it = GetParam() == "a2" || GetParam() == "a3" || GetParam() == "950";
  const TestStream stream;
  for (const AsyncBatchForm& form : kForms) {
    SCOPED_TRACE(form.name);
    BatchSides sides;
    Batch batch = sides.to_device_batch();
    Batch no_room = sides.to_device_batch();
    no_room.rooms[1] = 0;
    expect_form_refuses(form, ACL_ERROR_INVALID_PARAM, no_room.arguments(), kUntouchedIndex,
                        stream.get());
    // What *failIndex holds where the function is missing is nowhere said.
    size_t index = kUntouchedIndex;
    if (has_it) {
      EXPECT_SUCCESS(run(form, batch.arguments(), &index, stream.get()));
      for (size_t i = 0; i < sides.slots(); ++i) sides.expect_moved_to_device(i);
    } else {
      BatchArguments without_attributes = batch.arguments();
      without_attributes.attribute_count = 0;
      const auto refuse = [&] {
        for (const BatchArguments& call : {batch.arguments(), without_attributes}) {
          EXPECT_EQ(run(form, call, &index, stream.get()), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
        }
      };
      refuse();
      on_bare_thread(refuse);
    }
    sides.expect_bytes();
  }
}

}  // namespace
}  // namespace understudy_test
