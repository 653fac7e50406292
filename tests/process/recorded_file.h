// SPDX-License-Identifier: Apache-2.0
//
// A recording as tests see it from outside: a second reader of the format, as simple as it can be.
// It believes what it finds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace understudy_test {

class RecordedFile {
 public:
  explicit RecordedFile(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    if (bytes_.size() < kChunk || memcmp(bytes_.data(), "NPSUREC1", 8) != 0) return;
    is_whole_ = bytes_.size() % kChunk == 0;
    for (size_t chunk = kChunk; chunk + kChunk <= bytes_.size(); chunk += kChunk) read(chunk);
  }

  bool is_whole() const { return is_whole_; }
  size_t size() const { return bytes_.size(); }
  uint32_t flags() const { return word32(12); }
  uint64_t lost() const { return word(40); }
  uint64_t recycled() const { return word(48); }

  const std::set<uint32_t>& processes() const { return processes_; }
  // How often a process has called a function, or all have.
  size_t calls(const std::string& function, uint32_t process = 0) const {
    return count(calls_, function, process);
  }
  size_t calls() const { return calls_.size(); }
  // All calls have a function with a name.
  bool knows_all_functions() const {
    return std::all_of(calls_.begin(), calls_.end(),
                       [&](const auto& call) { return functions_.count(call) == 1; });
  }
  size_t begun_objects() const { return begun_objects_; }
  // Bytes of memory of them all, ended or not.
  uint64_t taken() const { return taken_; }
  size_t run_tasks() const { return run_tasks_; }
  const std::vector<std::string>& stacks() const { return stacks_; }
  // Of a function that have not ended.
  size_t open_calls(const std::string& function) const { return count(open_calls_, function, 0); }
  size_t open_calls() const { return open_calls_.size(); }

 private:
  static constexpr size_t kChunk = size_t{64} << 10;
  static constexpr size_t kChunkHeader = 128;
  using Numbered = std::pair<uint32_t, uint32_t>;  // process, number

  size_t count(const std::vector<Numbered>& calls, const std::string& function,
               uint32_t process) const {
    return static_cast<size_t>(std::count_if(calls.begin(), calls.end(), [&](const auto& call) {
      const auto name = functions_.find(call);
      return (process == 0 || call.first == process) && name != functions_.end() &&
             name->second.starts_with(function + "(");
    }));
  }

  uint64_t word(size_t offset) const {
    uint64_t value = 0;
    if (offset + sizeof value <= bytes_.size()) memcpy(&value, &bytes_[offset], sizeof value);
    return value;
  }
  uint32_t word32(size_t offset) const { return static_cast<uint32_t>(word(offset)); }

  void read(size_t chunk) {
    const uint32_t process = word32(chunk + 8);
    if (word32(chunk) == 0) return;  // free
    processes_.insert(process);
    for (size_t at = chunk + kChunkHeader; at < chunk + kChunk && word(at) != 0;) {
      const uint64_t head = word(at);
      const auto detail = static_cast<uint16_t>(head >> 16);
      size_t words = head >> 8 & 0xff;
      if (words == 0) words = 2 + (word(at + 8) + 7) / 8;
      switch (head & 0xff) {
        case 2:
          calls_.emplace_back(process, detail);
          break;
        case 3:
          ++begun_objects_;
          taken_ += word(at + 32);
          break;
        case 6:
          ++run_tasks_;
          break;
        case 7:
          define(process, detail, static_cast<uint32_t>(head >> 32),
                 bytes_.substr(at + 16, word(at + 8)));
          break;
        default:
          break;
      }
      at += words * 8;
    }
    const auto open = static_cast<uint32_t>(word(chunk + 56));
    if (word32(chunk) == 1 && open != 0) open_calls_.emplace_back(process, open);
  }
  void define(uint32_t process, uint16_t kind, uint32_t number, std::string text) {
    if (kind == 1) functions_[{process, number}] = std::move(text);
    if (kind == 2) stacks_.push_back(std::move(text));
  }

  std::string bytes_;
  bool is_whole_ = false;
  std::set<uint32_t> processes_;
  std::map<Numbered, std::string> functions_;
  std::vector<Numbered> calls_;
  std::vector<std::string> stacks_;
  std::vector<Numbered> open_calls_;
  size_t begun_objects_ = 0;
  uint64_t taken_ = 0;
  size_t run_tasks_ = 0;
};

}  // namespace understudy_test
