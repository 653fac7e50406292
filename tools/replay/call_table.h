// SPDX-License-Identifier: Apache-2.0
//
// How each function of the API is called again: what its parameters are, and how words become its
// arguments. Roles of parameters, one for each, with a space between:
//
//   .    a number, or a value without pointers
//   aN   an address of memory with as many bytes as parameter N says; aN*M: a product; a: of memory
//        that the call does not touch
//   -a   the same, of memory that ends
//   rN   memory of the program's own that the library keeps in mind; r: of some bytes
//   m    an array or a structure; A: an array of addresses, AN: of as many bytes each as the array
//        in parameter N says; H: an array of notifies; q: an array of process numbers
//   g    a configuration of an allocation; p: properties of a block; L: a location behind a pointer
//   s    a handle, by its kind: s stream, e event, c context, n notify, k counting notify, b block,
//        l pool
//   o    a shareable handle; O: a pointer to one; j: an event's handle for other processes; i: the
//        key of memory or of a notify, a text
//   >    the call writes it: >s, >aN (the address of N bytes), >a=N (of as many as what parameter N
//        names has), >iN (of memory with N bytes), >. (a number)
//   w    memory that the call writes, a page at most
//   t    a text; P: a process number; d: a thread
//   f    a function of the program; F: one that a stream calls with the argument G
//   x    an argument that only the program knows
#pragma once

#include <cstdint>
#include <string_view>

#include "acl/acl.h"

namespace understudy::command {

// What a call is about, for `--only memory`.
enum class CallGroup : uint8_t {
  kSetup,   // devices, contexts, streams and waiting for them: what all others build on
  kMemory,  // takes memory or gives it back, or changes where it is
  kOther,
};

struct ReplayedCall {
  const char* name;
  CallGroup group;
  const char* roles;  // of a call that is not made again: why
  // Calls the function at `address` with a word for each parameter. Null: it is not called again.
  aclError (*invoke)(void* address, const uint64_t* words);
  // A function that ends what the call made, or (for a mapping) its first argument; null: none.
  const char* undo;
};

// Null for a function that is not known.
const ReplayedCall* find_replayed_call(std::string_view name);

}  // namespace understudy::command
