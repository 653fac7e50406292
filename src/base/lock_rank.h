// SPDX-License-Identifier: Apache-2.0
//
// The order in which locks may be taken, top to bottom: a thread that holds a lock takes only locks
// further down. Builds with US_CHECK_INVARIANTS stop at the first violation. docs/locking.md tells
// what each lock protects.
#pragma once

#include <cstdint>

namespace understudy {

enum class LockRank : uint8_t {
  kInitialization,        // aclInit and aclFinalize, with the callbacks they run
  kDeviceUse,             // set and reset of devices, contexts, remembered limits
  kStreamRegistry,        // how many streams and events there are, what is remembered for them
  kMemoryPool,            // the ranges and attributes of one stream-ordered pool
  kEvent,                 // what one event was recorded on
  kNotify,                // the number of one notify, and who uses it
  kStreamOrder,           // which streams come behind which tasks of others
  kStreamQueue,           // the end of one stream's queue, where tasks are added
  kWaitGraph,             // who waits for which stream to get how far
  kReports,               // callbacks on their way to the threads that run them
  kRunQueue,              // streams that have work, and the threads that do it
  kStreamFailure,         // what went wrong on one stream
  kReduction,             // one thread at a time combines elements
  kSharedLinks,           // which things of other processes are in use here
  kArenaGrowth,           // one thread at a time reserves addresses for allocations
  kReservationIndex,      // which address ranges are reserved
  kReservation,           // the mappings of one reservation
  kRetireList,            // mappings that a reader still holds after their end
  kRelief,                // one thread at a time gives cached memory back
  kExporter,              // what this process exports
  kImporter,              // what this process imports
  kRemoteBackingFiles,    // backing files of other processes
  kShareServer,           // whom the share server waits for
  kExportedBackingFiles,  // which backing files other processes may need
  kWhitelist,             // who may import what
  kIpcKeys,               // which addresses keys were imported at
  kReleaseQueue,          // holds on shares, and those that are to be given up
  kSlabs,                 // small allocations, one lock per shard
  kManagedMemory,         // managed memory: what was advised, what is committed
  kPinnedMemory,          // cached and registered memory of the host
  kArena,                 // free addresses for allocations
  kBackingPools,          // the extent allocators of NUMA nodes
  kExtentAllocator,       // the free extents of one device's backing files
  kRecycledExtents,       // recently freed extents, one lock per shard
  kHostBudget,            // how much host memory may still be taken
  kPageAccount,           // one thread at a time asks for pages of a pool
  kLedger,                // of all processes: the tables of the server's ledger
  kObjectPool,            // free slots for blocks, mappings and reservations
  kDataBuffers,           // which data buffers there are
  kKernelLimits,          // sizes that kernels get
  kAllocators,            // custom allocators, and which streams have one
  kCallbacks,             // lists of registered callbacks
  kErrorLog,              // texts for aclGetRecentErrMsg in per-process mode
  kFindings,              // what checks found
  kOrder,                 // which uses of memory come behind which, for checks
  kQueuedPlaces,          // where the program queued tasks, for checks
  kUnwrittenMemory,       // which bytes of devices were never written, for checks
  kHistory,               // the lives of objects, for checks
  kAdvice,                // what advice remembers of threads and of places that allocate
  kDebugInformation,      // reading the program's debug information, which no fork comes between
  kRecording,             // what a recording's numbers stand for, and chunks without a thread
};
inline constexpr unsigned kLockRanks = static_cast<unsigned>(LockRank::kRecording) + 1;

}  // namespace understudy
