// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/recorded_lives.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "tools/recording/stable_places.h"

namespace understudy::command {

namespace {

// An object of a process, or a group of objects of one kind.
struct LifeKey {
  uint64_t number;
  uint32_t process;
  uint16_t kind;
  bool operator==(const LifeKey&) const = default;
};

struct LifeKeyHash {
  size_t operator()(const LifeKey& key) const {
    uint64_t mixed = key.number ^ (uint64_t{key.process} << 48) ^ (uint64_t{key.kind} << 40);
    mixed *= 0x9e3779b97f4a7c15;
    return static_cast<size_t>(mixed ^ (mixed >> 29));
  }
};

class LifeMatcher {
 public:
  explicit LifeMatcher(std::vector<RecordedObject>& objects) : objects_(objects) {}

  void begin(const ObjectRecord& record);
  void add_handle(const ObjectRecord& record);
  void end(const ObjectRecord& record);
  void end_all(const ObjectRecord& record);
  uint64_t unmatched() const { return unmatched_; }

 private:
  struct Living {
    uint32_t object;
    uint32_t handles;  // 0: it has ended with its group, and may be said to end once more
  };
  // Positions of objects; those that have ended stay until the group ends.
  using Groups = std::unordered_map<LifeKey, std::vector<uint32_t>, LifeKeyHash>;

  void finish(uint32_t object, const ObjectRecord& record, bool unasked);

  std::vector<RecordedObject>& objects_;
  std::unordered_map<LifeKey, Living, LifeKeyHash> living_;
  Groups by_device_;
  Groups by_whole_;
  uint64_t unmatched_ = 0;
};

void LifeMatcher::finish(uint32_t object, const ObjectRecord& record, bool unasked) {
  RecordedObject& ended = objects_[object];
  ended.end = std::max(record.tick, ended.begin);
  ended.end_call = record.call;
  ended.ended_unasked = unasked;
}

void LifeMatcher::begin(const ObjectRecord& record) {
  RecordedObject object;
  object.kind = record.kind;
  object.device = record.value;
  object.process = record.process;
  object.stack = static_cast<uint32_t>(std::min<uint64_t>(record.stack, UINT32_MAX));
  object.begin_call = record.call;
  object.number = record.number;
  object.size = record.size;
  object.taken = record.taken;
  object.part_of = record.part_of;
  object.begin = record.tick;
  const auto position = static_cast<uint32_t>(objects_.size());
  objects_.push_back(object);
  const auto [found, is_new] =
      living_.try_emplace({record.number, record.process, record.kind}, Living{position, 1});
  if (!is_new) {
    // Its end was lost.
    if (found->second.handles != 0) finish(found->second.object, record, true);
    found->second = {position, 1};
  }
  const auto device = static_cast<uint32_t>(record.value);
  by_device_[{device, record.process, record.kind}].push_back(position);
  if (record.part_of != 0) {
    by_whole_[{record.part_of, record.process, record.kind}].push_back(position);
  }
}

void LifeMatcher::add_handle(const ObjectRecord& record) {
  const auto found = living_.find({record.number, record.process, record.kind});
  if (found != living_.end() && found->second.handles != 0) ++found->second.handles;
}

void LifeMatcher::end(const ObjectRecord& record) {
  const auto found = living_.find({record.number, record.process, record.kind});
  if (found == living_.end()) {
    ++unmatched_;
    return;
  }
  if (found->second.handles > 1) {
    --found->second.handles;
    return;
  }
  if (found->second.handles == 1) finish(found->second.object, record, record.value == 1);
  living_.erase(found);
}

void LifeMatcher::end_all(const ObjectRecord& record) {
  const bool is_whole = record.number != 0;
  Groups& groups = is_whole ? by_whole_ : by_device_;
  const uint64_t name = is_whole ? record.number : static_cast<uint32_t>(record.value);
  const auto group = groups.find({name, record.process, record.kind});
  if (group == groups.end()) return;
  // Taken out as a whole: a file of nothing but these records is read as fast as any.
  const std::vector<uint32_t> members = std::exchange(group->second, {});
  for (const uint32_t member : members) {
    if (objects_[member].end != kStillAlive) continue;
    finish(member, record, true);
    const auto found = living_.find({objects_[member].number, record.process, record.kind});
    if (found != living_.end()) found->second.handles = 0;
  }
}

}  // namespace

uint64_t match_lives(std::vector<ObjectRecord>& records, std::vector<RecordedObject>& objects) {
  // The records of one thread stay in their order.
  const auto is_before = [](const ObjectRecord& left, const ObjectRecord& right) {
    return left.tick < right.tick;
  };
  if (!std::is_sorted(records.begin(), records.end(), is_before)) {
    sort_with_places(records, is_before);
  }
  LifeMatcher matcher(objects);
  for (const ObjectRecord& record : records) {
    switch (record.record) {
      case RecordKind::kObjectBegin:
        matcher.begin(record);
        break;
      case RecordKind::kObjectHandle:
        matcher.add_handle(record);
        break;
      case RecordKind::kObjectEnd:
        matcher.end(record);
        break;
      default:
        matcher.end_all(record);
        break;
    }
  }
  return matcher.unmatched();
}

}  // namespace understudy::command
