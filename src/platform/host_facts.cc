// SPDX-License-Identifier: Apache-2.0
#include "platform/host_facts.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>

#include "base/sizes.h"
#include "platform/text_file.h"

namespace understudy::platform {

namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

std::optional<uint64_t> number_in(const std::string& path) {
  const std::optional<std::string> text = read_text_file(path);
  uint64_t number = 0;
  if (!text || sscanf(text->c_str(), "%" SCNu64, &number) != 1) return std::nullopt;
  return number;
}

// The number behind `name` in a file of names and numbers; 0 if it is not there.
uint64_t number_behind(const std::string& path, const char* name) {
  const std::optional<std::string> text = read_text_file(path);
  const size_t at = text ? text->find(name) : std::string::npos;
  uint64_t number = 0;
  if (at == std::string::npos ||
      sscanf(text->c_str() + at + strlen(name), "%" SCNu64, &number) != 1) {
    return 0;
  }
  return number;
}

uint64_t memory_line(const char* name) { return number_behind("/proc/meminfo", name) * kKiB; }

// The path behind "<controllers>:" in /proc/self/cgroup; "0::" is the unified hierarchy.
std::optional<std::string> cgroup_path(const char* marker) {
  const std::optional<std::string> text = read_text_file("/proc/self/cgroup");
  if (!text) return std::nullopt;
  const size_t at = text->find(marker);
  if (at == std::string::npos) return std::nullopt;
  const size_t begin = at + strlen(marker);
  return text->substr(begin, text->find('\n', begin) - begin);
}

struct MemoryLimit {
  uint64_t limit = kUnlimited;
  uint64_t headroom = kUnlimited;

  void tighten(uint64_t other_limit, uint64_t other_headroom) {
    limit = std::min(limit, other_limit);
    headroom = std::min(headroom, other_headroom);
  }
};

// The tightest limit between a cgroup and the root of its hierarchy decides.
void tighten_up_to_root(MemoryLimit& tightest, const std::string& mount, std::string path,
                        const char* limit_file, const char* usage_file) {
  while (true) {
    const std::string folder = mount + (path == "/" ? "" : path) + "/";
    const std::optional<uint64_t> limit = number_in(folder + limit_file);
    const std::optional<uint64_t> usage = number_in(folder + usage_file);
    if (limit && usage) {
      // Cached files count as used, but give way.
      const uint64_t cached = number_behind(folder + "memory.stat", "\ninactive_file ");
      const uint64_t used = *usage - std::min(*usage, cached);
      tightest.tighten(*limit, *limit - std::min(*limit, used));
    }
    if (path.empty() || path == "/") return;
    path.resize(path.rfind('/'));
  }
}

MemoryLimit cgroup_limit() {
  MemoryLimit tightest;
  if (const auto path = cgroup_path("0::")) {
    tighten_up_to_root(tightest, "/sys/fs/cgroup", *path, "memory.max", "memory.current");
  }
  if (const auto path = cgroup_path(":memory:")) {
    tighten_up_to_root(tightest, "/sys/fs/cgroup/memory", *path, "memory.limit_in_bytes",
                       "memory.usage_in_bytes");
  }
  return tightest;
}

// Where the kernel promises no more than it has, promises run out before memory does.
uint64_t commit_headroom() {
  constexpr uint64_t kStrict = 2;
  if (number_in("/proc/sys/vm/overcommit_memory").value_or(0) != kStrict) return kUnlimited;
  const uint64_t limit = memory_line("CommitLimit:");
  return limit - std::min(limit, memory_line("Committed_AS:"));
}

}  // namespace

uint64_t available_memory() {
  return std::min({memory_line("MemAvailable:"), cgroup_limit().headroom, commit_headroom()});
}

uint64_t total_memory() { return std::min(memory_line("MemTotal:"), cgroup_limit().limit); }

uint64_t address_space_limit() {
  rlimit limit = {};
  return getrlimit(RLIMIT_AS, &limit) == 0 ? limit.rlim_cur : UINT64_MAX;
}

bool has_hugetlb_pool(uint64_t page_size) {
  const std::string folder =
      "/sys/kernel/mm/hugepages/hugepages-" + std::to_string(page_size / kKiB) + "kB/";
  return number_in(folder + "nr_hugepages").value_or(0) > 0 ||
         number_in(folder + "nr_overcommit_hugepages").value_or(0) > 0;
}

bool numa_node_exists(uint64_t node) {
  const std::string folder = "/sys/devices/system/node/node" + std::to_string(node);
  if (access(folder.c_str(), F_OK) == 0) return true;
  // A kernel without NUMA has one node and no folder for it.
  return node == 0 && access("/sys/devices/system/node/node0", F_OK) != 0;
}

uint64_t available_memory_on_node(unsigned node) {
  const std::string path = "/sys/devices/system/node/node" + std::to_string(node) + "/meminfo";
  if (access(path.c_str(), F_OK) != 0) return available_memory();
  return (number_behind(path, "MemFree:") + number_behind(path, "Inactive(file):")) * kKiB;
}

int32_t process_id() { return getpid(); }

}  // namespace understudy::platform
