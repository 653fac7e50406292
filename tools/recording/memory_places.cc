// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/memory_places.h"

#include <map>

namespace understudy::command {

namespace {

constexpr unsigned kAddressBits = 47;
constexpr uint64_t kMostBytes = uint64_t{1} << kAddressBits;
constexpr uint64_t kSubstitutes = uint64_t{1} << 52;
constexpr uint64_t kMostProcesses = kSubstitutes >> kAddressBits;
constexpr uint64_t kEndOfPlaces = uint64_t{1} << 62;

class PlaceTable {
 public:
  // REQUIRES: not more than kMostBytes.
  uint64_t take(uint64_t wanted, uint64_t bytes) {
    if (wanted == kNowhere || !is_free(wanted, bytes)) {
      if (next_substitute_ > kEndOfPlaces - bytes) return kNowhere;
      wanted = next_substitute_;
      next_substitute_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    }
    taken_[wanted] = wanted + bytes;
    return wanted;
  }
  void give_back(uint64_t address) { taken_.erase(address); }

 private:
  static constexpr uint64_t kAlignment = uint64_t{2} << 20;

  bool is_free(uint64_t address, uint64_t bytes) const {
    const auto behind = taken_.lower_bound(address);
    if (behind != taken_.end() && behind->first - address < bytes) return false;
    return behind == taken_.begin() || std::prev(behind)->second <= address;
  }

  std::map<uint64_t, uint64_t> taken_;  // ends by beginnings
  uint64_t next_substitute_ = kSubstitutes;
};

// Where each piece is in its own process, moved to where no other process is.
std::vector<uint64_t> wanted_places(const Recording& recording) {
  const auto moved = [](uint64_t address, uint64_t bytes, uint32_t process) {
    if (process >= kMostProcesses || address > kMostBytes || bytes > kMostBytes - address) {
      return kNowhere;
    }
    return address + (uint64_t{process} << kAddressBits);
  };
  std::vector<uint64_t> wanted(recording.objects.size(), kNowhere);
  const std::vector<uint32_t> blocks = blocks_of_mappings(recording);
  for (uint32_t index = 0; index < recording.objects.size(); ++index) {
    const RecordedObject& object = recording.objects[index];
    if (blocks[index] != kNone) {
      uint64_t& place = wanted[blocks[index]];
      const uint64_t bytes = recording.objects[blocks[index]].taken;
      if (place == kNowhere) place = moved(object.number, bytes, object.process);
    } else if (recording.object_kinds[object.kind] == "allocation") {
      wanted[index] = moved(object.number, object.taken, object.process);
    }
  }
  return wanted;
}

}  // namespace

std::vector<uint64_t> memory_places(const Recording& recording,
                                    const std::vector<DeviceMemoryEvent>& events) {
  std::vector<uint64_t> places = wanted_places(recording);
  std::vector<uint64_t> found(recording.objects.size(), kNowhere);
  PlaceTable table;
  for (const DeviceMemoryEvent& event : events) {
    if (event.action == MemoryAction::kTaken && event.bytes <= kMostBytes) {
      found[event.object] = table.take(places[event.object], event.bytes);
    } else if (event.action == MemoryAction::kGivenBack) {
      table.give_back(found[event.object]);
    }
  }
  return found;
}

}  // namespace understudy::command
