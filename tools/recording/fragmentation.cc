// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/fragmentation.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace understudy::command {

namespace {

constexpr int32_t kMostDevices = 64;  // more than a server has; damaged recordings have any
constexpr size_t kMostRegions = 48;
constexpr uint64_t kNearest = uint64_t{2} << 20;

struct Region {
  uint64_t begin;
  uint64_t end;
};

uint64_t end_of(const RecordedObject& object) {
  return object.size > UINT64_MAX - object.number ? UINT64_MAX : object.number + object.size;
}

double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// What an object is here.
enum class Role : uint8_t {
  kNone,
  kReservation,
  kMapping,
  kAllocation,
  kBlock,
  kHostBlock,
  kRegistration,
};

Role role_of(std::string_view kind) {
  if (kind == "reservation") return Role::kReservation;
  if (kind == "mapping") return Role::kMapping;
  if (kind == "allocation") return Role::kAllocation;
  if (kind == "physical block") return Role::kBlock;
  if (kind == "host block") return Role::kHostBlock;
  if (kind == "registration") return Role::kRegistration;
  return Role::kNone;
}

// The objects of a process on a device that matter here, by positions in Recording::objects: those
// that are alive at one of the moments.
struct AddressSpace {
  std::vector<uint32_t> reservations;
  std::vector<uint32_t> mappings;
  std::vector<uint32_t> allocations;  // in the order of their addresses
  std::vector<uint32_t> blocks;
  // Addresses that were ever used, by their beginnings: most are used again and again.
  std::unordered_map<uint64_t, uint64_t> used;
  std::vector<Region> regions;
  uint64_t peak = 0;  // when the memory of the device was at its peak
};

using AddressSpaces = std::map<std::pair<uint32_t, int32_t>, AddressSpace>;

std::vector<Region> join_near(const std::vector<Region>& parts, uint64_t gap) {
  std::vector<Region> joined;
  for (const Region& part : parts) {
    if (!joined.empty() && part.begin - joined.back().end <= gap) {
      joined.back().end = part.end;
    } else {
      joined.push_back(part);
    }
  }
  return joined;
}

// Sorted, and joined where they touch.
std::vector<Region> join_touching(const std::unordered_map<uint64_t, uint64_t>& used) {
  std::vector<Region> parts;
  parts.reserve(used.size());
  for (const auto& [begin, end] : used) parts.push_back({begin, end});
  std::sort(parts.begin(), parts.end(),
            [](const Region& left, const Region& right) { return left.begin < right.begin; });
  std::vector<Region> joined;
  for (const Region& part : parts) {
    if (!joined.empty() && part.begin <= joined.back().end) {
      joined.back().end = std::max(joined.back().end, part.end);
    } else {
      joined.push_back(part);
    }
  }
  return joined;
}

// Gaps that separate regions are as small as the number of regions allows.
std::vector<Region> find_regions(const std::unordered_map<uint64_t, uint64_t>& used) {
  const std::vector<Region> parts = join_touching(used);
  uint64_t gap = kNearest;
  std::vector<Region> regions = join_near(parts, gap);
  while (regions.size() > kMostRegions && gap < UINT64_MAX / 4) {
    gap *= 4;
    regions = join_near(parts, gap);
  }
  return regions;
}

class FragmentationProbe {
 public:
  FragmentationProbe(const Recording& recording, const MemoryFigures& memory);

  const AddressSpaces& spaces() const { return spaces_; }
  Fragmentation at(const AddressSpace& space, uint64_t time) const;

 private:
  void add(uint32_t index);
  void add_to(AddressSpace& space, uint32_t index, Role role) const;
  AddressSpace& space(uint32_t process, int32_t device);
  void add_holes(Fragmentation& found, const AddressSpace& space, uint64_t time) const;
  bool is_alive(uint32_t object, uint64_t time) const {
    return recording_.objects[object].begin <= time && recording_.objects[object].end > time;
  }

