// SPDX-License-Identifier: Apache-2.0
#include "stream/cache_operations.h"

#include "base/size_text.h"
#include "stream/descriptions.h"

namespace understudy {

Result<void> CacheOperations::check_range(VirtualRange range, unsigned device) const {
  if (classes_.is_memory_of(range, device)) return {};
  return Error::format(ErrorCode::kInvalidParam, "%s at %p are not memory of device %u",
                       SizeText(range.size).c_str(), to_pointer(range.base), device);
}

Result<void> CacheOperations::check_description(VirtualAddress description, unsigned device) const {
  if (classes_.is_memory_of({description, sizeof(RangeDescription)}, device)) return {};
  return Error::format(ErrorCode::kInvalidParam,
                       "cmoDesc %p is not %zu bytes of memory of device %u",
                       to_pointer(description), sizeof(RangeDescription), device);
}

Result<void> CacheOperations::queue(const StreamReference& stream, VirtualRange range) {
  US_TRY(check_range(range, stream.device()));
  return submit(stream, 0);
}

Result<void> CacheOperations::describe(VirtualAddress description, VirtualRange range,
                                       unsigned device) {
  US_TRY(check_description(description, device));
  US_TRY(check_range(range, device));
  const RangeDescription text{.base = range.base, .size = range.size};
  return copies_.copy({description, to_address(&text), sizeof text}, device);
}

Result<void> CacheOperations::queue_described(const StreamReference& stream,
                                              VirtualAddress description) {
  US_TRY(check_description(description, stream.device()));
  return submit(stream, description);
}

Result<void> CacheOperations::submit(const StreamReference& stream, VirtualAddress description) {
  Task task(TaskKind::kMemoryHint, stream.device());
  task.description = description;
  US_TRY(streams_.submit(stream, task));
  return {};
}

}  // namespace understudy
