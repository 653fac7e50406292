// SPDX-License-Identifier: Apache-2.0
//
// The places of a program that make public calls (key `call_sites`): a file to which each is
// appended when it makes its first call, a line "function<TAB>site<TAB>place in the source". All
// processes that inherit the key append to the same file. One list per process, never destroyed;
// takes no lock, so that a fork child goes on with it. Any thread may call anything.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace understudy {

class CallSiteList {
 public:
  explicit CallSiteList(std::string file) : file_(std::move(file)) {}

  // A call of that function from there. What cannot be written is lost.
  void note(const char* function, uintptr_t return_address) noexcept;

 private:
  // False if it was there already, or there is no room.
  bool add(uint64_t key) noexcept;

  const std::string file_;
  std::array<std::atomic<uint64_t>, 16384> seen_{};  // keys by their hash; 0: none
};

}  // namespace understudy
