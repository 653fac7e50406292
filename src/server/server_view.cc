// SPDX-License-Identifier: Apache-2.0
#include "server/server_view.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "base/sizes.h"
#include "platform/process_identity.h"
#include "platform/system_number.h"
#include "server/ledger_reader.h"
#include "server/pool_word.h"

namespace understudy {

namespace {

template <size_t kSize>
std::string text_of(const std::array<char, kSize>& text) {
  return {text.begin(), std::find(text.begin(), text.end(), '\0')};
}

PoolBytes used_of(const std::array<std::atomic<uint64_t>, kPools>& words) {
  return {PoolWord(words[0].load()).used() * kNormalPage,
          PoolWord(words[1].load()).used() * kNormalPage};
}

void add(PoolBytes& sum, const PoolBytes& part) {
  sum.normal += part.normal;
  sum.huge += part.huge;
}

uint64_t charges_of(const ProcessFigures& figures, size_t device) {
  uint64_t sum = 0;
  for (const auto& thread : figures.charges) sum += thread[device].load();
  return sum;
}

ProcessView process_view(const LedgerCopy& copy, unsigned number, const ProcessFigures& figures) {
  const ProcessSlot& slot = copy.slots[number];
  ProcessView view;
  view.process = slot.process;
  view.soc = text_of(figures.soc);
  for (size_t device = 0; device < copy.header->shape.devices; ++device) {
    const DeviceUse& use = copy.use(number, device);
    view.devices.push_back(
        {used_of(use.words), use.peak.load() * kNormalPage, charges_of(figures, device)});
  }
  view.host = {.small_pages = figures.backing[0].load(),
               .collapsed = figures.backing[1].load(),
               .hugetlb = figures.backing[2].load(),
               .page_locked = figures.page_locked.load()};
  view.streams = figures.streams.load();
  for (const auto& mark : figures.busy) view.busy_streams += mark.load() != 0 ? 1U : 0U;
  view.exports = slot.exports;
  view.holds = slot.holds;
  return view;
}

void add_shape(ServerView& view, const LedgerHeader& header) {
  const ServerShape& shape = header.shape;
  view.product = text_of(shape.product);
  view.memory = shape.memory;
  view.normal_memory = shape.normal_memory;
  for (unsigned device = 0; device < shape.devices; ++device) {
    DeviceView& added = view.devices.emplace_back();
    added.capacity = {shape.normal_memory, shape.memory - shape.normal_memory};
    added.shared = used_of(header.shared[device].words);
    added.idle = {shape.idle_usage.normal, shape.idle_usage.huge};
    added.used = added.shared;
    add(added.used, added.idle);
  }
}

void add_processes(ServerView& view, const LedgerReader& reader, const LedgerCopy& copy) {
  const uint64_t own_namespace = platform::own_identity().pid_namespace;
  for (unsigned slot = 0; slot < copy.slots.size(); ++slot) {
    const ProcessSlot& found = copy.slots[slot];
    if (reader.has_ended(slot, found)) continue;
    const std::unique_ptr<ProcessFigures> figures = reader.read_figures(slot, found);
    if (figures == nullptr) continue;
    ProcessView& process = view.processes.emplace_back(process_view(copy, slot, *figures));
    process.is_of_other_namespace = found.pid_namespace != own_namespace;
    for (size_t device = 0; device < view.devices.size(); ++device) {
      add(view.devices[device].used, process.devices[device].used);
    }
  }
  if (!view.processes.empty()) view.soc = view.processes.front().soc;
}

ServerView without_server(std::string directory, ServerState state, std::string explanation) {
  ServerView view;
  view.state = state;
  view.directory = std::move(directory);
  view.explanation = std::move(explanation);
  return view;
}

}  // namespace

DeviceUseView ProcessView::all_devices() const {
  DeviceUseView sum;
  for (const DeviceUseView& device : devices) {
    add(sum.used, device.used);
    sum.peak += device.peak;
    sum.allocations += device.allocations;
  }
  return sum;
}

ServerView look_at_server(const std::string& directory) {
  const std::string path = directory + "/ledger";
  const Result<LedgerReader> reader = LedgerReader::open(path);
  if (!reader.ok()) {
    if (platform::means_absent(reader.error())) {
      return without_server(directory, ServerState::kAbsent, "there is no server at " + directory);
    }
    return without_server(directory, ServerState::kUnreadable, reader.error().text());
  }
  const std::optional<LedgerCopy> copy = reader.value().read();
  if (!copy) {
    const std::unique_ptr<LedgerHeader> header = reader.value().read_header();
    if (header != nullptr && kind_of(*header) == HeaderKind::kOtherVersion) {
      return without_server(directory, ServerState::kOtherVersion,
                            path + " is of version " + std::to_string(header->version) +
                                "; this command reads version " + std::to_string(kLedgerVersion));
    }
    return without_server(directory, ServerState::kDamaged, path + " is not a whole ledger");
  }
  ServerView view;
  view.state = ServerState::kLive;
  view.directory = directory;
  add_shape(view, *copy->header);
  add_processes(view, reader.value(), *copy);
  if (view.processes.empty()) {
    view.state = ServerState::kAbandoned;
    view.explanation = "no process uses the server at " + directory;
  }
  return view;
}

}  // namespace understudy
