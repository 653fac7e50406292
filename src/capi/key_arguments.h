// SPDX-License-Identifier: Apache-2.0
//
// What all functions do with the keys by which processes share memory and notifies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/result.h"

namespace understudy::capi {

inline constexpr size_t kKeyBuffer = 65;

inline Result<void> check_key_buffer(size_t length) {
  if (length >= kKeyBuffer) return {};
  return Error::format(ErrorCode::kInvalidParam, "len is %zu and must be %zu", length, kKeyBuffer);
}

inline Result<void> check_count(uint64_t value, const char* name) {
  if (value != 0) return {};
  return Error::format(ErrorCode::kInvalidParam, "%s is 0", name);
}

// At most as much of the text as a key has.
inline std::string_view key_text(const char* key) { return {key, strnlen(key, kKeyBuffer)}; }

}  // namespace understudy::capi
