// SPDX-License-Identifier: Apache-2.0
//
// A zlib stream in memory, to which bytes are added.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace understudy::command {

class ZlibText {
 public:
  // `level` as zlib has it. Throws std::bad_alloc.
  explicit ZlibText(int level);
  ~ZlibText() { deflateEnd(&stream_); }
  ZlibText(const ZlibText&) = delete;
  ZlibText& operator=(const ZlibText&) = delete;

  // How many bytes were added.
  uint64_t size() const { return size_; }
  void add(std::span<const std::byte> bytes) { deflate_all(bytes, Z_NO_FLUSH); }
  // The stream, which is complete then.
  std::string finish();

 private:
  void deflate_all(std::span<const std::byte> bytes, int flush);

  z_stream stream_{};
  std::string text_;
  uint64_t size_ = 0;
};

}  // namespace understudy::command
