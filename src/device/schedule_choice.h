// SPDX-License-Identifier: Apache-2.0
//
// In which order tasks of different streams run, where a program wants to see another one (key
// `schedule`). Written as
//
//   seed=N[,slow=STREAM:FACTORx...]
//
// N chooses the order: 0 the one in which tasks are queued, any other number one that is drawn.
// STREAM is the number of a stream, and FACTOR says how much less often than others it is chosen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace understudy {

struct SlowStream {
  uint32_t stream;
  uint32_t factor;

  friend bool operator==(const SlowStream&, const SlowStream&) = default;
};

struct ScheduleChoice {
  std::string text;  // as it was written
  uint64_t seed = 0;
  std::vector<SlowStream> slow;

  // Streams do not compete then, and none is slow.
  bool is_as_queued() const { return seed == 0; }
};

// Nothing if there is no text. The error says what is wrong with which part.
Result<std::optional<ScheduleChoice>> parse_schedule(std::string_view text);

}  // namespace understudy
