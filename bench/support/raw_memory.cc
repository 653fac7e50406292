// SPDX-License-Identifier: Apache-2.0
#include "support/raw_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "support/fail.h"

namespace bench {

namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr int kCollapse = 25;  // MADV_COLLAPSE, which older headers lack
constexpr int kCover = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

// Reads "Rss:     1234 kB" of a status file of the kernel.
bool read_field(const std::string& line, const char* name, size_t& bytes) {
  if (!line.starts_with(name)) return false;
  bytes = std::stoull(line.substr(strlen(name) + 1)) << 10;
  return true;
}

struct UsedPages {
  size_t bytes = 0;
  size_t huge_bytes = 0;  // of them in pages of 2 MiB or more

  std::string text() const {
    const char* kind = huge_bytes == 0 ? "4 KiB" : huge_bytes == bytes ? "2 MiB" : "mixed";
    return std::to_string(bytes >> 20) + " MiB in " + kind + " pages";
  }
};

}  // namespace

RawFile::RawFile(size_t size) : size_(size), file_(memfd_create("benchmark", MFD_CLOEXEC)) {
  require(file_ >= 0, "memfd_create");
  require(ftruncate(file_, static_cast<off_t>(size)) == 0, "ftruncate");
}

RawFile::~RawFile() { close(file_); }

void RawFile::map_over(std::byte* address) const {
  require(mmap(address, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_, 0) == address,
          "mmap");
}

std::byte* raw_reserve(size_t size) {
  void* const range = mmap(nullptr, size + kHugePage, PROT_NONE, kCover, -1, 0);
  require(range != MAP_FAILED, "mmap");
  const auto start = reinterpret_cast<uintptr_t>(range);
  return static_cast<std::byte*>(range) + ((kHugePage - start % kHugePage) % kHugePage);
}

void raw_cover(std::byte* address, size_t size) {
  require(mmap(address, size, PROT_NONE, kCover | MAP_FIXED, -1, 0) == address, "mmap");
}

void raw_populate_huge(std::byte* address, size_t size) {
  for (size_t at = 0; at < size; at += kHugePage) address[at] = std::byte{1};
  // Refused by some kernels; pages_in_use() tells what came of it.
  (void)madvise(address, size, kCollapse);
  memset(address, 1, size);
}

void fetch_memory_from_host(size_t size) {
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, kCover, -1, 0);
  require(memory != MAP_FAILED, "mmap");
  (void)madvise(memory, size, MADV_HUGEPAGE);
  memset(memory, 1, size);
  require(munmap(memory, size) == 0, "munmap");
}

std::string pages_in_use() {
  UsedPages understudy;
  UsedPages baseline;
  std::ifstream maps("/proc/self/smaps");
  UsedPages* current = nullptr;
  for (std::string line; std::getline(maps, line);) {
    if (line.find(':') > line.find('-')) {  // "7f00-7f80 rw-s ... /memfd:name"
      current = line.find("memfd:benchmark") != std::string::npos ? &baseline
                : line.find("memfd:") != std::string::npos        ? &understudy
                                                                  : nullptr;
    }
    size_t bytes = 0;
    if (current == nullptr) continue;
    if (read_field(line, "Rss", bytes)) {
      current->bytes += bytes;
    } else if (read_field(line, "ShmemPmdMapped", bytes)) {
      current->huge_bytes += bytes;
    } else if (read_field(line, "Shared_Hugetlb", bytes) ||
               read_field(line, "Private_Hugetlb", bytes)) {  // not part of Rss
      current->bytes += bytes;
      current->huge_bytes += bytes;
    }
  }
  return "used: understudy " + understudy.text() + ", baseline " + baseline.text();
}

size_t private_bytes() {
  std::ifstream status("/proc/self/status");
  size_t bytes = 0;
  for (std::string line; std::getline(status, line);) {
    if (read_field(line, "RssAnon", bytes)) return bytes;
  }
  fail("/proc/self/status has no RssAnon");
}

}  // namespace bench
