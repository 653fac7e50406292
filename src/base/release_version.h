// SPDX-License-Identifier: Apache-2.0
//
// The version of a published package: "9.0.0", or "26.0.RC1" before a final release. Rule: VER-03.
#pragma once

#include <cstdint>
#include <string>

namespace understudy {

struct ReleaseVersion {
  int major = 0;
  int minor = 0;
  int patch = 0;
  int candidate = 0;  // 0: a final release

  // The last part: "0", "RC1".
  std::string release_text() const {
    return candidate == 0 ? std::to_string(patch) : "RC" + std::to_string(candidate);
  }
  std::string text() const {
    return std::to_string(major) + "." + std::to_string(minor) + "." + release_text();
  }
  constexpr int32_t as_number() const {
    const int32_t release = major * 10'000'000 + minor * 100'000 + patch * 1'000;
    return candidate == 0 ? release : release - 100 + candidate;
  }

  friend constexpr bool operator==(const ReleaseVersion&, const ReleaseVersion&) = default;
};

}  // namespace understudy
