// SPDX-License-Identifier: Apache-2.0
//
// What this machine has, as the kernel tells it at the time of the call.
#pragma once

#include <cstdint>
#include <optional>

namespace understudy::platform {

// Bytes this process could still take before the machine or its memory cgroup is full.
uint64_t available_memory();
// What the machine has, or as much of it as the memory cgroup lets this process have.
uint64_t total_memory();

// How many bytes of addresses this process may have; a number beyond all of them if it is not
// limited.
uint64_t address_space_limit();

// Whether the pool of 2 MiB or 1 GiB pages has, or may grow, any page.
bool has_hugetlb_pool(uint64_t page_size);

bool numa_node_exists(uint64_t node);
uint64_t available_memory_on_node(unsigned node);

int32_t process_id();

}  // namespace understudy::platform
