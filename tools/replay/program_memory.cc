// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/program_memory.h"

#include <sys/mman.h>

#include <iterator>

#include "base/sizes.h"
#include "memory/address_layout.h"

namespace understudy::command {

namespace {

// Only for reservations that wish for it: no other call gives it out.
constexpr uint64_t kNeverGivenOut = kExpectedWindow.end() - kGiB;

uint64_t map(uint64_t size) {
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? 0 : reinterpret_cast<uint64_t>(memory);
}

}  // namespace

ProgramMemory::ProgramMemory(uint64_t host_bytes, bool knows_ranges)
    : host_memory_(map(host_bytes + kNormalPage)), knows_ranges_(knows_ranges) {}

uint64_t ProgramMemory::make(uint64_t size, uint64_t recorded_address) {
  const uint64_t offset = recorded_address % kNormalPage;
  const uint64_t memory = map(size + offset + kNormalPage);
  return memory == 0 ? 0 : memory + offset;
}

void ProgramMemory::note_begin(uint64_t address, uint64_t size) {
  if (!knows_ranges_) return;
  const std::lock_guard lock(mutex_);
  ranges_[address] = size;
}

void ProgramMemory::note_end(uint64_t address) {
  if (!knows_ranges_) return;
  const std::lock_guard lock(mutex_);
  ranges_.erase(address);
}

uint64_t ProgramMemory::ended(uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto next = ranges_.upper_bound(address);
  if (next == ranges_.begin()) return address;
  const auto& [base, size] = *std::prev(next);
  return address - base < size ? kNeverGivenOut : address;
}

}  // namespace understudy::command
