// SPDX-License-Identifier: Apache-2.0
//
// What an importer asks the process that exported, and what it answers: one message each way, plain
// data of one machine. The connection ends after the answer. docs/sharing.md tells the whole story.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "server/ledger_layout.h"

namespace understudy {

inline constexpr uint32_t kShareProtocol = 0x31537355;

// What a token is of.
enum class ShareSubject : uint32_t { kMemory, kNotify };

struct ShareRequest {
  uint32_t protocol = kShareProtocol;
  uint32_t wants_file = 0;  // the importer has not got it yet
  uint64_t token = 0;
  ShareSubject subject = ShareSubject::kMemory;
  uint32_t reserved = 0;
};

enum class ShareVerdict : uint32_t {
  kGranted,
  kUnknown,    // there is no such share any more
  kNotListed,  // the process is not one that may import
  kBusy,       // no descriptor could be sent
};

// With the descriptors of the backing file and of its states, if it was asked for.
struct ShareAnswer {
  uint32_t protocol = kShareProtocol;
  ShareVerdict verdict = ShareVerdict::kUnknown;
  BackingFileRecord backing;
};

template <typename T>
std::span<std::byte, sizeof(T)> bytes_of(T& message) {
  return std::span<std::byte, sizeof(T)>(reinterpret_cast<std::byte*>(&message), sizeof(T));
}

}  // namespace understudy
