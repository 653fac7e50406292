// SPDX-License-Identifier: Apache-2.0
#include "platform/host_facts.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

#include "base/sizes.h"
#include "platform/text_file.h"

namespace understudy::platform {

namespace {

std::optional<uint64_t> number_in(const std::string& path) {
  const std::optional<std::string> text = read_text_file(path);
  uint64_t number = 0;
  if (!text || sscanf(text->c_str(), "%" SCNu64, &number) != 1) return std::nullopt;
  return number;
}

// The number behind `name` in a file of names and numbers.
std::optional<uint64_t> number_behind(const std::string& path, const char* name) {
  const std::optional<std::string> text = read_text_file(path);
  const size_t at = text ? text->find(name) : std::string::npos;
  uint64_t number = 0;
  if (at == std::string::npos ||
      sscanf(text->c_str() + at + strlen(name), "%" SCNu64, &number) != 1) {
    return std::nullopt;
  }
  return number;
}

std::optional<uint64_t> bytes_behind(const std::string& path, const char* name) {
  const std::optional<uint64_t> kibibytes = number_behind(path, name);
  if (!kibibytes) return std::nullopt;
  return *kibibytes * kKiB;
}

std::optional<uint64_t> memory_line(const char* name) {
  return bytes_behind("/proc/meminfo", name);
}

using SystemFigures = struct sysinfo;

// What the machine has, from the kernel itself, for a process that may not read /proc/meminfo. What
// is free is less than what is available: files that are cached would give way.
uint64_t memory_without_files(unsigned long SystemFigures::*figure) {
  SystemFigures facts = {};
  if (sysinfo(&facts) != 0) return kUnknownMemory;
  return uint64_t{facts.*figure} * facts.mem_unit;
}

// The path behind "<controllers>:" in /proc/self/cgroup; "0::" is the unified hierarchy.
std::optional<std::string> cgroup_path(const char* marker) {
  const std::optional<std::string> text = read_text_file("/proc/self/cgroup");
  if (!text) return std::nullopt;
  const size_t at = text->find(marker);
  if (at == std::string::npos) return std::nullopt;
  const size_t begin = at + strlen(marker);
  return text->substr(begin, text->find('\n', begin) - begin);
}

// What the files of a cgroup hierarchy are called.
struct CgroupFiles {
  const char* mount;
  const char* limit;
  const char* soft_limit;  // where the kernel begins to throttle
  const char* usage;
  const char* cached;  // the line of memory.stat for it and the cgroups below
};
constexpr CgroupFiles kUnified{"/sys/fs/cgroup", "memory.max", "memory.high", "memory.current",
                               "\ninactive_file "};
constexpr CgroupFiles kLegacy{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", nullptr,
                              "memory.usage_in_bytes", "\ntotal_inactive_file "};

// A number that no other cgroup has while this one exists.
uint64_t cgroup_id(const std::string& folder) {
  constexpr unsigned kInodeBits = 48;
  struct stat facts = {};
  if (stat(folder.c_str(), &facts) != 0) return ~uint64_t{0};
  return uint64_t{facts.st_dev} << kInodeBits ^ uint64_t { facts.st_ino };
}

std::optional<MemoryLimit> limit_of_cgroup(const std::string& folder, const CgroupFiles& files) {
  std::optional<uint64_t> limit = number_in(folder + files.limit);
  if (files.soft_limit != nullptr) {
    const std::optional<uint64_t> soft = number_in(folder + files.soft_limit);
    if (soft) limit = std::min(*soft, limit.value_or(kUnknownMemory));
  }
  const std::optional<uint64_t> usage = number_in(folder + files.usage);
  if (!limit || !usage) return std::nullopt;
  // Cached files count as used, but give way.
  const uint64_t cached = number_behind(folder + "memory.stat", files.cached).value_or(0);
  const uint64_t used = *usage - std::min(*usage, cached);
  return MemoryLimit{cgroup_id(folder), *limit, *limit - std::min(*limit, used)};
}

// Those between a cgroup and the root of its hierarchy that are tighter than the machine.
void add_limits_up_to_root(std::vector<MemoryLimit>& limits, std::string path,
                           const CgroupFiles& files) {
  while (true) {
    const std::string folder = files.mount + (path == "/" ? "" : path) + "/";
    const std::optional<MemoryLimit> limit = limit_of_cgroup(folder, files);
    if (limit && limit->total < limits.front().total) limits.push_back(*limit);
    if (path.empty() || path == "/") return;
    path.resize(path.rfind('/'));
  }
}

// Where the kernel promises no more than it has, promises run out before memory does.
uint64_t commit_headroom() {
  constexpr uint64_t kStrict = 2;
  if (number_in("/proc/sys/vm/overcommit_memory").value_or(0) != kStrict) return kUnknownMemory;
  const std::optional<uint64_t> limit = memory_line("CommitLimit:");
  const std::optional<uint64_t> promised = memory_line("Committed_AS:");
  if (!limit || !promised) return kUnknownMemory;
  return *limit - std::min(*limit, *promised);
}

}  // namespace

std::vector<MemoryLimit> memory_limits() {
  const std::optional<uint64_t> total = memory_line("MemTotal:");
  const std::optional<uint64_t> available = memory_line("MemAvailable:");
  std::vector<MemoryLimit> limits;
  limits.push_back(
      {.id = 0,
       .total = total ? *total : memory_without_files(&SystemFigures::totalram),
       .available = std::min(available ? *available : memory_without_files(&SystemFigures::freeram),
                             commit_headroom())});
  if (const auto path = cgroup_path("0::")) add_limits_up_to_root(limits, *path, kUnified);
  if (const auto path = cgroup_path(":memory:")) add_limits_up_to_root(limits, *path, kLegacy);
  return limits;
}

uint64_t available_memory() {
  uint64_t least = kUnknownMemory;
  for (const MemoryLimit& limit : memory_limits()) least = std::min(least, limit.available);
  return least;
}

uint64_t total_memory() {
  uint64_t least = kUnknownMemory;
  for (const MemoryLimit& limit : memory_limits()) least = std::min(least, limit.total);
  return least;
}

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

unsigned current_numa_node() {
  unsigned processor = 0;
  unsigned node = 0;
  return getcpu(&processor, &node) == 0 ? node : 0;
}

uint64_t available_memory_on_node(unsigned node) {
  const std::string path = "/sys/devices/system/node/node" + std::to_string(node) + "/meminfo";
  const std::optional<uint64_t> free = bytes_behind(path, "MemFree:");
  if (!free) return available_memory();
  return *free + bytes_behind(path, "Inactive(file):").value_or(0);
}

int32_t process_id() { return getpid(); }

int32_t parent_process_id() { return getppid(); }

std::string command_line() {
  constexpr size_t kMostBytes = 1024;
  std::string text = read_text_file("/proc/self/cmdline").value_or("");
  while (text.ends_with('\0')) text.pop_back();
  for (char& each : text) {
    if (each == '\0' || each == '\n') each = ' ';
  }
  return text.substr(0, kMostBytes);
}

}  // namespace understudy::platform
