// SPDX-License-Identifier: Apache-2.0
//
// Copy and set on streams. Rules: ACOPY, SET-07 to SET-12.
#include "acl/acl_rt.h"
#include "capi/call.h"
#include "capi/copy_arguments.h"
#include "capi/memory_class.h"
#include "capi/stream_argument.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

// The table of ACOPY-09 for pairs with unregistered memory; others take any kind.
bool is_accepted(const CopySides& sides, aclrtMemcpyKind kind) {
  const MemoryClass to = sides.target.memory_class;
  const MemoryClass from = sides.source.memory_class;
  if (kind == ACL_MEMCPY_DEFAULT || !sides.has(MemoryClass::kUnregistered) || from == to)
    return true;
  if (to == MemoryClass::kDevice) {
    return kind == ACL_MEMCPY_HOST_TO_DEVICE || kind == ACL_MEMCPY_DEVICE_TO_DEVICE;
  }
  if (from == MemoryClass::kDevice) {
    return kind == ACL_MEMCPY_DEVICE_TO_HOST || kind == ACL_MEMCPY_DEVICE_TO_DEVICE;
  }
  if (from == MemoryClass::kHost) {
    return kind == ACL_MEMCPY_HOST_TO_HOST || kind == ACL_MEMCPY_HOST_TO_DEVICE;
  }
  return kind == ACL_MEMCPY_HOST_TO_HOST || kind == ACL_MEMCPY_DEVICE_TO_HOST;
}

// The source is put aside, so that the program may use it again at once (ACOPY-11).
Result<void> queue_captured(const StreamCall& call, const Copy& copy, const CopySides& sides) {
  if (sides.source.memory_class == MemoryClass::kDevice ||
      sides.target.memory_class != MemoryClass::kDevice) {
    return Error::format(ErrorCode::kRefused,
                         "kind 5 copies from host to device memory, not from %p to %p",
                         to_pointer(copy.from), to_pointer(copy.to));
  }
  US_TRY_ASSIGN(auto captured, CapturedBytes::make(call.runtime->storages().budget(), copy.count));
  US_TRY(call.runtime->transfer().copy(to_address(captured->data()), copy.from, copy.count,
                                       call.device()));
  Task task(TaskKind::kCopyCaptured, call.device());
  task.captured = {copy.to, captured.release()};
  return call.submit(task);
}

Result<void> queue_copy(const StreamCall& call, const Copy& copy, aclrtMemcpyKind kind) {
  Runtime& runtime = *call.runtime;
  const CopySides sides(runtime, copy.to, copy.from);
  if (kind == ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE) return queue_captured(call, copy, sides);
  // Where the program runs on the device, there is one kind of memory.
  const bool one_memory = runtime.settings().product.run_mode == RunMode::kDevice;
  if (one_memory && kind != ACL_MEMCPY_DEFAULT) kind = ACL_MEMCPY_DEVICE_TO_DEVICE;
  if (!is_accepted(sides, kind)) {
    return Error::format(ErrorCode::kRefused, "kind %d does not fit memory at %p and %p",
                         static_cast<int>(kind), to_pointer(copy.from), to_pointer(copy.to));
  }
  if (!sides.has(MemoryClass::kDevice) && !one_memory) {
    return Error::format(ErrorCode::kNotSupported,
                         "%p and %p are both host memory, which streams do not copy",
                         to_pointer(copy.from), to_pointer(copy.to));
  }
  if (sides.has(MemoryClass::kUnregistered)) {
    US_TRY(runtime.streams().drain(call.stream));
    const WriteNotice notice(runtime);
    return runtime.transfer().copy(copy.to, copy.from, copy.count, call.device());
  }
  Task task(TaskKind::kCopy, call.device());
  task.sides = sides.for_task();
  task.copy = copy;
  return call.submit(task);
}

Result<void> copy_async(void* dst, size_t destMax, const void* src, size_t count,
                        aclrtMemcpyKind kind, aclrtStream stream, Feature feature) {
  if (count == 0) return {};
  US_TRY(check_copy_pointers(dst, src, kind));
  US_TRY_ASSIGN(const StreamCall call, stream_call(feature, stream));
  US_TRY(check_count(count, destMax));
  if (dst == src) return {};
  return queue_copy(call, {to_address(dst), to_address(src), count}, kind);
}

// Queues it for device memory; host memory is set at once, ahead of what is queued.
Result<void> set_on(const StreamCall& call, TaskKind kind, const Fill& fill) {
  Transfer& transfer = call.runtime->transfer();
  if (memory_at(*call.runtime, fill.to).memory_class != MemoryClass::kDevice) {
    if (kind == TaskKind::kSetWords) {
      return transfer.set_words(fill.to, fill.value, fill.count, call.device());
    }
    return transfer.set(fill.to, static_cast<uint8_t>(fill.value), fill.count, call.device());
  }
  Task task(kind, call.device());
  task.fill = fill;
  return call.submit(task);
}

}  // namespace

aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count,
                          aclrtMemcpyKind kind, aclrtStream stream) {
  return guarded(__func__, [&] {
    return copy_async(dst, destMax, src, count, kind, stream, Feature::kAsyncCopy);
  });
}

aclError aclrtMemcpyAsyncWithCondition(void* dst, size_t destMax, const void* src, size_t count,
                                       aclrtMemcpyKind kind, aclrtStream stream) {
  return guarded(__func__, [&] {
    return copy_async(dst, destMax, src, count, kind, stream, Feature::kConditionalCopy);
  });
}

aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count,
                          aclrtStream stream) {
  return guarded(__func__, [&]() -> Result<void> {
    if (count == 0) return {};
    US_TRY(require_pointer(devPtr, "devPtr"));
    US_TRY_ASSIGN(const StreamCall call, stream_call(Feature::kAsyncCopy, stream));
    US_TRY(check_set_count(count, maxCount));
    return set_on(call, TaskKind::kSet, {to_address(devPtr), count, static_cast<uint8_t>(value)});
  });
}

aclError aclrtMemsetD32Async(void* ptr, size_t memSize, uint32_t value, size_t N,
                             aclrtStream stream) {
  return guarded(__func__, [&]() -> Result<void> {
    if (N == 0) return {};
    US_TRY(check_words(ptr, memSize, N));
    US_TRY_ASSIGN(const StreamCall call, stream_call(Feature::kBatchCopy, stream));
    US_TRY(check_words_are_known(*call.runtime, ptr, N));
    return set_on(call, TaskKind::kSetWords, {to_address(ptr), N, value});
  });
}
