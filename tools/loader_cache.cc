// SPDX-License-Identifier: Apache-2.0
#include "tools/loader_cache.h"

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "platform/text_file.h"

namespace understudy::command {

namespace {

constexpr std::string_view kMagic = "glibc-ld.so.cache1.1";

struct CacheHeader {
  char magic[20];
  uint32_t entries;
  uint32_t string_bytes;
  uint32_t others[5];
};
struct CacheEntry {
  int32_t flags;
  uint32_t key;  // where its name is, from the header on
  uint32_t value;
  uint32_t system_version;
  uint64_t hardware;  // 0: for any processor
};

std::string_view text_at(std::string_view cache, uint32_t offset) {
  if (offset >= cache.size()) return {};
  return cache.substr(offset, cache.find('\0', offset) - offset);
}

}  // namespace

std::vector<std::string> cached_libraries(const std::string& name) {
  std::vector<std::string> found;
  const std::optional<std::string> text = platform::read_text_file("/etc/ld.so.cache");
  // An older form may precede it, for older loaders.
  const size_t begin = text ? text->find(kMagic) : std::string::npos;
  if (begin == std::string::npos) return found;
  const std::string_view cache = std::string_view(*text).substr(begin);
  CacheHeader header;
  if (cache.size() < sizeof(header)) return found;
  memcpy(&header, cache.data(), sizeof(header));
  for (uint64_t i = 0; i < header.entries; ++i) {
    const uint64_t at = sizeof(header) + i * sizeof(CacheEntry);
    CacheEntry entry;
    if (at + sizeof(entry) > cache.size()) break;
    memcpy(&entry, cache.data() + at, sizeof(entry));
    if (entry.hardware != 0 || text_at(cache, entry.key) != name) continue;
    found.emplace_back(text_at(cache, entry.value));
  }
  return found;
}

}  // namespace understudy::command
