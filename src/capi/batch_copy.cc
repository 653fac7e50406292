// SPDX-License-Identifier: Apache-2.0
//
// Many copies in one call. Rules: BATCH.
#include <algorithm>
#include <span>
#include <vector>

#include "acl/acl_rt.h"
#include "capi/call.h"
#include "capi/stream_argument.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

// Which of the two forms it is: one has a stream.
enum class Form : uint8_t { kAtOnce, kOnStream };

struct Batch {
  Form form;
  std::span<void* const> targets;
  std::span<const size_t> limits;
  std::span<void* const> sources;
  std::span<const size_t> sizes;
  std::span<const aclrtMemcpyBatchAttr> attributes;
  std::span<const size_t> first_elements;  // of each attribute
  size_t attributes_given;
};

constexpr size_t kMostElements = 4096;
constexpr size_t kNoElement = SIZE_MAX;

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

Result<void> check_attributes(const Batch& batch) {
  const size_t attributes = batch.attributes_given;
  const size_t elements = batch.sizes.size();
  if (attributes == 0 || attributes > elements) {
    return Error::format(ErrorCode::kInvalidParam, "numAttrs is %zu and must be 1 to %zu",
                         attributes, elements);
  }
  if (batch.form == Form::kAtOnce && elements > kMostElements) {
    return Error::format(ErrorCode::kInvalidParam, "numBatches is %zu and must not exceed %zu",
                         elements, kMostElements);
  }
  for (size_t k = 0; k < batch.first_elements.size(); ++k) {
    const size_t index = batch.first_elements[k];
    const bool rises = k == 0 ? index == 0 : index > batch.first_elements[k - 1];
    if (!rises || index >= elements) {
      return Error::format(ErrorCode::kInvalidParam,
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
  const Translation& translation = runtime.address_space().translation();
  // Where all of the granule is memory, its entry tells.
  const PageEntry entry = translation.look_up(to_address(address));
  if (entry.present() && entry.on_device() && !entry.divided() && !entry.restricted()) [[likely]]
    return is_device(said) && said.id == entry.owner();
  const auto found = translation.find(to_address(address));
  // Managed memory is on either side, and may be called by its name.
  if (found && found->location.kind == LocationKind::kManaged) {
    return said.type != ACL_MEM_LOCATION_TYPE_UNREGISTERED;
  }
  const bool on_device = found && found->location.on_device();
  if (on_device) return is_device(said) && said.id == found->location.id;
  return said.type == ACL_MEM_LOCATION_TYPE_HOST || said.type == ACL_MEM_LOCATION_TYPE_HOST_NUMA;
}

Result<void> check_side(Runtime& runtime, size_t element, const void* address,
                        const aclrtMemLocation& said) {
  if (agrees(runtime, address, said)) return {};
  if (const Result<void> found = runtime.copies().check_memory(to_address(address)); !found.ok()) {
    return Error::format(ErrorCode::kInvalidParam, "element %zu: %s", element,
                         found.error().text());
  }
  return Error::format(ErrorCode::kInvalidParam,
                       "element %zu: %p is not where its attribute says (location type %d, id %d)",
                       element, address, static_cast<int>(said.type), static_cast<int>(said.id));
}

Result<void> check_location(Runtime& runtime, const Batch& batch, size_t element,
                            const aclrtMemcpyBatchAttr& attribute) {
  if (batch.sizes[element] == 0) {
    if (batch.form == Form::kAtOnce) return {};  // skipped
    return Error::format(ErrorCode::kInvalidParam, "element %zu has no bytes", element);
  }
  US_TRY(check_side(runtime, element, batch.targets[element], attribute.dstLoc));
  US_TRY(check_side(runtime, element, batch.sources[element], attribute.srcLoc));
  const bool is_managed = attribute.dstLoc.type == ACL_MEM_LOCATION_TYPE_MANAGED ||
                          attribute.srcLoc.type == ACL_MEM_LOCATION_TYPE_MANAGED;
  if (!is_managed && is_device(attribute.dstLoc) == is_device(attribute.srcLoc)) {
    return Error::format(ErrorCode::kInvalidParam, "element %zu would copy within one side",
                         element);
  }
  return {};
}

Copy copy_of(const Batch& batch, size_t element) {
  return {to_address(batch.targets[element]), to_address(batch.sources[element]),
          batch.sizes[element]};
}

// Checks each element against its attribute. Names the one that is refused.
Result<void> check_locations(Runtime& runtime, const Batch& batch, size_t& failed) {
  size_t attribute = 0;
  for (size_t i = 0; i < batch.sizes.size(); ++i) {
    while (attribute + 1 < batch.first_elements.size() &&
           batch.first_elements[attribute + 1] <= i) {
      ++attribute;
    }
    if (Result<void> checked = check_location(runtime, batch, i, batch.attributes[attribute]);
        !checked.ok()) {
      failed = i;
      return checked;
    }
  }
  return {};
}

Result<void> copy_batch(Runtime& runtime, const Batch& batch, size_t& failed) {
  US_TRY_ASSIGN(const ContextReference context, runtime.current_context());
  US_TRY(check_attributes(batch));
  US_TRY(check_locations(runtime, batch, failed));
  return runtime.copies().copy_each(
      batch.sizes.size(), [&](size_t i) { return copy_of(batch, i); }, context.device(), failed);
}

Result<void> queue_batch(Runtime& runtime, const Batch& batch, aclrtStream stream, size_t& failed) {
  US_TRY_ASSIGN(const StreamCall call, stream_call(runtime, stream));
  US_TRY(check_attributes(batch));
  US_TRY(check_locations(runtime, batch, failed));
  std::vector<Copy> copies;
  copies.reserve(batch.sizes.size());
  for (size_t i = 0; i < batch.sizes.size(); ++i) copies.push_back(copy_of(batch, i));
  return runtime.copies().queue_list(call.stream, copies, failed);
}

// What the four functions are given, but for the index that two of them report.
struct Arguments {
  Form form;
  void** dsts;
  const size_t* destMaxs;
  void** srcs;
  const size_t* sizes;
  size_t numBatches;
  const aclrtMemcpyBatchAttr* attrs;
  const size_t* attrsIndexes;
  size_t numAttrs;
  aclrtStream stream;
};

// Everything that all forms do, in the order of the rules.
Result<void> run(const Arguments& arguments, size_t* failed) {
  const size_t elements = arguments.numBatches;
  US_TRY(require_pointer(arguments.sizes, "sizes"));
  US_TRY(require_size(elements, "numBatches"));
  if (all_zero({arguments.sizes, elements})) {
    *failed = kNoElement;
    return {};
  }
  US_TRY(require_pointer(arguments.dsts, "dsts"));
  US_TRY(require_pointer(arguments.destMaxs, "destMaxs"));
  US_TRY(require_pointer(arguments.srcs, "srcs"));
  US_TRY(require_pointer(arguments.attrs, "attrs"));
  US_TRY(require_pointer(arguments.attrsIndexes, "attrsIndexes"));
  // More attributes than elements are refused below; until then nothing behind them is read.
  const size_t attributes = std::min(arguments.numAttrs, elements);
  const Batch batch{.form = arguments.form,
                    .targets = {arguments.dsts, elements},
                    .limits = {arguments.destMaxs, elements},
                    .sources = {arguments.srcs, elements},
                    .sizes = {arguments.sizes, elements},
                    .attributes = {arguments.attrs, attributes},
                    .first_elements = {arguments.attrsIndexes, attributes},
                    .attributes_given = arguments.numAttrs};
  US_TRY(check_elements(batch));
  const GatePass pass;
  US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kBatchCopy));
  *failed = kNoElement;
  if (arguments.form == Form::kAtOnce) return copy_batch(*runtime, batch, *failed);
  return queue_batch(*runtime, batch, arguments.stream, *failed);
}

}  // namespace

