// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/recorded_bytes.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "observe/recording_format.h"

namespace understudy::command {

bool BytesCollector::add(uint32_t thread, std::span<const uint64_t> record) {
  const RecordHead head = RecordHead::unpack(record[0]);
  const std::span<const std::byte> content = std::as_bytes(record.subspan(2));
  if (head.value < 0 || static_cast<uint32_t>(head.value) > content.size()) return false;
  if (thread >= pending_.size()) pending_.resize(thread + 1);
  Pending& pending = pending_[thread];
  if (record[1] != pending.begin) pending = {record[1], {}, {}};  // of a call that is not there
  const auto size = static_cast<uint32_t>(head.value);
  if (pending.parts.empty() || pending.parts.back().parameter != head.detail) {
    pending.parts.push_back({0, head.detail, pending.content.size(), 0});
  }
  RecordedBytes& part = pending.parts.back();
  if (part.size + size > kMostPointed) return false;
  part.size += size;
  pending.content.insert(pending.content.end(), content.begin(), content.begin() + size);
  return true;
}

void BytesCollector::attach(uint32_t thread, uint32_t call) {
  if (thread >= pending_.size()) return;
  Pending& pending = pending_[thread];
  if (pending.begin == recording_.calls[call].begin) {
    for (RecordedBytes bytes : pending.parts) {
      bytes.call = call;
      bytes.first += recording_.pointed.size();
      recording_.bytes.push_back(bytes);
    }
    recording_.pointed.insert(recording_.pointed.end(), pending.content.begin(),
                              pending.content.end());
  }
  pending.parts.clear();
  pending.content.clear();
}

void sort_bytes(std::vector<RecordedBytes>& bytes) {
  std::stable_sort(bytes.begin(), bytes.end(), [](const auto& left, const auto& right) {
    return std::tie(left.call, left.parameter) < std::tie(right.call, right.parameter);
  });
}

std::span<const std::byte> Recording::pointed_by(uint32_t call, uint32_t parameter) const {
  const auto found = std::lower_bound(
      bytes.begin(), bytes.end(), std::pair(call, parameter),
      [](const auto& each, const auto& at) { return std::pair(each.call, each.parameter) < at; });
  if (found == bytes.end() || found->call != call || found->parameter != parameter) return {};
  return std::span(pointed).subspan(found->first, found->size);
}

}  // namespace understudy::command
