// SPDX-License-Identifier: Apache-2.0
//
// What parameters of calls lead to, from the records that a thread wrote before that of the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tools/recording/recording.h"

namespace understudy::command {

class BytesCollector {
 public:
  // Adds to Recording::bytes and Recording::pointed.
  explicit BytesCollector(Recording& recording) : recording_(recording) {}

  // A record of kPointed. False if it makes no sense.
  bool add(uint32_t thread, std::span<const uint64_t> record);
  // The thread's call was read: what was added belongs to it, if it began then.
  void attach(uint32_t thread, uint32_t call);

 private:
  // What the next call of a thread leads to, which begins at a moment.
  struct Pending {
    uint64_t begin = 0;
    std::vector<RecordedBytes> parts;  // in `content`
    std::vector<std::byte> content;
  };

  Recording& recording_;
  std::vector<Pending> pending_;  // of each thread
};

// By call and parameter, when the calls have their places.
void sort_bytes(std::vector<RecordedBytes>& bytes);

}  // namespace understudy::command
