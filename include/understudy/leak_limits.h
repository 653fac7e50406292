/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For C++ tests with GoogleTest, C++14 or later: a piece of a test that may leave only so much
 * alive, and cycles that must not leave more each time.
 *
 *   {
 *     understudy::testing::LimitLeaks limit(1 << 20);  // bytes of device memory
 *     cache.fill();
 *   }
 *   understudy::testing::ratchet([&] { engine.sleep(); engine.wake(); });
 *
 * A failure names the places that made what stays, where a check is chosen (UNDERSTUDY_CHECK=leaks,
 * or understudy run --check). On a real device the code runs, and nothing is compared.
 */
#ifndef UNDERSTUDY_LEAK_LIMITS_H_
#define UNDERSTUDY_LEAK_LIMITS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "acl/acl_understudy.h"
#include "understudy/gtest_listener.h"

#pragma weak aclUnderstudyMark
#pragma weak aclUnderstudyVisitGrowth
#pragma weak aclUnderstudyWantsPlaces

namespace understudy {
namespace testing {
namespace internal {

struct PlaceList {
  std::string lines;
  uint64_t least_objects = 0;  // of a place, to be named
};

inline void add_place(const aclUnderstudyGrowth* growth, void* list) {
  auto& places = *static_cast<PlaceList*>(list);
  if (growth->objects < places.least_objects) return;
  places.lines += std::string("\n  ") + growth->sentence;
}

// A line for each place that made what is alive since the mark.
inline std::string place_lines(uint64_t mark, uint64_t least_objects) {
  if (aclUnderstudyWantsPlaces() == 0) {
    return "\n  (choose a check for the places of the program: UNDERSTUDY_CHECK=leaks)";
  }
  PlaceList places;
  places.least_objects = least_objects;
  aclUnderstudyVisitGrowth(mark, add_place, &places);
  return places.lines;
}

// At the line of the test, which the place in this header would not tell.
inline void fail_test(const std::string& text) {
  const ::testing::TestInfo* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  if (test != nullptr) {
    ADD_FAILURE_AT(test->file(), test->line()) << text;
  } else {
    ADD_FAILURE() << text;
  }
}

inline uint64_t more_than(uint64_t before, uint64_t after) {
  return after > before ? after - before : 0;
}

inline uint64_t more_objects(const aclUnderstudyObjects& before,
                             const aclUnderstudyObjects& after) {
  uint64_t sum = 0;
  for (const ObjectKind& kind : object_kinds()) {
    sum += more_than(before.*kind.count, after.*kind.count);
  }
  return sum;
}

// "1 stream", "1 to 3 streams"; empty if the count did not grow in each step.
inline std::string growth_of(const std::vector<aclUnderstudyObjects>& counts,
                             const ObjectKind& kind) {
  uint64_t low = UINT64_MAX;
  uint64_t high = 0;
  for (std::size_t i = 1; i < counts.size(); ++i) {
    const uint64_t more = more_than(counts[i - 1].*kind.count, counts[i].*kind.count);
    low = std::min(low, more);
    high = std::max(high, more);
  }
  if (low == 0) return {};
  const bool is_memory = kind.count == &aclUnderstudyObjects::deviceBytes;
  const auto text = [&](uint64_t count) {
    return is_memory ? size_text(count) : std::to_string(count);
  };
  return (low == high ? "" : text(low) + " to ") + text(high) + " " +
         (high == 1 && !is_memory ? kind.one : kind.several);
}

}  // namespace internal

// Fails the test at its end if more is alive than at its begin, beyond the limits: bytes of device
// memory, and the number of objects of all kinds together. With bytes alone, any number of objects.
class LimitLeaks {
 public:
  LimitLeaks() : LimitLeaks(0, 0) {}
  explicit LimitLeaks(uint64_t bytes) : LimitLeaks(bytes, bytes == 0 ? 0 : UINT64_MAX) {}
  LimitLeaks(uint64_t bytes, uint64_t objects) : bytes_(bytes), objects_(objects) {
    if (!internal::has_software_npu()) return;
    before_ = internal::count_objects();
    mark_ = aclUnderstudyMark();
  }
  LimitLeaks(const LimitLeaks&) = delete;
  LimitLeaks& operator=(const LimitLeaks&) = delete;

  ~LimitLeaks() {
    if (!internal::has_software_npu()) return;
    const aclUnderstudyObjects after = internal::count_objects();
    if (internal::more_than(before_.deviceBytes, after.deviceBytes) <= bytes_ &&
        internal::more_objects(before_, after) <= objects_) {
      return;
    }
    internal::fail_test("leaks: " + internal::described(before_, after) + "; " + limit_text() +
                        internal::place_lines(mark_, 0));
  }

 private:
  std::string limit_text() const {
    if (bytes_ == 0 && objects_ == 0) return "nothing may stay";
    std::string text = internal::size_text(bytes_) + " of device memory";
    if (objects_ != UINT64_MAX)
      text += " and " + std::to_string(objects_) + (objects_ == 1 ? " object" : " objects");
    return text + " may stay";
  }

  const uint64_t bytes_;
  const uint64_t objects_;
  aclUnderstudyObjects before_ = {};
  uint64_t mark_ = 0;
};

// Calls a function for each cycle. Fails the test, and gives false, if the objects of a kind or the
// device memory grow in every cycle behind the first ones.
template <typename Cycle>
bool ratchet(Cycle cycle, unsigned cycles = 10, unsigned warmup = 2) {
  std::vector<aclUnderstudyObjects> counts;
  uint64_t mark = 0;
  for (unsigned i = 0; i < cycles; ++i) {
    if (i == warmup && internal::has_software_npu()) {
      mark = aclUnderstudyMark();
      counts.push_back(internal::count_objects());
    }
    cycle();
    if (!counts.empty()) counts.push_back(internal::count_objects());
  }
  if (counts.size() < 3) return true;  // there is nothing to compare
  std::vector<internal::ObjectKind> kinds = internal::object_kinds();
  kinds.push_back({&aclUnderstudyObjects::deviceBytes, "of device memory", "of device memory", ""});
  std::string grown;
  for (const internal::ObjectKind& kind : kinds) {
    const std::string text = internal::growth_of(counts, kind);
    if (!text.empty()) grown += (grown.empty() ? "" : ", ") + text;
  }
  if (grown.empty()) return true;
  const std::size_t compared = counts.size() - 1;
  internal::fail_test("grows in each of " + std::to_string(compared) + " cycles: by " + grown +
                      " a cycle" + internal::place_lines(mark, compared));
  return false;
}

}  // namespace testing
}  // namespace understudy

#endif  // UNDERSTUDY_LEAK_LIMITS_H_
