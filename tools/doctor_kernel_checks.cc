// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "base/scope_exit.h"
#include "base/sizes.h"
#include "platform/byte_lock.h"
#include "platform/memory_file.h"
#include "platform/process_identity.h"
#include "tools/doctor_checks.h"
#include "tools/kernel_files.h"

// Newer than the headers of Debian 12.
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace understudy::command {

namespace {

// ---- Features, tried for real: a filter of a container refuses what the kernel has.

Finding tried(bool works, Verdict without, const char* with_it, const char* without_it) {
  if (works) return {Verdict::kFine, "works", with_it, ""};
  return {without, "does not work", without_it,
          "docker run --security-opt seccomp=unconfined, or a newer kernel or container runtime"};
}

platform::UniqueFd small_memory_file() {
  platform::UniqueFd file(memfd_create("understudy-doctor", MFD_CLOEXEC));
  if (file.valid() && ftruncate(file.get(), kNormalPage) != 0) return platform::UniqueFd();
  return file;
}

Finding memory_files() {
  return tried(small_memory_file().valid(), Verdict::kProblem, "The bytes of devices live in them.",
               "There is no device memory at all without it.");
}

bool takes_advice(int advice) {
  const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const page =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return false;
  const ScopeExit unmap([page, size] { munmap(page, size); });
  return madvise(page, size, advice) == 0;
}

Finding populate() {
  return tried(takes_advice(MADV_POPULATE_WRITE), Verdict::kCouldBeBetter,
               "Host memory is taken without the risk of a signal.",
               "Host memory is taken in 4 KiB pages, by a slower way.");
}

Finding wipe_on_fork() {
  return tried(takes_advice(MADV_WIPEONFORK), Verdict::kCouldBeBetter,
               "Children of fork are told from their parents.",
               "Children of fork are told by their process number alone.");
}

Finding process_descriptors() {
  return tried(platform::open_process(getpid()).valid(), Verdict::kCouldBeBetter,
               "Ended processes are noticed at once.",
               "Ended processes are told by their start time; `understudy run` leaves directories "
               "for `understudy clean`.");
}

// What an importer does: takes a descriptor of another process, here of a child.
bool can_open_files_of_processes() {
  const platform::UniqueFd file = small_memory_file();
  const pid_t child = file.valid() ? fork() : -1;
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (true) pause();
  }
  if (child < 0) return false;
  const std::string path = "/proc/" + std::to_string(child) + "/fd/" + std::to_string(file.get());
  const platform::UniqueFd opened(open(path.c_str(), O_RDWR | O_CLOEXEC));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return opened.valid();
}

Finding files_of_processes() {
  return tried(can_open_files_of_processes(), Verdict::kCouldBeBetter,
               "Shared memory is fetched without the help of its exporter.",
               "Every import asks the exporter, which takes longer.");
}

Finding byte_locks() {
  const platform::UniqueFd file = small_memory_file();
  return tried(file.valid() && platform::try_lock_byte(file.get(), 0), Verdict::kProblem,
               "Processes of a server see each other.", "Processes cannot join a server.");
}

Finding barriers() {
  const long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  return tried(commands > 0 && (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0,
               Verdict::kCouldBeBetter, "Readers of mappings need no fence of their own.",
               "Every reader of a mapping pays for a fence.");
}

Finding random_numbers() {
  unsigned char byte = 0;
  return tried(getrandom(&byte, sizeof(byte), GRND_NONBLOCK) == sizeof(byte),
               Verdict::kCouldBeBetter, "Tokens of shared memory cannot be guessed.",
               "Tokens of shared memory come from /dev/urandom.");
}

// ---- The rest of the kernel.

Finding release() {
  struct utsname names;
  unsigned major = 0;
  unsigned minor = 0;
  if (uname(&names) != 0 || sscanf(names.release, "%u.%u", &major, &minor) != 2) {
    return {Verdict::kFine, "the host does not tell", "The checks below tell more.", ""};
  }
  const auto is_before = [&](unsigned wanted_major, unsigned wanted_minor) {
    return major < wanted_major || (major == wanted_major && minor < wanted_minor);
  };
  const std::string found = std::string("Linux ") + names.release;
  if (is_before(5, 14)) {
    return {Verdict::kProblem, found, "Understudy is made for Linux 5.14 and newer.", "uname -r"};
  }
  if (is_before(6, 1)) {
    return {Verdict::kCouldBeBetter, found,
            "Before Linux 6.1 there are no 2 MiB pages without a pool of them.",
            "sudo sysctl vm.nr_hugepages=512"};
  }
  return {Verdict::kFine, found, "It has all that is used here.", ""};
}

Finding yama() {
  const std::optional<uint64_t> scope = number_in("/proc/sys/kernel/yama/ptrace_scope");
  if (!scope) return {Verdict::kFine, "not there", "Debuggers can attach.", ""};
  const std::string found = "ptrace_scope " + std::to_string(*scope);
  if (*scope == 0) return {Verdict::kFine, found, "Debuggers can attach.", ""};
  return {Verdict::kFine, found,
          "Nothing here needs more. A debugger attaches to its own children alone.", ""};
}

Finding seccomp() {
  constexpr uint64_t kFilter = 2;
  if (own_status("Seccomp").value_or(0) != kFilter) {
    return {Verdict::kFine, "no filter", "All system calls reach the kernel.", ""};
  }
  return {Verdict::kFine, "a filter is set, as in most containers",
          "The features above were tried behind it.", ""};
}

// ---- The processor.

Finding cores() {
  cpu_set_t usable;
  const int count = sched_getaffinity(0, sizeof(usable), &usable) == 0 ? CPU_COUNT(&usable) : 1;
  if (count > 1) {
    return {Verdict::kFine, std::to_string(count) + " usable",
            "Streams run beside the program, and large copies on several cores.", ""};
  }
  return {Verdict::kCouldBeBetter, "1 usable", "Streams and the program take turns.", "nproc"};
}

Finding copy_instructions() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") == 0) {
    return {Verdict::kCouldBeBetter, "no AVX2",
            "Large copies have one routine less to choose from.", "grep -m1 flags /proc/cpuinfo"};
  }
  return {Verdict::kFine, "AVX2", "Large copies can pass by the caches.", ""};
#else
  return {Verdict::kFine, "those of the C library", "Copies use the C library's routines.", ""};
#endif
}

}  // namespace

const std::vector<Check>& kernel_checks() {
  static const std::vector<Check> checks = {
      {"kernel", release},
      {"memfd_create", memory_files},
      {"MADV_POPULATE_WRITE", populate},
      {"MADV_WIPEONFORK", wipe_on_fork},
      {"pidfd_open", process_descriptors},
      {"/proc/PID/fd", files_of_processes},
      {"locks of bytes", byte_locks},
      {"membarrier", barriers},
      {"getrandom", random_numbers},
      {"seccomp", seccomp},
      {"Yama", yama},
      {"cores", cores},
      {"copy instructions", copy_instructions},
  };
  return checks;
}

}  // namespace understudy::command
