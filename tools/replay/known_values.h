// SPDX-License-Identifier: Apache-2.0
//
// What the values of a recording stand for at a moment: handles and addresses of a process, and
// bytes by which processes know each other's things. Newer things take the place of older ones with
// the same values; things that have ended stay until then.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace understudy::command {

struct KnownThing {
  uint32_t thing;
  uint64_t offset;  // of an address, in the thing
  bool has_ended;
};

class KnownValues {
 public:
  // Of a kind of handles, by its letter.
  void add_handle(char kind, uint64_t value, uint32_t thing) { handles_[{kind, value}] = thing; }
  std::optional<uint32_t> find_handle(char kind, uint64_t value) const;

  // As many bytes as there are, one at least.
  void add_range(uint64_t address, uint64_t size, uint32_t thing);
  // The thing at the address.
  std::optional<KnownThing> find_address(uint64_t address) const;
  // The same, or one that ends not far before it: what a wrong call is about.
  std::optional<KnownThing> find_near(uint64_t address) const;
  void end_range(uint64_t address);

 private:
  struct Range {
    uint64_t size;
    uint32_t thing;
    bool has_ended;
  };
  struct Hash {
    size_t operator()(const std::pair<char, uint64_t>& key) const {
      return static_cast<size_t>(
          (key.second ^ static_cast<uint64_t>(key.first) << 56) * 0x9e3779b97f4a7c15 >> 7);
    }
  };

  std::unordered_map<std::pair<char, uint64_t>, uint32_t, Hash> handles_;
  std::map<uint64_t, Range> ranges_;  // none overlaps another
};

}  // namespace understudy::command
