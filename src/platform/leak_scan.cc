// SPDX-License-Identifier: Apache-2.0
#include "platform/leak_scan.h"

#include <array>
#include <cstdint>

namespace understudy::platform {

namespace {

// Requests of memcheck, as its manual numbers them from ('M' << 24) + ('C' << 16) on.
enum class Request : uint64_t {
  kMakeNoAccess = 0x4D430000,
  kEnableReports = 0x4D43000D,
  kDisableReports = 0x4D43000E,
};

// Valgrind recognizes four rotations that together do nothing, followed by an exchange that does
// nothing either, and takes the request from the words behind rax. Processors pass over it.
void ask_memcheck(Request request, VirtualRange range) {
#if defined(__x86_64__)
  const std::array<uint64_t, 6> words{
      static_cast<uint64_t>(request), range.base, range.size, 0, 0, 0};
  uint64_t answer = 0;
  __asm__ volatile(
      "rolq $3, %%rdi\n\t"
      "rolq $13, %%rdi\n\t"
      "rolq $61, %%rdi\n\t"
      "rolq $51, %%rdi\n\t"
      "xchgq %%rbx, %%rbx"
      : "+d"(answer)
      : "a"(words.data())
      : "cc", "memory");
#else
  (void)request;
  (void)range;
#endif
}

}  // namespace

void exclude_from_leak_scan(VirtualRange range) {
  ask_memcheck(Request::kDisableReports, range);
  ask_memcheck(Request::kMakeNoAccess, range);
}

void end_exclusion_from_leak_scan(VirtualRange range) {
  ask_memcheck(Request::kEnableReports, range);
}

}  // namespace understudy::platform
