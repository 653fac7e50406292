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

// The number behind `name` in a text of names and numbers.
std::optional<uint64_t> number_behind(const std::optional<std::string>& text, const char* name) {
  const size_t at = text ? text->find(name) : std::string::npos;
  uint64_t number = 0;
  if (at == std::string::npos ||
      sscanf(text->c_str() + at + strlen(name), "%" SCNu64, &number) != 1) {
    return std::nullopt;
  }
  return number;
}

// The same for figures in KiB, as those of a meminfo file are.
std::optional<uint64_t> bytes_behind(const std::optional<std::string>& text, const char* name) {
  const std::optional<uint64_t> kibibytes = number_behind(text, name);
  if (!kibibytes) return std::nullopt;
  return *kibibytes * kKiB;
}

std::optional<std::string> memory_figures() { return read_text_file("/proc/meminfo"); }

using SystemFigures = struct sysinfo;

// What the machine has, from the kernel itself, for a process that may not read /proc/meminfo. What
// is free is less than what is available: files that are cached would give way.
uint64_t memory_without_files(unsigned long SystemFigures::*figure) {
  SystemFigures facts = {};
  if (sysinfo(&facts) != 0) return kUnknownMemory;
  return uint64_t{facts.*figure} * facts.mem_unit;
}

uint64_t machine_total(const std::optional<std::string>& figures) {
  const std::optional<uint64_t> total = bytes_behind(figures, "MemTotal:");
  return total ? *total : memory_without_files(&SystemFigures::totalram);
}

// How the files of a cgroup hierarchy are called.
struct CgroupFiles {
  const char* marker;  // in /proc/self/cgroup, the path of the process's cgroup behind it
  const char* mount;
  const char* limit;
  const char* soft_limit;  // where the kernel begins to throttle
  const char* usage;
  const char* cached;  // the line of memory.stat for it and the cgroups below
};
constexpr CgroupFiles kHierarchies[] = {
    {"0::", "/sys/fs/cgroup", "memory.max", "memory.high", "memory.current", "\ninactive_file "},
    {":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", nullptr, "memory.usage_in_bytes",
     "\ntotal_inactive_file "},
};

// Calls visit(folder, files) for the cgroups around the process, each up to the root of its
// hierarchy.
template <typename Visit>
void for_each_cgroup(Visit visit) {
  const std::optional<std::string> paths = read_text_file("/proc/self/cgroup");
  for (const CgroupFiles& files : kHierarchies) {
    const size_t at = paths ? paths->find(files.marker) : std::string::npos;
    if (at == std::string::npos) continue;
    const size_t begin = at + strlen(files.marker);
    std::string path = paths->substr(begin, paths->find('\n', begin) - begin);
    while (true) {
      visit(files.mount + (path == "/" ? "" : path) + "/", files);
      if (path.empty() || path == "/") break;
      path.resize(path.rfind('/'));
    }
  }
}

// A number that no other cgroup has while this one exists.
uint64_t cgroup_id(const std::string& folder) {
  constexpr unsigned kInodeBits = 48;
  struct stat facts = {};
  if (stat(folder.c_str(), &facts) != 0) return ~uint64_t{0};
  return uint64_t{facts.st_dev} << kInodeBits ^ uint64_t { facts.st_ino };
}

std::optional<uint64_t> total_of_cgroup(const std::string& folder, const CgroupFiles& files) {
  const std::optional<uint64_t> limit = number_in(folder + files.limit);
  const std::optional<uint64_t> soft =
      files.soft_limit != nullptr ? number_in(folder + files.soft_limit) : std::nullopt;
  if (!limit || !soft) return limit ? limit : soft;
  return std::min(*limit, *soft);
}

std::optional<uint64_t> used_of_cgroup(const std::string& folder, const CgroupFiles& files) {
  const std::optional<uint64_t> usage = number_in(folder + files.usage);
  if (!usage) return std::nullopt;
  // Cached files count as used, but give way.
  const std::optional<uint64_t> cached =
      number_behind(read_text_file(folder + "memory.stat"), files.cached);
  return *usage - std::min(*usage, cached.value_or(0));
}

// Where the kernel promises no more than it has, promises run out before memory does.
uint64_t commit_headroom(const std::optional<std::string>& figures) {
  constexpr uint64_t kStrict = 2;
  if (number_in("/proc/sys/vm/overcommit_memory").value_or(0) != kStrict) return kUnknownMemory;
  const std::optional<uint64_t> limit = bytes_behind(figures, "CommitLimit:");
  const std::optional<uint64_t> promised = bytes_behind(figures, "Committed_AS:");
  if (!limit || !promised) return kUnknownMemory;
  return *limit - std::min(*limit, *promised);
}

}  // namespace

std::vector<MemoryLimit> memory_limits() {
  const std::optional<std::string> figures = memory_figures();
  const std::optional<uint64_t> available = bytes_behind(figures, "MemAvailable:");
  std::vector<MemoryLimit> limits;
  limits.push_back(
      {.id = 0,
       .total = machine_total(figures),
       .available = std::min(available ? *available : memory_without_files(&SystemFigures::freeram),
                             commit_headroom(figures))});
  for_each_cgroup([&](const std::string& folder, const CgroupFiles& files) {
    const std::optional<uint64_t> total = total_of_cgroup(folder, files);
    // Those that are tighter than the machine. Of the others, nothing more is read.
    if (!total || *total >= limits.front().total) return;
    const std::optional<uint64_t> used = used_of_cgroup(folder, files);
    if (!used) return;
    limits.push_back({cgroup_id(folder), *total, *total - std::min(*total, *used)});
  });
  return limits;
}

uint64_t available_memory() {
  uint64_t least = kUnknownMemory;
  for (const MemoryLimit& limit : memory_limits()) least = std::min(least, limit.available);
  return least;
}

uint64_t total_memory() {
  uint64_t least = machine_total(memory_figures());
  for_each_cgroup([&](const std::string& folder, const CgroupFiles& files) {
    least = std::min(least, total_of_cgroup(folder, files).value_or(kUnknownMemory));
  });
  return least;
}

bool is_memory_known() {
  return memory_without_files(&SystemFigures::totalram) != kUnknownMemory ||
         total_memory() != kUnknownMemory;
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
  const std::optional<std::string> figures =
      read_text_file("/sys/devices/system/node/node" + std::to_string(node) + "/meminfo");
  const std::optional<uint64_t> free = bytes_behind(figures, "MemFree:");
  if (!free) return available_memory();
  return *free + bytes_behind(figures, "Inactive(file):").value_or(0);
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
