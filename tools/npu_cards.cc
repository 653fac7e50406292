// SPDX-License-Identifier: Apache-2.0
#include "tools/npu_cards.h"

#include "base/sizes.h"
#include "device/config.h"
#include "device/pci_bus_id.h"
#include "tools/servers.h"

namespace understudy::command {

namespace {

ServerView idle_server(const Settings& settings) {
  ServerView idle;
  idle.product = settings.product.key;
  idle.soc = settings.soc_name;
  idle.memory = settings.memory;
  idle.normal_memory = settings.normal_memory;
  idle.devices.resize(settings.server_devices);
  for (DeviceView& device : idle.devices) {
    device.capacity = {settings.normal_memory, settings.memory - settings.normal_memory};
    device.idle = {settings.idle_usage.normal, settings.idle_usage.huge};
    device.used = device.idle;
  }
  return idle;
}

Chip chip_of(const ServerView& server, unsigned device) {
  const DeviceView& figures = server.devices[device];
  Chip chip;
  chip.device = device;
  chip.bus_id = PciBusId::of_device(static_cast<int32_t>(device)).text().data();
  for (char& digit : chip.bus_id) digit = static_cast<char>(toupper(digit));
  chip.used = figures.used.total() / kMiB;
  chip.total = figures.capacity.total() / kMiB;
  chip.huge_pages_used = figures.used.huge / kHugePage;
  chip.huge_pages = figures.capacity.huge / kHugePage;
  for (const ProcessView& process : server.processes) {
    const uint64_t bytes = process.devices[device].used.total();
    if (bytes == 0) continue;
    chip.processes.push_back({process.process, program_name(process), bytes / kMiB});
  }
  return chip;
}

}  // namespace

std::string CardSet::chip_name() const {
  constexpr std::string_view kPrefix = "Ascend";
  if (has_pairs()) return "Ascend910";
  return soc.starts_with(kPrefix) ? soc.substr(kPrefix.size()) : soc;
}

Result<CardSet> find_cards() {
  US_TRY_ASSIGN(const std::string directory, chosen_directory(""));
  US_TRY_ASSIGN(const Settings settings, read_settings());
  ServerView server = look_at_server(directory);
  if (server.state != ServerState::kLive) server = idle_server(settings);
  CardSet set;
  set.product = find_product(server.product);
  if (set.product == nullptr) {
    return Error::format(ErrorCode::kNotSupported, "product %s of the server at %s is unknown",
                         server.product.c_str(), directory.c_str());
  }
  set.driver = settings.driver->name;
  set.soc = server.soc.empty() ? std::string(set.product->socs[0].name) : server.soc;
  const unsigned chips_per_card = set.has_pairs() ? 2 : 1;
  for (unsigned device = 0; device < server.devices.size(); ++device) {
    const unsigned chip = device % chips_per_card;
    if (chip == 0) set.cards.push_back({device / chips_per_card, {}});
    set.cards.back().chips.push_back(chip_of(server, device));
    set.cards.back().chips.back().chip = chip;
  }
  return set;
}

}  // namespace understudy::command
