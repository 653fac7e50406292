// SPDX-License-Identifier: Apache-2.0
//
// The forms in which programs carry tokens from process to process, besides the bare number: a key,
// which is text, and a blob of bytes. Both name the server, so that one which came from elsewhere
// is told apart from one that was made up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "server/process_tag.h"

namespace understudy {

inline constexpr size_t kKeyLength = 52;
enum class KeyKind : uint8_t { kMemory, kNotify };
std::string key_of(KeyKind kind, ShareToken token, const ServerId& server);
Result<ShareToken> token_of_key(KeyKind kind, std::string_view key, const ServerId& server);

enum class BlobKind : uint32_t { kFabric = 0x66627375, kEvent = 0x76657375 };

// Fills all of `blob`, which has at least 48 bytes. The token is in the first eight.
void write_blob(std::span<std::byte> blob, BlobKind kind, ShareToken token, const ServerId& server);
// What a blob says. Refuses those of other servers. One that is not whole was damaged, or is no
// blob of that kind at all, but may begin with a token.
struct BlobToken {
  ShareToken token;
  bool is_whole;
};
Result<BlobToken> read_blob(std::span<const std::byte> blob, BlobKind kind, const ServerId& server);

}  // namespace understudy
