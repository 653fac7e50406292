// SPDX-License-Identifier: Apache-2.0
//
// What the kernel alone offers, as the baseline: memory files and address ranges.
#pragma once

#include <cstddef>
#include <string>

namespace bench {

// A memory file of 4 KiB pages until told otherwise.
class RawFile {
 public:
  explicit RawFile(size_t size);
  ~RawFile();
  RawFile(const RawFile&) = delete;
  RawFile& operator=(const RawFile&) = delete;

  // Maps all of it over what is at the address.
  void map_over(std::byte* address) const;

 private:
  size_t size_;
  int file_;
};

// A range without access that costs nothing, at a multiple of 2 MiB.
std::byte* raw_reserve(size_t size);
// Makes a part of such a range again what it was.
void raw_cover(std::byte* address, size_t size);
// Gives a mapped file memory, in 2 MiB pages where the kernel can.
void raw_populate_huge(std::byte* address, size_t size);

// In a virtual machine, memory that was not used for long is not there and takes milliseconds per
// 2 MiB to come back, which says nothing about either side of a comparison: with this, both find
// it there.
void fetch_memory_from_host(size_t size);

// A sentence that tells how much memory is used of the library's memory files and of RawFiles,
// and what pages it is in.
std::string pages_in_use();

// Bytes of private memory: heap, stacks, tables.
size_t private_bytes();

}  // namespace bench
