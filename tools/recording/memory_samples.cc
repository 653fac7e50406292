// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/memory_samples.h"

#include <algorithm>
#include <utility>

#include "tools/recording/memory_series.h"

namespace understudy::command {

namespace {

bool has_less(const MemorySample& left, const MemorySample& right) {
  return left.bytes < right.bytes;
}

// A slice of as many samples as its neighbors.
void append_slice(std::vector<MemorySample>& thinned, const MemorySample* begin,
                  const MemorySample* end) {
  const MemorySample* const least = std::min_element(begin, end, has_less);
  const MemorySample* const most = std::max_element(begin, end, has_less);
  thinned.push_back(*std::min(least, most));
  if (least != most) thinned.push_back(*std::max(least, most));
  if (std::max(least, most) != end - 1) thinned.push_back(*(end - 1));
}

std::vector<MemorySample> thin_out(std::vector<MemorySample> samples, size_t most) {
  if (samples.size() <= most) return samples;
  const size_t slice = samples.size() / (std::max<size_t>(most, 3) / 3) + 1;
  std::vector<MemorySample> thinned;
  for (size_t begin = 0; begin < samples.size(); begin += slice) {
    append_slice(thinned, samples.data() + begin,
                 samples.data() + std::min(begin + slice, samples.size()));
  }
  return thinned;
}

}  // namespace

std::map<int32_t, std::vector<MemorySample>> memory_samples(const Recording& recording,
                                                            size_t most) {
  std::map<int32_t, std::vector<MemorySample>> series;
  std::map<int32_t, uint64_t> taken;
  for (const MemoryChange& change : memory_changes(recording)) {
    const RecordedObject& object = recording.objects[change.object];
    uint64_t& sum = taken[object.device];
    sum = change.begins ? sum + object.taken : sum - object.taken;
    std::vector<MemorySample>& samples = series[object.device];
    if (samples.empty()) samples.push_back({0, 0});
    // What begins at a moment comes behind what ends at it: its last sum is its largest.
    if (samples.back().time == change.time) {
      samples.back().bytes = sum;
    } else {
      samples.push_back({change.time, sum});
    }
  }
  for (auto& [device, samples] : series) samples = thin_out(std::move(samples), most);
  return series;
}

}  // namespace understudy::command
