// SPDX-License-Identifier: Apache-2.0
//
// Writes a pickle of Python, protocol 4: dicts, lists, tuples of two, numbers, texts. Values are
// written in the order in which they are read; those of a dict are a key and a value in turn.
//
//   PickleWriter pickle;
//   pickle.begin_dict();
//   pickle.text("sizes"); pickle.begin_list(); pickle.number(1); pickle.number(2); pickle.end();
//   pickle.end();
//   std::string bytes = pickle.finish();   // {"sizes": [1, 2]}
//
// A text that was written before is referred to. Only operations that viewers written in JavaScript
// know are used, and none of them has more than a thousand operands: some viewers pass them on as
// arguments of a function.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace understudy::command {

class PickleWriter {
 public:
  PickleWriter();

  void none();
  void boolean(bool value);
  void number(uint64_t value);
  void signed_number(int64_t value);
  // What is no UTF-8 is repaired.
  void text(std::string_view value);
  void pair(uint64_t first, uint64_t second);

  void begin_dict();
  void begin_list();
  // Of the dict or list begun last.
  void end();

  // The dict or list that was ended last, to be written again where `again` is called.
  uint32_t remember();
  void again(uint32_t remembered);

  // REQUIRES: one value was written, and all that was begun has ended.
  std::string finish();

 private:
  struct Open {
    bool is_dict;
    uint64_t values;  // of both kinds in a dict
  };

  void begin_value();
  void put(unsigned char operation) { bytes_ += static_cast<char>(operation); }
  void put_bytes(uint64_t value, unsigned count);
  void put_long(uint64_t low_bytes, bool is_negative);
  void put_number(uint64_t value);

  std::string bytes_;
  std::vector<Open> open_;
  std::unordered_map<std::string, uint32_t> texts_;
  uint32_t remembered_ = 0;
};

}  // namespace understudy::command
