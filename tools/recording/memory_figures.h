// SPDX-License-Identifier: Apache-2.0
//
// The memory of a recording in figures: of each device, and of each place in the program. Counts as
// memory_series.h does; the host is device -1.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/recording/memory_series.h"
#include "tools/recording/recording.h"

namespace understudy::command {

struct KindMemory {
  uint16_t kind = 0;  // in Recording::object_kinds
  uint64_t objects = 0;
  uint64_t bytes = 0;
};

struct DeviceMemory {
  int32_t device = kHost;
  MemoryPeak peak;
  uint64_t at_end = 0;
  uint64_t allocations = 0;  // objects that took memory
  uint64_t allocated = 0;    // bytes that they took, one after the other
  uint64_t largest = 0;
  std::vector<KindMemory> kinds_at_peak;  // the largest first
  std::vector<KindMemory> kinds_at_end;
  // The largest sums in equal parts of the recording's time.
  std::vector<uint64_t> curve;
};

// What a place in the program made: a stack, or, where none was recorded, calls of a function.
struct PlaceMemory {
  uint32_t stack = kNone;
  uint32_t function = kNone;  // that the place calls
  uint64_t allocations = 0;
  uint64_t allocated = 0;
  uint64_t at_peak = 0;  // on each device at its own peak, in bytes
  uint64_t at_end = 0;
  uint64_t alive = 0;  // objects of any kind at the end, also those without memory
};

struct MemoryFigures {
  std::vector<DeviceMemory> devices;  // the host first
  std::vector<PlaceMemory> places;    // those with most at the peak first
  // Of all objects that are alive at the end.
  uint64_t alive = 0;
  uint64_t alive_bytes = 0;
};

// With so many points in each curve.
MemoryFigures memory_figures(const Recording& recording, size_t points);

}  // namespace understudy::command
