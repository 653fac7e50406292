// SPDX-License-Identifier: Apache-2.0
#include "platform/loaded_library.h"

#include "platform/memory_map.h"

namespace understudy::platform {

namespace {

bool has_published_name(std::string path) {
  constexpr std::string_view kReplaced = " (deleted)";  // the file was replaced after it was loaded
  if (path.ends_with(kReplaced)) path.resize(path.size() - kReplaced.size());
  return path.ends_with("/libascendcl.so") || path.ends_with("/libacl_rt.so");
}

}  // namespace

std::optional<LibraryCopies> second_copy_of_this_library() {
  static const char kInThisLibrary = 0;
  const std::vector<MapEntry> map = memory_map();
  const MapEntry* own = nullptr;
  for (const MapEntry& entry : map) {
    if (entry.range.contains(to_address(&kInThisLibrary))) own = &entry;
  }
  if (own == nullptr || !has_published_name(own->path)) return std::nullopt;  // in the program
  for (const MapEntry& entry : map) {
    if (has_published_name(entry.path) && entry.file_identity != own->file_identity) {
      return LibraryCopies{own->path, entry.path};
    }
  }
  return std::nullopt;
}

}  // namespace understudy::platform
