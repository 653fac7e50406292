// SPDX-License-Identifier: Apache-2.0
#include "sharing/share_names.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

namespace understudy {

namespace {

struct Blob {
  uint64_t token;
  uint32_t kind;
  uint32_t version;
  ServerId server;
  uint64_t check;
};

uint64_t check_of(const Blob& blob) {
  uint64_t check = blob.token ^ uint64_t { blob.kind } << 32 ^ blob.version;
  for (const uint64_t part : blob.server) check = (check ^ part) * 0x100000001b3;
  return check;
}

constexpr size_t kPrefixLength = 3;
const char* prefix_of(KeyKind kind) { return kind == KeyKind::kMemory ? "us-" : "un-"; }

}  // namespace

std::string key_of(KeyKind kind, ShareToken token, const ServerId& server) {
  std::array<char, kKeyLength + 1> text;
  snprintf(text.data(), text.size(), "%s%016" PRIx64 "-%016" PRIx64 "%016" PRIx64, prefix_of(kind),
           token.word(), server[0], server[1]);
  return text.data();
}

Result<ShareToken> token_of_key(KeyKind kind, std::string_view key, const ServerId& server) {
  uint64_t word = 0;
  ServerId named{};
  const std::string text(key.substr(0, kKeyLength + 1));
  const bool is_whole = text.size() == kKeyLength && sscanf(text.c_str() + kPrefixLength,
                                                            "%16" SCNx64 "-%16" SCNx64 "%16" SCNx64,
                                                            &word, &named[0], &named[1]) == 3;
  const auto is_key = [&](KeyKind of) {
    return is_whole && key_of(of, ShareToken(word), named) == text;
  };
  if (!is_key(kind)) {
    const KeyKind other = kind == KeyKind::kMemory ? KeyKind::kNotify : KeyKind::kMemory;
    if (!is_key(other)) return Error::format(ErrorCode::kInvalidHandle, "the key was never issued");
    return Error::format(ErrorCode::kInvalidHandle, "the key is one of %s",
                         other == KeyKind::kMemory ? "memory" : "a notify");
  }
  if (named != server) {
    return Error::format(ErrorCode::kInvalidHandle, "the key is of another server");
  }
  return ShareToken(word);
}

void write_blob(std::span<std::byte> blob, BlobKind kind, ShareToken token,
                const ServerId& server) {
  Blob written{token.word(), static_cast<uint32_t>(kind), 1, server, 0};
  written.check = check_of(written);
  memset(blob.data(), 0, blob.size());
  memcpy(blob.data(), &written, sizeof written);
}

Result<BlobToken> read_blob(std::span<const std::byte> blob, BlobKind kind,
                            const ServerId& server) {
  Blob read;
  memcpy(&read, blob.data(), sizeof read);
  const std::span<const std::byte> rest = blob.subspan(sizeof read);
  const bool is_whole =
      read.kind == static_cast<uint32_t>(kind) && read.check == check_of(read) &&
      std::all_of(rest.begin(), rest.end(), [](std::byte each) { return each == std::byte{0}; });
  if (is_whole && read.server != server) {
    return Error::format(ErrorCode::kNotSupported,
                         "the handle is of another server, and memory cannot be shared across "
                         "servers yet");
  }
  return BlobToken{ShareToken(read.token), is_whole};
}

}  // namespace understudy
