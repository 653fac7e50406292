// SPDX-License-Identifier: Apache-2.0
//
// A server as a viewer sees it that does not take part: for the command and other tools. The ledger
// is read, never mapped, written or locked, so a viewer can disturb nothing and needs no slot. What
// processes change meanwhile shows in the next view.
//
// Plain values; each view is the caller's own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace understudy {

enum class ServerState : uint8_t {
  kLive,          // at least one process uses it
  kAbandoned,     // all its processes have ended
  kAbsent,        // there is no directory, or no ledger in it
  kUnreadable,    // the user may not look
  kOtherVersion,  // of another version of the library
  kDamaged,       // the file is no ledger, or not whole
};

// Bytes by kind of page.
struct PoolBytes {
  uint64_t normal = 0;
  uint64_t huge = 0;

  uint64_t total() const { return normal + huge; }
};

struct DeviceView {
  PoolBytes capacity;
  PoolBytes used;    // by live processes, shared, and by the device when idle
  PoolBytes shared;  // the part of it that processes share
  PoolBytes idle;    // the part of it that no process can have
};

// What one process has of one device.
struct DeviceUseView {
  PoolBytes used;            // without what it shares
  uint64_t peak = 0;         // the most that it had of both kinds at a time
  uint64_t allocations = 0;  // that it ever made
};

// Host memory behind the blocks of a process, by what it is made of, and what it has page-locked.
struct HostMemoryView {
  uint64_t small_pages = 0;
  uint64_t collapsed = 0;  // huge pages without a pool
  uint64_t hugetlb = 0;
  uint64_t page_locked = 0;

  uint64_t behind_blocks() const { return small_pages + collapsed + hugetlb; }
};

struct ProcessView {
  int32_t process = 0;                 // its number, in its own pid namespace
  bool is_of_other_namespace = false;  // the number means nothing here
  std::string soc;
  std::vector<DeviceUseView> devices;
  HostMemoryView host;
  uint32_t streams = 0;
  uint32_t busy_streams = 0;  // with work: ready, running, or waiting for something
  uint32_t exports = 0;       // things that it ever shared
  uint32_t holds = 0;         // shared things that it has

  DeviceUseView all_devices() const;  // the peak is the sum of the devices' peaks
};

struct ServerView {
  ServerState state = ServerState::kAbsent;
  std::string directory;
  std::string explanation;  // one sentence if the server is not live
  // Of a live or abandoned server.
  std::string product;
  std::string soc;  // as the first process says
  uint64_t memory = 0;
  uint64_t normal_memory = 0;
  std::vector<DeviceView> devices;
  std::vector<ProcessView> processes;  // live ones, in the order in which they joined slots
};

ServerView look_at_server(const std::string& directory);

}  // namespace understudy