aclError aclrtMemcpyBatch(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                          size_t numBatches, aclrtMemcpyBatchAttr* attrs, size_t* attrsIndexes,
                          size_t numAttrs, size_t* failIndex) {
  return guarded(US_CALL(list(dsts, numBatches), list(destMaxs, numBatches), list(srcs, numBatches),
                         list(sizes, numBatches), numBatches, list(attrs, numAttrs),
                         list(attrsIndexes, numAttrs), numAttrs, failIndex),
                 [&]() -> Result<void> {
                   US_TRY(require_pointer(failIndex, "failIndex"));
                   return run({Form::kAtOnce, dsts, destMaxs, srcs, sizes, numBatches, attrs,
                               attrsIndexes, numAttrs, nullptr},
                              failIndex);
                 });
}

aclError aclrtMemcpyBatchAsync(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                               size_t numBatches, aclrtMemcpyBatchAttr* attrs, size_t* attrsIndexes,
                               size_t numAttrs, size_t* failIndex, aclrtStream stream) {
  return guarded(US_CALL(list(dsts, numBatches), list(destMaxs, numBatches), list(srcs, numBatches),
                         list(sizes, numBatches), numBatches, list(attrs, numAttrs),
                         list(attrsIndexes, numAttrs), numAttrs, failIndex, stream),
                 [&]() -> Result<void> {
                   US_TRY(require_pointer(failIndex, "failIndex"));
                   return run({Form::kOnStream, dsts, destMaxs, srcs, sizes, numBatches, attrs,
                               attrsIndexes, numAttrs, stream},
                              failIndex);
                 });
}

aclError aclrtMemcpyBatchV2(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                            size_t numBatches, aclrtMemcpyBatchAttr* attrs, size_t* attrsIndexes,
                            size_t numAttrs) {
  return guarded(US_CALL(list(dsts, numBatches), list(destMaxs, numBatches), list(srcs, numBatches),
                         list(sizes, numBatches), numBatches, list(attrs, numAttrs),
                         list(attrsIndexes, numAttrs), numAttrs),
                 [&]() -> Result<void> {
                   size_t unused = 0;
                   return run({Form::kAtOnce, dsts, destMaxs, srcs, sizes, numBatches, attrs,
                               attrsIndexes, numAttrs, nullptr},
                              &unused);
                 });
}

aclError aclrtMemcpyBatchAsyncV2(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                                 size_t numBatches, aclrtMemcpyBatchAttr* attrs,
                                 size_t* attrsIndexes, size_t numAttrs, aclrtStream stream) {
  return guarded(US_CALL(list(dsts, numBatches), list(destMaxs, numBatches), list(srcs, numBatches),
                         list(sizes, numBatches), numBatches, list(attrs, numAttrs),
                         list(attrsIndexes, numAttrs), numAttrs, stream),
                 [&]() -> Result<void> {
                   size_t unused = 0;
                   return run({Form::kOnStream, dsts, destMaxs, srcs, sizes, numBatches, attrs,
                               attrsIndexes, numAttrs, stream},
                              &unused);
                 });
}
