// SPDX-License-Identifier: Apache-2.0
//
// What the tests of batch copies share: a batch, both synchronous functions that run one, and two
// sides of memory with known bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "rules/allocation_objects.h"
#include "rules/host_objects.h"

namespace understudy_test {

inline constexpr size_t kNoElement = SIZE_MAX;
inline constexpr size_t kUntouchedIndex = 0x5EA7ED;

inline constexpr aclrtMemLocation kAtHost = {0, ACL_MEM_LOCATION_TYPE_HOST};
inline constexpr aclrtMemLocation at_device(uint32_t id = 0) {
  return {id, ACL_MEM_LOCATION_TYPE_DEVICE};
}

inline aclrtMemcpyBatchAttr batch_attribute(aclrtMemLocation to, aclrtMemLocation from) {
  aclrtMemcpyBatchAttr attribute;
  memset(&attribute, 0, sizeof attribute);
  attribute.dstLoc = to;
  attribute.srcLoc = from;
  return attribute;
}
inline aclrtMemcpyBatchAttr to_device(uint32_t id = 0) {
  return batch_attribute(at_device(id), kAtHost);
}
inline aclrtMemcpyBatchAttr to_host(uint32_t id = 0) {
  return batch_attribute(kAtHost, at_device(id));
}

// The arguments both functions have in common.
struct BatchArguments {
  void** targets;
  size_t* rooms;
  void** sources;
  size_t* sizes;
  size_t count;
  aclrtMemcpyBatchAttr* attributes;
  size_t* attribute_starts;
  size_t attribute_count;
};

// Elements and the attributes that hold for them. Tests change the lists directly.
struct Batch {
  std::vector<void*> targets;
  std::vector<size_t> rooms;
  std::vector<void*> sources;
  std::vector<size_t> sizes;
  std::vector<aclrtMemcpyBatchAttr> attributes;
  std::vector<size_t> attribute_starts;

  void add(void* target, void* source, size_t size) {
    targets.push_back(target);
    rooms.push_back(size);
    sources.push_back(source);
    sizes.push_back(size);
  }
  void from_element(size_t start, const aclrtMemcpyBatchAttr& attribute) {
    attributes.push_back(attribute);
    attribute_starts.push_back(start);
  }
  BatchArguments arguments() {
    return {targets.data(), rooms.data(),      sources.data(),          sizes.data(),
            sizes.size(),   attributes.data(), attribute_starts.data(), attributes.size()};
  }
};

// The two functions, as a test parameter.
struct BatchForm {
  const char* name;
  bool tells_index;
};

inline constexpr BatchForm kBatch = {"aclrtMemcpyBatch", true};
inline constexpr BatchForm kBatchV2 = {"aclrtMemcpyBatchV2", false};
inline constexpr std::array kBatchForms = {kBatch, kBatchV2};

inline aclError run_batch(const BatchForm& form, const BatchArguments& with, size_t* index) {
  if (form.tells_index) {
    return aclrtMemcpyBatch(with.targets, with.rooms, with.sources, with.sizes, with.count,
                            with.attributes, with.attribute_starts, with.attribute_count, index);
  }
  return aclrtMemcpyBatchV2(with.targets, with.rooms, with.sources, with.sizes, with.count,
                            with.attributes, with.attribute_starts, with.attribute_count);
}

// `index` is what *failIndex holds afterwards, where the form has one.
inline void expect_batch_refused(const BatchForm& form, aclError code, const BatchArguments& with,
                                 size_t index) {
  size_t told = kUntouchedIndex;
  (void)recent_error();
  EXPECT_TRUE(fails_with(code, run_batch(form, with, &told), form.name));
  EXPECT_EQ(told, form.tells_index ? index : kUntouchedIndex);
}

inline void expect_batch_copied(const BatchForm& form, const BatchArguments& with) {
  size_t told = kUntouchedIndex;
  EXPECT_SUCCESS(run_batch(form, with, &told)) << form.name;
  EXPECT_EQ(told, form.tells_index ? kNoElement : kUntouchedIndex);
}

class BatchTest : public HostMemoryTest, public testing::WithParamInterface<BatchForm> {
 protected:
  // 100000: *failIndex is not touched.
  static void expect_outer_refusal(const BatchArguments& with) {
    expect_batch_refused(GetParam(), ACL_ERROR_INVALID_PARAM, with, kUntouchedIndex);
  }
  // 107000, with the element to blame if there is a single one.
  static void expect_inner_refusal(const BatchArguments& with, size_t index = kNoElement) {
    expect_batch_refused(GetParam(), ACL_ERROR_RT_PARAM_INVALID, with, index);
  }
  static void expect_copied(const BatchArguments& with) { expect_batch_copied(GetParam(), with); }
};

inline auto each_batch_form() { return testing::ValuesIn(kBatchForms); }
inline std::string name_of_batch_form(const testing::TestParamInfo<BatchForm>& info) {
  return info.param.name;
}

// Device memory and ordinary host memory of one size with different known bytes, cut into slots;
// a batch moves parts of the slots from one side to the other.
class BatchSides {
 public:
  static constexpr size_t kSlot = 100;  // no alignment is promised or needed

  explicit BatchSides(size_t slots = 4)
      : size_(slots * kSlot),
        device_(size_),
        host_(pattern(size_, 3)),
        device_bytes_(pattern(size_, 120)),
        host_bytes_(host_) {
    copy_in(device_.data(), device_bytes_);
  }

  size_t slots() const { return size_ / kSlot; }
  void* on_device(size_t slot) const { return device_.at(slot * kSlot); }
  void* on_host(size_t slot) { return host_.data() + slot * kSlot; }
  static size_t size_of(size_t slot) { return 1 + slot * 13 % (kSlot - 1); }

  // One element for each slot, under one attribute.
  Batch to_device_batch() {
    Batch batch;
    for (size_t i = 0; i < slots(); ++i) batch.add(on_device(i), on_host(i), size_of(i));
    batch.from_element(0, to_device());
    return batch;
  }
  Batch to_host_batch() {
    Batch batch;
    for (size_t i = 0; i < slots(); ++i) batch.add(on_host(i), on_device(i), size_of(i));
    batch.from_element(0, to_host());
    return batch;
  }

  // What the test expects of the next look: this slot's part has gone to the other side.
  void expect_moved_to_device(size_t slot) { move(slot, host_bytes_, device_bytes_); }
  void expect_moved_to_host(size_t slot) { move(slot, device_bytes_, host_bytes_); }

  // Every byte of both sides, those between the elements included.
  void expect_bytes() const {
    EXPECT_TRUE(copy_out(device_.data(), size_) == device_bytes_) << "the device side is wrong";
    EXPECT_TRUE(host_ == host_bytes_) << "the host side is wrong";
  }

 private:
  static void move(size_t slot, const std::vector<uint8_t>& from, std::vector<uint8_t>& to) {
    const auto start = static_cast<ptrdiff_t>(slot * kSlot);
    std::copy_n(from.begin() + start, size_of(slot), to.begin() + start);
  }

  const size_t size_;
  const DeviceBlock device_;
  std::vector<uint8_t> host_;
  std::vector<uint8_t> device_bytes_;
  std::vector<uint8_t> host_bytes_;
};

// The whole batch except for one array.
inline std::vector<BatchArguments> each_without_one_array(const BatchArguments& whole) {
  std::vector<BatchArguments> calls(5, whole);
  calls[0].targets = nullptr;
  calls[1].rooms = nullptr;
  calls[2].sources = nullptr;
  calls[3].attributes = nullptr;
  calls[4].attribute_starts = nullptr;
  return calls;
}

}  // namespace understudy_test
