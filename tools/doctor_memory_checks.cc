// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/scope_exit.h"
#include "base/size_text.h"
#include "base/sizes.h"
#include "base/virtual_range.h"
#include "platform/host_facts.h"
#include "platform/memory_file.h"
#include "platform/page_commit.h"
#include "platform/text_file.h"
#include "tools/doctor_checks.h"
#include "tools/kernel_files.h"

namespace understudy::command {

namespace {

// Less than this, and programs meet the end of host memory before that of a device.
constexpr uint64_t kLittleMemory = 2 * kGiB;
constexpr uint64_t kTooLittleMemory = 256 * kMiB;
// What the ledger of a busy server takes.
constexpr uint64_t kRoomForLedger = 16 * kMiB;

std::string text_of(uint64_t bytes) { return RoughSizeText(bytes).c_str(); }

// "madvise" of "always [madvise] never".
std::string chosen_in(const std::string& path) {
  const std::optional<std::string> text = platform::read_text_file(path);
  const size_t begin = text ? text->find('[') : std::string::npos;
  if (begin == std::string::npos) return "not there";
  return text->substr(begin + 1, text->find(']', begin) - begin - 1);
}

Finding huge_page_pool() {
  const std::string folder = "/sys/kernel/mm/hugepages/hugepages-2048kB/";
  const uint64_t pages = number_in(folder + "nr_hugepages").value_or(0);
  const uint64_t free = number_in(folder + "free_hugepages").value_or(0);
  const uint64_t more = number_in(folder + "nr_overcommit_hugepages").value_or(0);
  Finding finding;
  finding.found = std::to_string(pages) + " pages of 2 MiB, " + std::to_string(free) +
                  " of them free, " + std::to_string(more) + " more on demand";
  if (pages + more == 0) {
    finding.meaning =
        "Device memory comes from ordinary memory; only backing=hugetlb needs a pool.";
  } else if (free + more == 0) {
    finding.verdict = Verdict::kCouldBeBetter;
    finding.meaning =
        "The pool is used up: device memory comes from ordinary memory, and backing=hugetlb "
        "answers 207001.";
    finding.command = "sudo sysctl vm.nr_hugepages=" + std::to_string(pages + 512);
  } else {
    finding.meaning = "Device memory takes these pages first.";
  }
  return finding;
}

Finding transparent_huge_pages() {
  const std::string enabled = chosen_in("/sys/kernel/mm/transparent_hugepage/enabled");
  Finding finding{Verdict::kFine, enabled, "Page-locked host memory comes in 2 MiB pages.", ""};
  if (enabled != "always" && enabled != "madvise") {
    finding.verdict = Verdict::kCouldBeBetter;
    finding.meaning = "Page-locked host memory comes in 4 KiB pages: it takes longer to get.";
    if (enabled == "never") {
      finding.command = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled";
    }
  }
  return finding;
}

// Whether the kernel makes 2 MiB pages of a memory file, asked as the library asks it.
bool can_collapse() {
  const auto file = platform::MemoryFile::create(platform::FileKind::kShared, "doctor", kHugePage);
  if (!file.ok()) return false;
  // Twice the size has an aligned part in it.
  void* const room = mmap(nullptr, 2 * kHugePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) return false;
  const ScopeExit unmap([room] { munmap(room, 2 * kHugePage); });
  const VirtualRange window{align_down(to_address(room) + kHugePage - 1, kHugePage), kHugePage};
  if (mmap(to_pointer(window.base), window.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
           file.value().descriptor(), 0) == MAP_FAILED) {
    return false;
  }
  return platform::commit_collapsed(window).ok();
}

Finding collapse() {
  const std::string shared = chosen_in("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  if (can_collapse()) {
    return {Verdict::kFine, "MADV_COLLAPSE works (shmem_enabled: " + shared + ")",
            "Device memory comes in 2 MiB pages, without a pool and without root.", ""};
  }
  Finding finding{Verdict::kCouldBeBetter,
                  "MADV_COLLAPSE does not work (shmem_enabled: " + shared + ")",
                  "Device memory comes in 4 KiB pages: its first use takes several times as long. "
                  "Linux 6.1 or a pool of huge pages changes that.",
                  "sudo sysctl vm.nr_hugepages=512"};
  if (shared == "deny") {
    finding.command = "echo never | sudo tee /sys/kernel/mm/transparent_hugepage/shmem_enabled";
  }
  return finding;
}

Finding memory_left(uint64_t available, const std::string& found, const char* command) {
  Finding finding{Verdict::kFine, found,
                  "Programs can use what is available, less a reserve; then calls answer 207001.",
                  ""};
  if (available >= kLittleMemory) return finding;
  const bool is_too_little = available < kTooLittleMemory;
  finding.verdict = is_too_little ? Verdict::kProblem : Verdict::kCouldBeBetter;
  finding.meaning = is_too_little
                        ? "Hardly any device memory can be written to: calls answer 207001."
                        : "Programs that write to much device memory soon get 207001.";
  finding.command = command;
  return finding;
}

Finding machine_memory() {
  const platform::MemoryLimit machine = platform::memory_limits().front();
  if (machine.available == platform::kUnknownMemory) {
    return {Verdict::kCouldBeBetter, "the host does not tell",
            "Nothing stops programs before the machine is full.", "mount -t proc proc /proc"};
  }
  return memory_left(machine.available,
                     text_of(machine.available) + " available of " + text_of(machine.total),
                     "ps -eo pid,rss,args --sort=-rss | head");
}

Finding cgroup_memory() {
  std::optional<platform::MemoryLimit> tightest;
  for (const platform::MemoryLimit& limit : platform::memory_limits()) {
    if (limit.id != 0 && (!tightest || limit.available < tightest->available)) tightest = limit;
  }
  if (!tightest) return {Verdict::kFine, "no limit", "The machine's memory is the limit.", ""};
  return memory_left(tightest->available,
                     text_of(tightest->available) + " available of " + text_of(tightest->total),
                     "systemd-run --user --scope -p MemoryMax=infinity understudy run ...");
}

Finding overcommit() {
  constexpr uint64_t kStrict = 2;
  const uint64_t mode = number_in("/proc/sys/vm/overcommit_memory").value_or(0);
  if (mode != kStrict) {
    return {Verdict::kFine, "mode " + std::to_string(mode),
            "Untouched device memory costs nothing.", ""};
  }
  return {Verdict::kCouldBeBetter, "mode 2: the kernel promises no more than it has",
          "Host memory ends at CommitLimit of /proc/meminfo, earlier than it is full.",
          "sudo sysctl vm.overcommit_memory=0"};
}

Finding shared_memory_folder() {
  const char* const folder = "/dev/shm";
  const char* const other = "export UNDERSTUDY_RUNTIME_DIR=/tmp/understudy-$(id -u)";
  struct statvfs facts;
  if (statvfs(folder, &facts) != 0) {
    return {Verdict::kProblem, "there is no /dev/shm",
            "Processes find no place for their server unless a variable names one.", other};
  }
  const uint64_t free = uint64_t{facts.f_bavail} * facts.f_frsize;
  const std::string found =
      text_of(free) + " free of " + text_of(uint64_t{facts.f_blocks} * facts.f_frsize);
  const bool is_writable = (facts.f_flag & ST_RDONLY) == 0 && access(folder, W_OK | X_OK) == 0;
  if (!is_writable) {
    return {Verdict::kProblem, found + ", not writable",
            "Processes find no place for their server unless a variable names one.", other};
  }
  if (free < kRoomForLedger) {
    return {Verdict::kProblem, found, "The ledger of a server may find no room.",
            "sudo mount -o remount,size=64M /dev/shm"};
  }
  return {Verdict::kFine, found, "The ledger of the server is here; device memory is not.", ""};
}

}  // namespace

const std::vector<Check>& memory_checks() {
  static const std::vector<Check> checks = {
      {"huge page pool", huge_page_pool},
      {"transparent huge pages", transparent_huge_pages},
      {"collapse", collapse},
      {"memory", machine_memory},
      {"memory cgroup", cgroup_memory},
      {"overcommit", overcommit},
      {"/dev/shm", shared_memory_folder},
  };
  return checks;
}

}  // namespace understudy::command
