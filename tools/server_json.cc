// SPDX-License-Identifier: Apache-2.0
#include "tools/server_json.h"

#include "tools/servers.h"

namespace understudy::command {

namespace {

Json device_json(const DeviceView& device, size_t number) {
  const auto pool = [&](uint64_t PoolBytes::*kind) {
    return Json{{"total", device.capacity.*kind},
                {"used", device.used.*kind},
                {"shared", device.shared.*kind},
                {"idle", device.idle.*kind}};
  };
  return {
      {"device", number}, {"normal", pool(&PoolBytes::normal)}, {"huge", pool(&PoolBytes::huge)}};
}

// The devices that the process has or had memory of.
Json uses_json(const ProcessView& process) {
  Json uses = Json::array();
  for (size_t number = 0; number < process.devices.size(); ++number) {
    const DeviceUseView& use = process.devices[number];
    if (use.used.total() == 0 && use.peak == 0 && use.allocations == 0) continue;
    uses.push_back({{"device", number},
                    {"normal", use.used.normal},
                    {"huge", use.used.huge},
                    {"peak", use.peak},
                    {"allocations", use.allocations}});
  }
  return uses;
}

Json process_json(const ProcessView& process) {
  return {{"pid", process.process},
          {"program", program_name(process)},
          {"devices", uses_json(process)},
          {"host_memory",
           {{"small_pages", process.host.small_pages},
            {"collapsed", process.host.collapsed},
            {"hugetlb", process.host.hugetlb},
            {"page_locked", process.host.page_locked}}},
          {"streams", process.streams},
          {"busy_streams", process.busy_streams},
          {"exports", process.exports},
          {"holds", process.holds}};
}

}  // namespace

Json to_json(const ServerView& server) {
  if (server.state != ServerState::kLive) return nullptr;
  Json devices = Json::array();
  for (const DeviceView& device : server.devices) {
    devices.push_back(device_json(device, devices.size()));
  }
  Json processes = Json::array();
  for (const ProcessView& process : server.processes) processes.push_back(process_json(process));
  return {{"directory", server.directory},
          {"product", server.product},
          {"soc", server.soc},
          {"memory", server.memory},
          {"normal_memory", server.normal_memory},
          {"devices", std::move(devices)},
          {"processes", std::move(processes)}};
}

}  // namespace understudy::command
