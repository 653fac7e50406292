// SPDX-License-Identifier: Apache-2.0
#include "stream/queued_batches.h"

#include <algorithm>
#include <new>

namespace understudy {

void QueuedBatches::add(const Stream& stream) noexcept {
  const uint64_t position = stream.submitted.load() + 1;
  if (!batches_.empty() && batches_.back().stream == &stream) {
    batches_.back().last = position;
    return;
  }
  if (batches_.size() >= most_) forget_done();
  try {
    batches_.push_back({&stream, position});
  } catch (const std::bad_alloc&) {
    // Then they count as queued with those before them.
  }
}

// As many as are left come before the next time, so that each batch is looked at twice, about.
void QueuedBatches::forget_done() noexcept {
  std::erase_if(batches_, [](const Batch& batch) { return batch.is_over(); });
  most_ = std::max(kFewBatches, 2 * batches_.size());
}

bool QueuedBatches::overtakes(const Stream& stream) noexcept {
  while (!batches_.empty() && batches_.front().is_over()) batches_.pop_front();
  return !batches_.empty() && batches_.front().stream != &stream;
}

bool QueuedBatches::is_before(const Stream& stream, const Stream& other) const {
  for (const Batch& batch : batches_) {
    if (batch.is_over()) continue;
    if (batch.stream == &stream) return true;
    if (batch.stream == &other) return false;
  }
  return stream.index < other.index;
}

}  // namespace understudy
