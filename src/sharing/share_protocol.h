// SPDX-License-Identifier: Apache-2.0
//
// What an importer asks the process that exported, and what it answers: one message each way, plain
// data of one machine. The connection ends after the answer. docs/sharing.md tells the whole story.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "device/ledger_layout.h"

namespace understudy {

inline constexpr uint32_t kShareProtocol = 0x31537355;

struct ShareRequest {
  uint32_t protocol = kShareProtocol;
  uint32_t wants_store = 0;  // the importer has not got it yet
  uint64_t token = 0;
};

enum class ShareVerdict : uint32_t {
  kGranted,
  kUnknown,    // there is no such share any more
  kNotListed,  // the process is not one of those who may import
  kBusy,       // no descriptor could be sent
};

// With the descriptors of the store and of its states, if it was asked for.
struct ShareAnswer {
  uint32_t protocol = kShareProtocol;
  ShareVerdict verdict = ShareVerdict::kUnknown;
  StoreRecord store;
};

template <typename T>
std::span<std::byte, sizeof(T)> bytes_of(T& message) {
  return std::span<std::byte, sizeof(T)>(reinterpret_cast<std::byte*>(&message), sizeof(T));
}

}  // namespace understudy
