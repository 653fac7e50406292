// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/memory_figures.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

namespace understudy::command {

namespace {

using Devices = std::map<int32_t, DeviceMemory>;
using KindSums = std::map<std::pair<int32_t, uint16_t>, KindMemory>;  // by device and kind

// Draws the curve of a device, whose memory is constant between its changes.
class CurveWriter {
 public:
  CurveWriter(std::vector<uint64_t>& curve, size_t points, uint64_t duration)
      : curve_(curve), width_(static_cast<double>(duration) / static_cast<double>(points)) {
    curve_.assign(points, 0);
  }

  // From now on it is so much.
  void change(uint64_t time, uint64_t bytes) {
    advance(point_of(time));
    bytes_ = bytes;
    curve_[point_] = std::max(curve_[point_], bytes_);
  }
  void finish() { advance(curve_.size() - 1); }

 private:
  size_t point_of(uint64_t time) const {
    const double point = width_ > 0 ? static_cast<double>(time) / width_ : 0;
    const auto last = static_cast<double>(curve_.size() - 1);
    return static_cast<size_t>(std::min(point, last));
  }
  void advance(size_t point) {
    while (point_ < point) curve_[++point_] = bytes_;
  }

  std::vector<uint64_t>& curve_;
  double width_;
  size_t point_ = 0;
  uint64_t bytes_ = 0;
};

void write_series(const Recording& recording, size_t points, Devices& devices) {
  std::map<int32_t, CurveWriter> writers;
  for (const MemoryChange& change : memory_changes(recording)) {
    const RecordedObject& object = recording.objects[change.object];
    DeviceMemory& device = devices[object.device];
    const auto [writer, is_new] =
        writers.try_emplace(object.device, device.curve, points, recording.duration);
    device.at_end += change.begins ? object.taken : -object.taken;
    writer->second.change(change.time, device.at_end);
    if (device.at_end > device.peak.bytes) device.peak = {device.at_end, change.time};
  }
  for (auto& [device, writer] : writers) writer.finish();
}

bool is_alive_at(const RecordedObject& object, uint64_t time) {
  return object.begin <= time && object.end > time;
}

void add_to(KindSums& sums, const RecordedObject& object) {
  KindMemory& sum = sums[{object.device, object.kind}];
  sum.kind = object.kind;
  ++sum.objects;
  sum.bytes += object.taken;
}

std::vector<KindMemory> kinds_of(const KindSums& sums, int32_t device) {
  std::vector<KindMemory> kinds;
  for (auto sum = sums.lower_bound({device, 0}); sum != sums.end(); ++sum) {
    if (sum->first.first != device) break;
    kinds.push_back(sum->second);
  }
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const auto& left, const auto& right) { return left.bytes > right.bytes; });
  return kinds;
}

uint32_t function_of(const Recording& recording, const RecordedObject& object) {
  return object.begin_call == kNone ? kNone : recording.calls[object.begin_call].function;
}

class MemoryCounter {
 public:
  MemoryCounter(const Recording& recording, size_t points) : recording_(recording) {
    write_series(recording, points, devices_);
  }

  void count(const RecordedObject& object);
  MemoryFigures figures() &&;

 private:
  PlaceMemory& place_of(const RecordedObject& object);

  const Recording& recording_;
  Devices devices_;
  KindSums at_peak_;
  KindSums at_end_;
  std::unordered_map<uint64_t, PlaceMemory> places_;
  uint64_t alive_ = 0;
  uint64_t alive_bytes_ = 0;
};

PlaceMemory& MemoryCounter::place_of(const RecordedObject& object) {
  const uint32_t function = function_of(recording_, object);
  const bool has_stack = object.stack != kNone;
  const uint64_t key = has_stack ? object.stack : uint64_t{function} << 32 | kNone;
  const auto [place, is_new] = places_.try_emplace(key);
  if (is_new) {
    place->second.stack = object.stack;
    place->second.function = function;
  }
  return place->second;
}

void MemoryCounter::count(const RecordedObject& object) {
  const bool is_alive = object.end == kStillAlive;
  if (!is_alive && object.taken == 0) return;
  PlaceMemory& place = place_of(object);
  if (is_alive) {
    ++alive_;
    ++place.alive;
    alive_bytes_ += object.taken;
    place.at_end += object.taken;
  }
  if (object.taken == 0) return;
  DeviceMemory& device = devices_[object.device];
  ++device.allocations;
  device.allocated += object.taken;
  device.largest = std::max(device.largest, object.taken);
  ++place.allocations;
  place.allocated += object.taken;
  if (is_alive) add_to(at_end_, object);
  if (is_alive_at(object, device.peak.time)) {
    add_to(at_peak_, object);
    place.at_peak += object.taken;
  }
}

MemoryFigures MemoryCounter::figures() && {
  MemoryFigures figures;
  for (auto& [number, device] : devices_) {
    device.device = number;
    device.kinds_at_peak = kinds_of(at_peak_, number);
    device.kinds_at_end = kinds_of(at_end_, number);
    figures.devices.push_back(std::move(device));
  }
  for (const auto& [key, place] : places_) figures.places.push_back(place);
  std::sort(figures.places.begin(), figures.places.end(), [](const auto& left, const auto& right) {
    return std::tie(right.at_peak, right.at_end, right.allocated, left.stack, left.function) <
           std::tie(left.at_peak, left.at_end, left.allocated, right.stack, right.function);
  });
  figures.alive = alive_;
  figures.alive_bytes = alive_bytes_;
  return figures;
}

}  // namespace

MemoryFigures memory_figures(const Recording& recording, size_t points) {
  MemoryCounter counter(recording, points);
  for (const RecordedObject& object : recording.objects) counter.count(object);
  return std::move(counter).figures();
}

}  // namespace understudy::command
