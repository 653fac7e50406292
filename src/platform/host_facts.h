// SPDX-License-Identifier: Apache-2.0
//
// What this machine has, as the kernel tells it at the time of the call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace understudy::platform {

// What the functions below answer where the host does not tell: no limit is known.
inline constexpr uint64_t kUnknownMemory = UINT64_MAX;

// One limit of the memory that this process may use: the machine's, or that of a memory cgroup
// around the process.
struct MemoryLimit {
  uint64_t id = 0;  // 0: the machine; else the cgroup, as long as it exists
  uint64_t total = kUnknownMemory;
  uint64_t available = kUnknownMemory;  // what could still be taken before it is reached
};
// All limits that may be reached, the machine's first.
std::vector<MemoryLimit> memory_limits();

// Bytes this process could still take before the machine or its memory cgroup is full.
uint64_t available_memory();
// What the machine has, or as much of it as the memory cgroup lets this process have.
uint64_t total_memory();
// Whether that is known. Reads no file where the kernel itself tells.
bool is_memory_known();

// How many bytes of addresses this process may have; a number beyond all of them if it is not
// limited.
uint64_t address_space_limit();

// Whether the pool of 2 MiB or 1 GiB pages has, or may grow, any page.
bool has_hugetlb_pool(uint64_t page_size);

bool numa_node_exists(uint64_t node);
// The node of the processor that the calling thread runs on right now.
unsigned current_numa_node();
uint64_t available_memory_on_node(unsigned node);

int32_t process_id();
int32_t parent_process_id();
// The words that the process was started with, with spaces between them, as far as they can be
// read. May throw std::bad_alloc.
std::string command_line();

}  // namespace understudy::platform
