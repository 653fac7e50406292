// SPDX-License-Identifier: Apache-2.0
//
// A kernel or a container that refuses a system call, for tests: a seccomp filter that answers one
// call with an errno. A filter stays until its process ends, so it belongs into a process of its
// own (US_FRESH_PROCESS, OtherProcess).
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace understudy_test {

// Only calls whose argument of that number has that value in its lower 32 bits.
struct WithArgument {
  unsigned number;
  uint32_t value;
};

// Refuses the call in all threads of this process from now on. False where filters are not allowed.
inline bool refuse_system_call(long call, int with_errno,
                               std::optional<WithArgument> only = std::nullopt) {
  const auto word_at = [](size_t offset) {
    return sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<uint32_t>(offset)};
  };
  const auto unless = [](uint32_t value, uint8_t skipped) {
    return sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, skipped, value};
  };
  const auto answer = [](uint32_t value) { return sock_filter{BPF_RET | BPF_K, 0, 0, value}; };
  std::vector<sock_filter> filter;
  filter.push_back(word_at(offsetof(seccomp_data, nr)));
  filter.push_back(unless(static_cast<uint32_t>(call), only ? 3 : 1));
  if (only) {
    filter.push_back(word_at(offsetof(seccomp_data, args) + only->number * sizeof(uint64_t)));
    filter.push_back(unless(only->value, 1));
  }
  filter.push_back(answer(SECCOMP_RET_ERRNO | static_cast<uint32_t>(with_errno)));
  filter.push_back(answer(SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

// madvise with this advice.
inline bool refuse_advice(int advice, int with_errno) {
  return refuse_system_call(SYS_madvise, with_errno,
                            WithArgument{2, static_cast<uint32_t>(advice)});
}

}  // namespace understudy_test
