// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/zlib_text.h"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

namespace understudy::command {

namespace {
constexpr size_t kMostAtOnce = size_t{1} << 30;  // zlib counts by 32 bits
}

ZlibText::ZlibText(int level) {
  if (deflateInit(&stream_, level) != Z_OK) throw std::bad_alloc();
}

std::string ZlibText::finish() {
  deflate_all({}, Z_FINISH);
  return std::move(text_);
}

void ZlibText::deflate_all(std::span<const std::byte> bytes, int flush) {
  std::array<unsigned char, size_t{64} << 10> packed;
  size_ += bytes.size();
  do {
    const auto part = bytes.first(std::min(bytes.size(), kMostAtOnce));
    bytes = bytes.subspan(part.size());
    // zlib does not write to it.
    stream_.next_in = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(part.data()));
    stream_.avail_in = static_cast<unsigned>(part.size());
    do {
      stream_.next_out = packed.data();
      stream_.avail_out = static_cast<unsigned>(packed.size());
      // Fails only for streams that are in no state to be written.
      deflate(&stream_, flush);
      text_.append(reinterpret_cast<const char*>(packed.data()), packed.size() - stream_.avail_out);
    } while (stream_.avail_out == 0);
  } while (!bytes.empty());
}

}  // namespace understudy::command
