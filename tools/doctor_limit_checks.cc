// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <optional>

#include "base/size_text.h"
#include "base/sizes.h"
#include "tools/doctor_checks.h"
#include "tools/kernel_files.h"

namespace understudy::command {

namespace {

constexpr rlim_t kFewDescriptors = 1024;
constexpr rlim_t kTooFewDescriptors = 64;
constexpr uint64_t kUsualMapCount = 65530;  // Linux's own
constexpr unsigned kLockCapability = 14;    // CAP_IPC_LOCK

rlim_t limit_of(__rlimit_resource resource) {
  struct rlimit limit;
  return getrlimit(resource, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

std::string size_or_unlimited(rlim_t bytes) {
  return bytes == RLIM_INFINITY ? "unlimited" : RoughSizeText(bytes).c_str();
}

bool may_lock_anything() {
  constexpr int kHexadecimal = 16;
  return (own_status("CapEff", kHexadecimal).value_or(0) >> kLockCapability & 1) != 0;
}

Finding locked_memory() {
  const rlim_t limit = limit_of(RLIMIT_MEMLOCK);
  if (limit == RLIM_INFINITY || may_lock_anything()) {
    return {Verdict::kFine,
            limit == RLIM_INFINITY ? "unlimited" : "unlimited, since this user may lock anything",
            "Page-locked host memory is locked.", ""};
  }
  return {Verdict::kCouldBeBetter, size_or_unlimited(limit) + " per process",
          "Page-locked memory beyond that may be swapped out; host_lock=strict refuses it.",
          "echo \"$USER - memlock unlimited\" | sudo tee /etc/security/limits.d/memlock.conf"};
}

Finding descriptors() {
  const rlim_t limit = limit_of(RLIMIT_NOFILE);
  Finding finding{Verdict::kFine,
                  limit == RLIM_INFINITY ? "unlimited" : std::to_string(limit) + " per process",
                  "A process needs a few, and two for each process that it imports from.", ""};
  if (limit >= kFewDescriptors) return finding;
  finding.verdict = limit < kTooFewDescriptors ? Verdict::kProblem : Verdict::kCouldBeBetter;
  finding.meaning = "A process that imports from many others may find none left.";
  finding.command = "ulimit -n 4096";
  return finding;
}

Finding address_space() {
  const rlim_t limit = limit_of(RLIMIT_AS);
  if (limit == RLIM_INFINITY) {
    return {Verdict::kFine, "unlimited", "Reservations of any size are possible.", ""};
  }
  return {Verdict::kCouldBeBetter, size_or_unlimited(limit) + " per process",
          "Reservations beyond it exist for devices alone: the CPU cannot be let in there.",
          "ulimit -v unlimited"};
}

Finding file_size() {
  const rlim_t limit = limit_of(RLIMIT_FSIZE);
  if (limit == RLIM_INFINITY) {
    return {Verdict::kFine, "unlimited", "Backing files have the size that they need.", ""};
  }
  return {limit < kGiB ? Verdict::kProblem : Verdict::kCouldBeBetter,
          size_or_unlimited(limit) + " per file",
          "Backing files are memory files, and end there: large blocks answer 207001.",
          "ulimit -f unlimited"};
}

Finding map_count() {
  const std::optional<uint64_t> count = number_in("/proc/sys/vm/max_map_count");
  if (!count) {
    return {Verdict::kFine, "the host does not tell", "Device memory needs no mappings.", ""};
  }
  if (*count >= kUsualMapCount) {
    return {Verdict::kFine, std::to_string(*count) + " mappings per process",
            "Device memory needs none of them; memory that the CPU sees does.", ""};
  }
  return {Verdict::kCouldBeBetter, std::to_string(*count) + " mappings per process",
          "Programs that map many blocks for the CPU may reach it.",
          "sudo sysctl vm.max_map_count=65530"};
}

}  // namespace

const std::vector<Check>& limit_checks() {
  static const std::vector<Check> checks = {
      {"locked memory", locked_memory}, {"descriptors", descriptors},
      {"address space", address_space}, {"file size", file_size},
      {"map count", map_count},
  };
  return checks;
}

}  // namespace understudy::command