  const Recording& recording_;
  std::vector<Role> roles_;  // of the kinds
  std::map<int32_t, uint64_t> peaks_;
  AddressSpaces spaces_;
  std::pair<uint32_t, int32_t> last_key_{kNone, kHost};
  AddressSpace* last_space_ = nullptr;
  std::map<uint32_t, std::vector<uint32_t>> reservations_of_no_device_;  // by process
};

FragmentationProbe::FragmentationProbe(const Recording& recording, const MemoryFigures& memory)
    : recording_(recording) {
  for (const std::string& kind : recording.object_kinds) roles_.push_back(role_of(kind));
  for (const DeviceMemory& device : memory.devices) peaks_[device.device] = device.peak.time;
  for (uint32_t index = 0; index < recording.objects.size(); ++index) add(index);
  for (auto& [key, space] : spaces_) {
    for (const uint32_t index : reservations_of_no_device_[key.first]) {
      add_to(space, index, Role::kReservation);
    }
    std::stable_sort(space.allocations.begin(), space.allocations.end(),
                     [&](uint32_t left, uint32_t right) {
                       return recording_.objects[left].number < recording_.objects[right].number;
                     });
    space.regions = find_regions(space.used);
  }
}

AddressSpace& FragmentationProbe::space(uint32_t process, int32_t device) {
  const std::pair key(process, device);
  if (last_space_ == nullptr || key != last_key_) {
    last_key_ = key;
    last_space_ = &spaces_[key];
    last_space_->peak = peaks_[device];
  }
  return *last_space_;
}

void FragmentationProbe::add(uint32_t index) {
  const RecordedObject& object = recording_.objects[index];
  if (object.size == 0 || object.device < kHost || object.device >= kMostDevices) return;
  const Role role = roles_[object.kind];
  const bool is_of_host = role == Role::kHostBlock || role == Role::kRegistration;
  if (role == Role::kNone || (is_of_host && object.device != kHost)) return;
  if (role == Role::kReservation && object.device == kHost) {
    reservations_of_no_device_[object.process].push_back(index);
    return;
  }
  add_to(space(object.process, object.device), index, role);
}

void FragmentationProbe::add_to(AddressSpace& space, uint32_t index, Role role) const {
  const RecordedObject& object = recording_.objects[index];
  if (role != Role::kBlock) {
    uint64_t& end = space.used[object.number];
    end = std::max(end, end_of(object));
  }
  if (!is_alive(index, space.peak) && object.end != kStillAlive) return;
  switch (role) {
    case Role::kReservation:
      return space.reservations.push_back(index);
    case Role::kMapping:
      return space.mappings.push_back(index);
    case Role::kBlock:
      return space.blocks.push_back(index);
    case Role::kAllocation:
    case Role::kHostBlock:
      return space.allocations.push_back(index);
    case Role::kRegistration:
    case Role::kNone:
      return;  // only part of regions
  }
}

void FragmentationProbe::add_holes(Fragmentation& found, const AddressSpace& space,
                                   uint64_t time) const {
  size_t region = 0;
  uint64_t end = 0;  // of the allocations so far, in this region
  bool is_first = true;
  for (const uint32_t index : space.allocations) {
    if (!is_alive(index, time)) continue;
    const RecordedObject& object = recording_.objects[index];
    while (region < space.regions.size() && space.regions[region].end <= object.number) {
      ++region;
      is_first = true;
    }
    if (!is_first && object.number > end) {
      const uint64_t hole = object.number - end;
      found.holes += hole;
      ++found.hole_count;
      found.largest_hole = std::max(found.largest_hole, hole);
    }
    end = is_first ? end_of(object) : std::max(end, end_of(object));
    is_first = false;
    found.allocated += object.size;
  }
}

Fragmentation FragmentationProbe::at(const AddressSpace& space, uint64_t time) const {
  Fragmentation found;
  for (const uint32_t index : space.reservations) {
    if (is_alive(index, time)) found.reserved += recording_.objects[index].size;
  }
  std::unordered_set<uint64_t> mapped_blocks;
  for (const uint32_t index : space.mappings) {
    if (!is_alive(index, time)) continue;
    found.mapped += recording_.objects[index].size;
    mapped_blocks.insert(recording_.objects[index].part_of);
  }
  for (const uint32_t index : space.blocks) {
    if (!is_alive(index, time)) continue;
    const RecordedObject& block = recording_.objects[index];
    found.physical += block.taken;
    if (!mapped_blocks.contains(block.number)) found.idle += block.taken;
  }
  add_holes(found, space, time);
  return found;
}

}  // namespace

double Fragmentation::unmapped_share() const {
  return reserved > mapped ? share(reserved - mapped, reserved) : 0;
}
double Fragmentation::hole_share() const { return share(holes, holes + allocated); }
double Fragmentation::idle_share() const { return share(idle, physical); }

std::vector<ProcessFragmentation> fragmentation_figures(const Recording& recording,
                                                        const MemoryFigures& memory) {
  const FragmentationProbe probe(recording, memory);
  std::vector<ProcessFragmentation> figures;
  for (const auto& [key, space] : probe.spaces()) {
    figures.push_back({.process = key.first,
                       .device = key.second,
                       .at_peak = probe.at(space, space.peak),
                       .at_end = probe.at(space, kStillAlive - 1)});
  }
  return figures;
}

}  // namespace understudy::command
