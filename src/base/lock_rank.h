// SPDX-License-Identifier: Apache-2.0
//
// The order in which locks may be taken, top to bottom: a thread that holds a lock takes only locks
// further down. Builds with US_CHECK_INVARIANTS stop at the first violation. docs/locking.md tells
// what each lock protects.
#pragma once

#include <cstdint>

namespace understudy {

enum class LockRank : uint8_t {
  kInitialization,    // aclInit and aclFinalize, with the callbacks they run
  kDeviceUse,         // set and reset of devices, contexts, remembered limits
  kStreamRegistry,    // how many streams and events there are, what is remembered for them
  kEvent,             // what one event was recorded on
  kStreamQueue,       // the queue of one stream, for those who add to it
  kWaiting,           // who waits for which stream to get how far
  kReports,           // callbacks on their way to the threads that run them
  kScheduler,         // streams that have work, and the threads that do it
  kStreamFailure,     // what went wrong on one stream
  kSharedEvents,      // which events of other processes are in use here
  kArenaGrowth,       // one thread at a time reserves addresses for allocations
  kReservationIndex,  // which address ranges are reserved
  kReservation,       // the mappings of one reservation
  kLimbo,             // mappings that a reader still holds after their end
  kRelief,            // one thread at a time gives cached memory back
  kSharing,           // what this process exports and imports
  kForeignStores,     // stores of other processes
  kAttendant,         // whom the attendant waits for
  kOwnStores,         // which stores other processes may need
  kWhitelist,         // who may import what
  kIpcKeys,           // which addresses keys were imported at
  kSlabs,             // small allocations, one lock per shard
  kPinnedMemory,      // cached and registered memory of the host
  kArena,             // free addresses for allocations
  kStorageSet,        // the storages of NUMA nodes
  kStorage,           // the free extents of one device's stores
  kRecycledExtents,   // recently freed extents, one lock per shard
  kHostBudget,        // how much host memory may still be taken
  kObjectPool,        // free slots for blocks, mappings and reservations
  kDataBuffers,       // which data buffers there are
  kCallbacks,         // lists of registered callbacks
  kErrorLog,          // texts for aclGetRecentErrMsg in per-process mode
};

}  // namespace understudy
