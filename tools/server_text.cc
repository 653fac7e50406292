// SPDX-License-Identifier: Apache-2.0
#include "tools/server_text.h"

#include "base/size_text.h"
#include "tools/servers.h"
#include "tools/text_table.h"

namespace understudy::command {

namespace {

std::string part_of(uint64_t used, uint64_t total) {
  return size_cell(used) + " of " + RoughSizeText(total).c_str();
}

}  // namespace

std::string headline(const ServerView& server) {
  const size_t devices = server.devices.size();
  return "Server at " + server.directory + ": " + std::to_string(devices) +
         (devices == 1 ? " device, " : " devices, ") + product_text(server) + ", " +
         SizeText(server.memory).c_str() + (devices == 1 ? "" : " each");
}

std::string devices_text(const ServerView& server) {
  TextTable table(
      {{"DEVICE"}, {"USED"}, {"NORMAL PAGES"}, {"HUGE PAGES"}, {"SHARED", Align::kRight}});
  for (size_t number = 0; number < server.devices.size(); ++number) {
    const DeviceView& device = server.devices[number];
    table.add_row({std::to_string(number), part_of(device.used.total(), device.capacity.total()),
                   part_of(device.used.normal, device.capacity.normal),
                   part_of(device.used.huge, device.capacity.huge),
                   size_cell(device.shared.total())});
  }
  return table.text();
}

std::string uses_text(const ServerView& server) {
  TextTable table({{"PID", Align::kRight},
                   {"PROGRAM"},
                   {"DEVICE", Align::kRight},
                   {"USED", Align::kRight},
                   {"PEAK", Align::kRight},
                   {"NORMAL", Align::kRight},
                   {"HUGE", Align::kRight},
                   {"ALLOCATIONS", Align::kRight}});
  for (const ProcessView& process : server.processes) {
    const std::string program = program_name(process);
    for (size_t number = 0; number < process.devices.size(); ++number) {
      const DeviceUseView& use = process.devices[number];
      if (use.used.total() == 0 && use.peak == 0) continue;
      table.add_row({std::to_string(process.process), program, std::to_string(number),
                     size_cell(use.used.total()), size_cell(use.peak), size_cell(use.used.normal),
                     size_cell(use.used.huge), std::to_string(use.allocations)});
    }
  }
  return table.empty() ? "No process has memory of a device.\n" : table.text();
}

std::string processes_text(const ServerView& server) {
  TextTable table({{"PID", Align::kRight},
                   {"PROGRAM"},
                   {"HOST", Align::kRight},
                   {"4 KIB", Align::kRight},
                   {"2 MIB", Align::kRight},
                   {"HUGETLB", Align::kRight},
                   {"LOCKED", Align::kRight},
                   {"STREAMS", Align::kRight},
                   {"BUSY", Align::kRight},
                   {"EXPORTS", Align::kRight},
                   {"HOLDS", Align::kRight}});
  for (const ProcessView& process : server.processes) {
    const HostMemoryView& host = process.host;
    table.add_row({std::to_string(process.process), program_name(process),
                   size_cell(host.behind_blocks()), size_cell(host.small_pages),
                   size_cell(host.collapsed), size_cell(host.hugetlb), size_cell(host.page_locked),
                   std::to_string(process.streams), std::to_string(process.busy_streams),
                   std::to_string(process.exports), std::to_string(process.holds)});
  }
  return table.text();
}

}  // namespace understudy::command
