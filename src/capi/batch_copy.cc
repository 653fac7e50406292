// SPDX-License-Identifier: Apache-2.0
//
// Many copies in one call. Rules: BATCH.
#include <algorithm>
#include <span>

#include "acl/acl_rt.h"
#include "capi/call.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

struct Batch {
  std::span<void* const> targets;
  std::span<const size_t> limits;
  std::span<void* const> sources;
  std::span<const size_t> sizes;
  std::span<const aclrtMemcpyBatchAttr> attributes;
  std::span<const size_t> first_elements;  // of each attribute
};

constexpr size_t kMostElements = 4096;
constexpr size_t kNobodyToBlame = SIZE_MAX;

bool all_zero(std::span<const size_t> sizes) {
  return std::ranges::all_of(sizes, [](size_t size) { return size == 0; });
}

Result<void> check_elements(const Batch& batch) {
  for (size_t i = 0; i < batch.sizes.size(); ++i) {
    if (batch.limits[i] < batch.sizes[i]) {
      return invalid_argument("destMaxs[%zu] is %zu and sizes[%zu] is %zu", i, batch.limits[i], i,
                              batch.sizes[i]);
    }
  }
  for (size_t k = 0; k < batch.attributes.size(); ++k) {
    if (std::ranges::any_of(batch.attributes[k].rsv, [](uint8_t byte) { return byte != 0; })) {
      return invalid_argument("attrs[%zu].rsv is not all 0", k);
    }
  }
  return {};
}

Result<void> check_attributes(const Batch& batch, size_t attributes) {
  const size_t elements = batch.sizes.size();
  if (attributes == 0 || attributes > elements) {
    return Error::format(ErrorCode::kRefused, "numAttrs is %zu and must be 1 to %zu", attributes,
                         elements);
  }
  if (elements > kMostElements) {
    return Error::format(ErrorCode::kRefused, "numBatches is %zu and must not exceed %zu", elements,
                         kMostElements);
  }
  for (size_t k = 0; k < batch.first_elements.size(); ++k) {
    const size_t index = batch.first_elements[k];
    const bool rises = k == 0 ? index == 0 : index > batch.first_elements[k - 1];
    if (!rises || index >= elements) {
      return Error::format(ErrorCode::kRefused,
                           "attrsIndexes[%zu] is %zu; they start with 0, rise, and stay below %zu",
                           k, index, elements);
    }
  }
  return {};
}

bool is_device(const aclrtMemLocation& location) {
  return location.type == ACL_MEM_LOCATION_TYPE_DEVICE;
}

// Whether memory is where an attribute says. All host memory is one place (BATCH-11).
bool agrees(Runtime& runtime, const void* address, const aclrtMemLocation& said) {
  const auto found = runtime.address_space().find(to_address(address));
  const bool on_device = found && found->location.on_device();
  if (on_device) return is_device(said) && said.id == found->location.id;
  return said.type == ACL_MEM_LOCATION_TYPE_HOST || said.type == ACL_MEM_LOCATION_TYPE_HOST_NUMA;
}

Result<void> check_location(Runtime& runtime, const Batch& batch, size_t element,
                            const aclrtMemcpyBatchAttr& attribute) {
  if (!agrees(runtime, batch.targets[element], attribute.dstLoc) ||
      !agrees(runtime, batch.sources[element], attribute.srcLoc)) {
    return Error::format(ErrorCode::kRefused, "element %zu is not where its attribute says",
                         element);
  }
  if (is_device(attribute.dstLoc) == is_device(attribute.srcLoc)) {
    return Error::format(ErrorCode::kRefused, "element %zu would copy within one side", element);
  }
  return {};
}

// Calls visit(element) for all that have bytes. Names the one whose visit failed.
template <typename Visit>
Result<void> for_each_element(const Batch& batch, size_t& failed, Visit visit) {
  for (size_t i = 0; i < batch.sizes.size(); ++i) {
    if (batch.sizes[i] == 0) continue;
    if (Result<void> visited = visit(i); !visited.ok()) {
      failed = i;
      return visited;
    }
  }
  return {};
}

Result<void> copy_batch(const Batch& batch, size_t& failed) {
  US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
  US_TRY_ASSIGN(const ContextReference context, runtime->current_context());
  size_t attribute = 0;
  US_TRY(for_each_element(batch, failed, [&](size_t i) {
    while (attribute + 1 < batch.first_elements.size() &&
           batch.first_elements[attribute + 1] <= i) {
      ++attribute;
    }
    return check_location(*runtime, batch, i, batch.attributes[attribute]);
  }));
  return for_each_element(batch, failed, [&](size_t i) {
    return runtime->transfer().copy(to_address(batch.targets[i]), to_address(batch.sources[i]),
                                    batch.sizes[i], context.device());
  });
}

// Everything that both forms do, in the order of the rules.
Result<void> run(void** dsts, const size_t* destMaxs, void** srcs, const size_t* sizes,
                 size_t numBatches, const aclrtMemcpyBatchAttr* attrs, const size_t* attrsIndexes,
                 size_t numAttrs, size_t* failed) {
  US_TRY(require_pointer(sizes, "sizes"));
  US_TRY(require_size(numBatches, "numBatches"));
  if (all_zero({sizes, numBatches})) {
    *failed = kNobodyToBlame;
    return {};
  }
  US_TRY(require_pointer(dsts, "dsts"));
  US_TRY(require_pointer(destMaxs, "destMaxs"));
  US_TRY(require_pointer(srcs, "srcs"));
  US_TRY(require_pointer(attrs, "attrs"));
  US_TRY(require_pointer(attrsIndexes, "attrsIndexes"));
  // More attributes than elements are refused below; until then nothing behind them is read.
  const size_t attributes = std::min(numAttrs, numBatches);
  const Batch batch{{dsts, numBatches},  {destMaxs, numBatches}, {srcs, numBatches},
                    {sizes, numBatches}, {attrs, attributes},    {attrsIndexes, attributes}};
  US_TRY(check_elements(batch));
  US_TRY(require_feature(Feature::kBatchCopy));
  *failed = kNobodyToBlame;
  US_TRY(check_attributes(batch, numAttrs));
  return copy_batch(batch, *failed);
}

}  // namespace

aclError aclrtMemcpyBatch(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                          size_t numBatches, aclrtMemcpyBatchAttr* attrs, size_t* attrsIndexes,
                          size_t numAttrs, size_t* failIndex) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_pointer(failIndex, "failIndex"));
    return run(dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs, failIndex);
  });
}

aclError aclrtMemcpyBatchV2(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                            size_t numBatches, aclrtMemcpyBatchAttr* attrs, size_t* attrsIndexes,
                            size_t numAttrs) {
  return guarded(__func__, [&]() -> Result<void> {
    size_t nobody_asks = 0;
    return run(dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs,
               &nobody_asks);
  });
}
