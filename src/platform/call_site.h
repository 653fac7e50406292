// SPDX-License-Identifier: Apache-2.0
//
// A place in the program that calls this library, named so that it is found again in another
// process: the file of the code, and the offset of the return address in it ("program+0x11f2").
#pragma once

#include <cstdint>
#include <string>

namespace understudy::platform {

// Empty if the address is in no file that is loaded. May throw std::bad_alloc.
std::string call_site_of(uintptr_t return_address);

// For people, from debug information. Reads files; may throw std::bad_alloc.
struct SourcePlace {
  std::string place;     // "kv.cc:41"; the site itself where there is no debug information
  std::string function;  // without its arguments; empty if it is not known
  std::string object;    // the file of the code, without its folder: "libc.so.6"
};
SourcePlace find_source(uintptr_t return_address);
std::string source_place_of(uintptr_t return_address);

}  // namespace understudy::platform
