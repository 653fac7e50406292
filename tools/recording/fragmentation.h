// SPDX-License-Identifier: Apache-2.0
//
// How broken up the addresses of a process on a device are at a moment. The page shows the same
// figures (page/src/data/fragmentation.ts):
// - of the addresses that are reserved, how many have nothing mapped behind them;
// - between living allocations of one region, how much is free (holes), and the largest hole.
//   Objects that touch, or are near each other, share a region for the whole recording;
// and besides, of the physical memory, how much is mapped nowhere.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/recording/memory_figures.h"
#include "tools/recording/recording.h"

namespace understudy::command {

struct Fragmentation {
  uint64_t reserved = 0;  // bytes of addresses
  uint64_t mapped = 0;    // of them
  uint64_t allocated = 0;
  uint64_t holes = 0;
  uint64_t hole_count = 0;
  uint64_t largest_hole = 0;
  uint64_t physical = 0;  // bytes in physical blocks
  uint64_t idle = 0;      // of them, mapped nowhere

  double unmapped_share() const;  // of what is reserved; 0 if nothing is
  double hole_share() const;      // of allocations with the holes between them
  double idle_share() const;
};

struct ProcessFragmentation {
  uint32_t process = 0;
  int32_t device = kHost;
  Fragmentation at_peak;  // of the device's memory
  Fragmentation at_end;
};

// Of each process on each device where it had addresses or blocks.
std::vector<ProcessFragmentation> fragmentation_figures(const Recording& recording,
                                                        const MemoryFigures& memory);

}  // namespace understudy::command
