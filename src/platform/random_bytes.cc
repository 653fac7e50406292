// SPDX-License-Identifier: Apache-2.0
#include "platform/random_bytes.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/no_cancel.h"
#include "platform/unique_fd.h"

namespace understudy::platform {

namespace {

bool read_from_kernel(uint64_t& number) {
  ssize_t got = 0;
  do {
    got = getrandom(&number, sizeof number, 0);
  } while (got < 0 && errno == EINTR);
  return got == sizeof number;
}

bool read_from_device(uint64_t& number) {
  const UniqueFd device(open("/dev/urandom", O_RDONLY | O_CLOEXEC));
  return device.valid() && read(device.get(), &number, sizeof number) == sizeof number;
}

// Spreads what differs in a few bits over all of them (splitmix64).
uint64_t mixed(uint64_t word) {
  word += 0x9e3779b97f4a7c15;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
  word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
  return word ^ (word >> 31);
}

// What the kernel gave the program at its start, and what no other call has in common with this.
uint64_t made_up() {
  static std::atomic<uint64_t> calls{0};
  uint64_t start = 0;
  if (const unsigned long given = getauxval(AT_RANDOM); given != 0) {
    memcpy(&start, reinterpret_cast<const void*>(given), sizeof start);  // NOLINT
  }
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  uint64_t word = mixed(start ^ static_cast<uint64_t>(getpid()));
  word = mixed(word ^ static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 ^
               static_cast<uint64_t>(now.tv_nsec));
  return mixed(word ^ calls.fetch_add(1, std::memory_order_relaxed));
}

}  // namespace

uint64_t random_number() {
  const NoCancel no_cancel;
  uint64_t number = 0;
  if (read_from_kernel(number) || read_from_device(number)) return number;
  return made_up();
}

}  // namespace understudy::platform
