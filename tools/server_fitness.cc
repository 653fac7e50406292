// SPDX-License-Identifier: Apache-2.0
#include "tools/server_fitness.h"

#include <algorithm>

#include "base/size_text.h"
#include "tools/figure_text.h"

namespace understudy::command {

namespace {

std::string text_of(uint64_t bytes) { return RoughSizeText(bytes).c_str(); }

// In whole parts of a hundred, cut off.
uint64_t percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0
                    : static_cast<uint64_t>(static_cast<double>(part) / static_cast<double>(whole) *
                                            100.0);
}

std::string percent_text(uint64_t part, uint64_t whole) {
  const uint64_t share = percent(part, whole);
  return share == 0 && part > 0 ? "less than 1 %" : std::to_string(share) + " %";
}

std::string name_of(const ProcessView& process) {
  return "process " + std::to_string(process.process) +
         (process.is_of_other_namespace ? " of another pid namespace" : "");
}

// One with at least one device.
void add_fullest_device(ServerFitness& fitness, const ServerView& server) {
  const auto by_use = [](const DeviceView& one, const DeviceView& other) {
    return one.used.total() < other.used.total();
  };
  const auto fullest = std::max_element(server.devices.begin(), server.devices.end(), by_use);
  const auto number = fullest - server.devices.begin();
  const DeviceView& device = *fullest;
  fitness.facts["fullest_device"] = {{"device", number},
                                     {"used", device.used.total()},
                                     {"shared", device.shared.total()},
                                     {"capacity", device.capacity.total()}};
  if (device.used.total() == 0) {
    fitness.sentences.push_back("No device memory is in use.");
    return;
  }
  const uint64_t shared = device.shared.total();
  fitness.sentences.push_back(
      "Device " + std::to_string(number) + " is the fullest: " + text_of(device.used.total()) +
      " of " + text_of(device.capacity.total()) + " are in use (" +
      percent_text(device.used.total(), device.capacity.total()) + "), " +
      (shared == 0 ? "none" : text_of(shared)) + " of it shared between processes.");
  const bool lacks_normal = device.used.normal == device.capacity.normal;
  const bool lacks_huge = device.used.huge == device.capacity.huge;
  if (lacks_normal != lacks_huge) {
    fitness.sentences.push_back(lacks_normal
                                    ? "Its normal pages are used up while it has huge ones; a "
                                      "larger normal_memory moves the border."
                                    : "Its huge pages are used up while it has normal ones; a "
                                      "smaller normal_memory moves the border.");
  }
}

void add_biggest_holder(ServerFitness& fitness, const ServerView& server) {
  const ProcessView* biggest = nullptr;
  uint64_t most = 0;
  for (const ProcessView& process : server.processes) {
    const uint64_t used = process.all_devices().used.total();
    if (used <= most) continue;
    biggest = &process;
    most = used;
  }
  if (biggest == nullptr) return;
  fitness.facts["biggest_holder"] = {{"process", biggest->process}, {"used", most}};
  fitness.sentences.push_back("The biggest holder is " + name_of(*biggest) + " with " +
                              text_of(most) + ", shared memory not counted.");
}

HostMemoryView host_memory_of(const ServerView& server) {
  HostMemoryView sum;
  for (const ProcessView& process : server.processes) {
    sum.small_pages += process.host.small_pages;
    sum.collapsed += process.host.collapsed;
    sum.hugetlb += process.host.hugetlb;
    sum.page_locked += process.host.page_locked;
  }
  return sum;
}

// Host memory in 4 KiB pages is what fragmentation means here: addresses and capacity have none.
void add_host_memory(ServerFitness& fitness, const HostMemoryView& host, uint64_t host_memory) {
  const uint64_t behind = host.behind_blocks();
  const uint64_t fragmented = percent(host.small_pages, behind);
  const uint64_t pinned = percent(host.page_locked, host_memory);
  fitness.facts["host_memory"] = {{"behind_blocks", behind},
                                  {"in_small_pages", host.small_pages},
                                  {"page_locked", host.page_locked}};
  fitness.sentences.push_back(text_of(behind) + " of host memory are behind it, " +
                              percent_text(host.small_pages, behind) + " of it in 4 KiB pages.");
  constexpr uint64_t kMuch = 50;
  if (fragmented > kMuch) {
    fitness.sentences.push_back(
        "That is much: host memory is fragmented, or blocks are written in small parts; the check "
        "of collapse tells whether 2 MiB pages work.");
  }
  fitness.sentences.push_back(text_of(host.page_locked) + " of host memory are page-locked, " +
                              percent_text(host.page_locked, host_memory) + " of the machine's.");
  if (pinned > kMuch) {
    fitness.sentences.push_back("That is much: none of it can be swapped out for other programs.");
  }
}

}  // namespace

ServerFitness fitness_of(const ServerView& server, uint64_t host_memory) {
  ServerFitness fitness;
  fitness.facts = {{"directory", server.directory},
                   {"is_live", server.state == ServerState::kLive},
                   {"processes", server.processes.size()}};
  if (server.state != ServerState::kLive || server.devices.empty()) {
    fitness.sentences.push_back("No server runs: " + server.explanation + ".");
    return fitness;
  }
  fitness.sentences.push_back("The server at " + server.directory + " has " +
                              counted(server.processes.size(), "process", "processes") + " and " +
                              counted(server.devices.size(), "device", "devices") + ".");
  add_fullest_device(fitness, server);
  add_biggest_holder(fitness, server);
  add_host_memory(fitness, host_memory_of(server), host_memory);
  return fitness;
}

}  // namespace understudy::command
