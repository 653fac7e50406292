// SPDX-License-Identifier: Apache-2.0
//
// What went wrong: a kind, and one exact sentence for the person who has to fix it. An Error is a
// plain value without heap memory, so that it can report that there is no memory. The number a
// caller sees for each kind is chosen in capi/error_translation.cc and nowhere else. What makes an
// Error is cold: the code around it is laid out for calls that succeed.
#pragma once

#include <cstdarg>
#include <cstdint>

namespace understudy {

enum class ErrorCode : uint8_t {
  // Arguments as the outer layer checks them, at the entry point (100000).
  kInvalidArgument,
  kInvalidFile,
  kAlreadyInitialized,
  kAlreadyFinalized,
  kFlagsNotSupported,
  kCallbackRefused,
  // Arguments and the state of objects as the inner layer, the runtime, checks them (107000).
  kInvalidParam,
  kInvalidDevice,
  kNoContext,
  kInvalidMemoryType,
  kInvalidHandle,
  kInvalidSymbol,
  kOptionNotSet,
  kOtherContext,
  // Streams, events and callbacks as the runtime finds them.
  kNoTimestamp,
  kTimesReversed,
  kStreamSubscription,
  kThreadSubscription,
  kNoCallbackThread,
  kTaskTimeout,
  kWaitTimeout,
  kDeviceAborted,
  kStreamAborted,
  // What the product, the machine or its memory cannot give.
  kNotSupported,
  kNotInProduct,  // by the chosen product or its driver; another one has it
  kNoPermission,
  kOutOfMemory,
  kOutOfResources,
  kLinkNotSupported,
  kConnection,  // another process does not answer
  kOutOfEvents,
  kOutOfNotifies,
  kOutOfStreams,
  kPoolUnable,  // a pool that ended, or that cannot do what it is asked for
  // Devices that were not set, host memory and its registrations, our own faults.
  kDeviceNotSet,
  kAlreadyRegistered,
  kNotRegistered,
  kInternal,
  // Work on streams that went wrong or did not come to an end in time.
  kNeverRecorded,
  kQueueFull,
  kReportTimeout,
  kCopyFault,
  kStreamTimeout,
  kEventTimeout,
  // The process as a whole: its lock, and the backup of its memory.
  kLockTimeout,
  kLockRefused,
  kUnlockRefused,
  kBackupFailed,
  kRestoreFailed,
  kSnapshotCallback,
  kCallbackRegistered,
};

class Error {
 public:
  // Longer sentences are cut; the ones written in this project are not.
  static constexpr unsigned kMaxText = 320;

  [[gnu::cold, gnu::format(printf, 2, 3)]] static Error format(ErrorCode code, const char* format,
                                                               ...);
  // The same with the number the operating system gave for it.
  [[gnu::cold, gnu::format(printf, 3, 4)]] static Error system(ErrorCode code, int system_number,
                                                               const char* format, ...);

  ErrorCode code() const { return code_; }
  const char* text() const { return text_; }
  // errno of the failed system call, 0 if there was none.
  int system_number() const { return system_number_; }

  // The same fault seen by a caller who knows better what it means.
  [[gnu::cold]] Error as(ErrorCode code) const;

  // The number that the sentence is about, a handle or an address; 0: none. Checks look for the
  // object that it is or was.
  uint64_t subject() const { return subject_; }
  Error about(uint64_t subject) const;

 private:
  Error(ErrorCode code, int system_number, const char* format, va_list arguments);

  ErrorCode code_;
  int system_number_;
  uint64_t subject_ = 0;
  char text_[kMaxText];
};

}  // namespace understudy
