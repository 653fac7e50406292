// SPDX-License-Identifier: Apache-2.0
//
// A process that is held, backed up and restored (SNAP). It is in one of three states:
//
//   running   -- lock -->    locked     calls that change what the process has wait (CallGate)
//   locked    -- backup -->  backed up  its streams are empty, its capacity is given back
//   backed up -- restore --> locked     its capacity is taken again
//   locked, backed up -- unlock --> running
//
// A backup moves no bytes: device memory is host memory here, in files of this process, and stays
// in them at the same place. What moves is the charge in the ledger (Capacity::set_aside), which
// decides how much others can have. docs/snapshot.md tells why nothing more is needed.
//
// Any thread may call anything; calls are carried out one after the other. Functions of the program
// run on the calling thread without a lock. One of them may not lock, back up or restore itself,
// except at the last stage, when the call it is part of has done its work.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "device/settings.h"
#include "runtime/devices.h"
#include "runtime/stage_callbacks.h"
#include "server/capacity.h"
#include "stream/streams.h"

namespace understudy {

class Snapshot {
 public:
  Snapshot(const Settings& settings, Capacity& capacity, Streams& streams, Devices& devices)
      : settings_(settings), capacity_(capacity), streams_(streams), devices_(devices) {}

  Result<void> lock();
  Result<void> backup();
  Result<void> restore();
  Result<void> unlock();
  StageCallbacks& callbacks() { return callbacks_; }

  // The process ends: its calls are let go. What it had set aside it does not need any more.
  void end_with_process();

 private:
  enum class State : uint8_t { kRunning, kLocked, kBackedUp };

  // One call at a time, whichever thread makes it.
  class Turn;

  Result<void> require(State expected, ErrorCode refusal) const;
  Result<void> run_callbacks(SnapshotStage stage);
  Result<void> call(SnapshotStage stage, const StageCallbacks::Entry& entry, unsigned device);
  Result<void> bring_back(ErrorCode failure);

  const Settings& settings_;
  Capacity& capacity_;
  Streams& streams_;
  Devices& devices_;
  StageCallbacks callbacks_;
  std::atomic<uint32_t> turn_{0};  // the thread that has it, 0 for none
  std::atomic<State> state_{State::kRunning};
  // Of the thread that has the turn: the stage whose functions it calls.
  std::optional<SnapshotStage> stage_;
};

}  // namespace understudy
