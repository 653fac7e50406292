// SPDX-License-Identifier: Apache-2.0
#include "stream/seeded_order.h"

#include <array>

namespace understudy {

namespace {

// What the numbers that are made of a seed are for.
enum class Purpose : uint8_t { kWeight, kQuery };

// A number in which every bit depends on every bit of the given one: a step of SplitMix64.
uint64_t mixed(uint64_t number) {
  number += 0x9E3779B97F4A7C15;
  number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9;
  number = (number ^ number >> 27) * 0x94D049BB133111EB;
  return number ^ number >> 31;
}

uint64_t drawn(uint64_t seed, Purpose purpose, uint64_t moment, uint64_t stream = 0) {
  return mixed(mixed(mixed(mixed(seed) + static_cast<uint64_t>(purpose)) + moment) + stream);
}

// Seeds in a row have all of them.
uint64_t length_of_stretch(uint64_t seed) {
  constexpr std::array<uint64_t, 4> kLengths = {64, 1, 4, 16};
  return kLengths[seed % kLengths.size()];
}

}  // namespace

SeededOrder::SeededOrder(const ScheduleChoice& choice)
    : seed_(choice.seed), stretch_(length_of_stretch(choice.seed)), slow_(choice.slow) {}

double SeededOrder::weight(uint32_t stream, uint64_t turn) const {
  constexpr double kSteps = static_cast<double>(uint64_t{1} << 53);
  const uint64_t number = ~drawn(seed_, Purpose::kWeight, turn / stretch_, stream);
  const double even = (static_cast<double>(number >> 11) + 0.5) / kSteps;
  double weight = even;
  // The power n of an even number is the greatest of several 1/n times as often.
  for (const SlowStream& slow : slow_) {
    if (slow.stream != stream) continue;
    for (uint32_t i = 1; i < slow.factor; ++i) weight *= even;
  }
  return weight;
}

bool SeededOrder::lets_query_run(uint64_t query) const {
  return drawn(seed_, Purpose::kQuery, query) % 2 == 0;
}

}  // namespace understudy
