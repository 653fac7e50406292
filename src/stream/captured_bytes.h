// SPDX-License-Identifier: Apache-2.0
//
// Bytes that were put aside for a task, so that the program may use theirs again at once. They
// count against the host's budget: a program that queues them faster than they are copied is told
// that memory is short, not ended by the host.
#pragma once

#include <cstdint>
#include <memory>
#include <new>

#include "base/result.h"
#include "memory/host_budget.h"

namespace understudy {

class CapturedBytes {
 public:
  static Result<std::unique_ptr<CapturedBytes>> make(HostBudget& budget, uint64_t size) {
    constexpr auto kSource = HostBudget::Source::kMachine;
    US_TRY(budget.take(size, kSource));
    std::unique_ptr<uint8_t[]> bytes(new (std::nothrow) uint8_t[size]);
    budget.note_committed(size, kSource);
    if (bytes == nullptr) {
      budget.give_back(size);
      return Error::format(ErrorCode::kOutOfMemory, "the host has no memory for a copy of it");
    }
    return std::make_unique<CapturedBytes>(budget, size, std::move(bytes));
  }

  CapturedBytes(HostBudget& budget, uint64_t size, std::unique_ptr<uint8_t[]> bytes)
      : budget_(budget), size_(size), bytes_(std::move(bytes)) {}
  ~CapturedBytes() { budget_.give_back(size_); }
  CapturedBytes(const CapturedBytes&) = delete;
  CapturedBytes& operator=(const CapturedBytes&) = delete;

  uint8_t* data() { return bytes_.get(); }
  uint64_t size() const { return size_; }

 private:
  HostBudget& budget_;
  const uint64_t size_;
  const std::unique_ptr<uint8_t[]> bytes_;
};

}  // namespace understudy
