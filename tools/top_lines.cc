// SPDX-License-Identifier: Apache-2.0
#include "tools/top_lines.h"

#include <algorithm>
#include <cstdio>

#include "base/size_text.h"
#include "tools/servers.h"
#include "tools/text_table.h"

namespace understudy::command {

namespace {

constexpr size_t kWide = 60;      // room for more than the first figures
constexpr size_t kVeryWide = 90;  // room for all of them, and a bar per process

double share_of(uint64_t used, uint64_t total) {
  if (total == 0) return 0;
  return std::min(1.0, static_cast<double>(used) / static_cast<double>(total));
}

// Appends "[||||    ]" of a width to a line.
void add_bar(ScreenLine& line, double part, size_t width) {
  const size_t room = std::max<size_t>(width, 3) - 2;
  auto full = static_cast<size_t>(part * static_cast<double>(room) + 0.5);
  if (part > 0 && full == 0) full = 1;
  line.text += '[';
  line.bar_begin = line.text.size();
  line.bar_end = line.bar_begin + full;
  line.text += std::string(full, '|') + std::string(room - full, ' ') + ']';
}

std::string percent(double part) {
  char text[8];
  snprintf(text, sizeof text, "%3.0f%%", part * 100);
  return text;
}

ScreenLine device_line(const ServerView& server, size_t number, bool selected, size_t width) {
  const DeviceView& device = server.devices[number];
  const uint64_t total = device.capacity.total();
  const double part = share_of(device.used.total(), total);
  std::string label = " " + percent(part);
  if (width >= kWide) {
    label += fit(size_cell(device.used.total()), 11, Align::kRight) + " of " +
             fit(RoughSizeText(total).c_str(), 10);
  }
  ScreenLine line{fit(std::to_string(number), 3, Align::kRight) + " "};
  line.style = selected ? LineStyle::kSelected : LineStyle::kPlain;
  add_bar(line, part, width - std::min(width, line.text.size() + label.size()));
  line.text += label;
  return line;
}

// As many devices as there is room for, the chosen one among them.
void add_devices(std::vector<ScreenLine>& lines, const ServerView& server, const TopChoice& choice,
                 ScreenSize size) {
  const size_t room = std::max<size_t>(size.rows / 2, 3) - 2;
  const size_t shown = std::min(server.devices.size(), room);
  const size_t chosen = choice.device.value_or(0);
  const size_t first = chosen < shown ? 0 : chosen - shown + 1;
  for (size_t number = first; number < first + shown; ++number) {
    lines.push_back(device_line(server, number, choice.device == number, size.columns));
  }
}

DeviceUseView use_of(const ProcessView& process, const TopChoice& choice) {
  return choice.device ? process.devices[*choice.device] : process.all_devices();
}

std::string rate_text(std::optional<double> rate) {
  if (!rate) return "-";
  char text[24];
  snprintf(text, sizeof text, *rate < 10 ? "%.1f" : "%.0f", *rate);
  return text;
}

// The cells of a process, or their titles; more of them on a wide screen.
struct Cells {
  std::string pid, program, used, rate, busy, host, peak;

  std::string text(size_t width) const {
    std::string line = fit(pid, 7, Align::kRight) + " " + fit(program, 13) + " " +
                       fit(used, 9, Align::kRight) + " " + fit(rate, 7, Align::kRight);
    if (width >= kWide) line += " " + fit(busy, 7, Align::kRight) + fit(host, 12, Align::kRight);
    if (width >= kVeryWide) line += fit(peak, 12, Align::kRight) + "  ";
    return line;
  }
};

ScreenLine process_line(const ProcessView& process, const AllocationRates& rates,
                        const TopChoice& choice, uint64_t total, size_t width) {
  const DeviceUseView use = use_of(process, choice);
  const Cells cells{std::to_string(process.process),
                    program_name(process),
                    size_cell(use.used.total()),
                    rate_text(rates.of(process)),
                    std::to_string(process.busy_streams) + "/" + std::to_string(process.streams),
                    size_cell(process.host.behind_blocks()),
                    size_cell(use.peak)};
  ScreenLine line{cells.text(width)};
  if (width >= kVeryWide) {
    add_bar(line, share_of(use.used.total(), total), width - line.text.size());
  }
  return line;
}

void add_processes(std::vector<ScreenLine>& lines, const ServerView& server,
                   const AllocationRates& rates, const TopChoice& choice, size_t width) {
  const uint64_t total = server.memory * (choice.device ? 1 : server.devices.size());
  std::vector<const ProcessView*> order;
  for (const ProcessView& process : server.processes) order.push_back(&process);
  std::stable_sort(order.begin(), order.end(), [&](const auto* one, const auto* other) {
    return use_of(*one, choice).used.total() > use_of(*other, choice).used.total();
  });
  const Cells titles{"PID", "PROGRAM", "USED", "ALLOC/S", "BUSY", "HOST", "PEAK"};
  lines.push_back({titles.text(width), LineStyle::kTitle});
  for (const ProcessView* process : order) {
    lines.push_back(process_line(*process, rates, choice, total, width));
  }
}

void add_help(std::vector<ScreenLine>& lines) {
  for (const char* text :
       {"q              quit", "Tab, arrows    choose a device, or all",
        "h              this help, and back", "", "USED     device memory of the process",
        "ALLOC/S  allocations per second", "BUSY     streams with work / streams",
        "HOST     host memory behind it", "PEAK     the most device memory it had"}) {
    lines.push_back({text});
  }
}

std::string title(const ServerView& server, const TopChoice& choice) {
  if (server.state != ServerState::kLive) return "understudy top  " + server.directory;
  const size_t processes = server.processes.size();
  const std::string device =
      choice.device ? "device " + std::to_string(*choice.device) : "all devices";
  return "understudy top  " + device + "  " + std::to_string(processes) +
         (processes == 1 ? " process  " : " processes  ") + product_text(server) + "  " +
         server.directory;
}

}  // namespace

void AllocationRates::update(const ServerView& server, Moment now) {
  const double seconds = std::chrono::duration<double>(now - last_).count();
  std::map<int32_t, Seen> found;
  for (const ProcessView& process : server.processes) {
    const uint64_t count = process.all_devices().allocations;
    Seen seen{count, std::nullopt};
    const auto before = seen_.find(process.process);
    if (before != seen_.end() && seconds > 0 && count >= before->second.allocations) {
      seen.rate = static_cast<double>(count - before->second.allocations) / seconds;
    }
    found.emplace(process.process, seen);
  }
  seen_ = std::move(found);
  last_ = now;
}

std::optional<double> AllocationRates::of(const ProcessView& process) const {
  const auto found = seen_.find(process.process);
  return found == seen_.end() ? std::nullopt : found->second.rate;
}

void TopChoice::move(Step step, size_t devices) {
  // Places 0 to `devices`: the first one is "all".
  const size_t places = devices + 1;
  const size_t place = device ? *device + 1 : 0;
  const size_t next = (place + (step == Step::kNext ? 1 : devices)) % places;
  device = next == 0 ? std::nullopt : std::optional(next - 1);
}

std::vector<ScreenLine> top_lines(const ServerView& server, const AllocationRates& rates,
                                  const TopChoice& choice, ScreenSize size) {
  std::vector<ScreenLine> lines{{title(server, choice), LineStyle::kTitle}};
  TopChoice there = choice;  // another server may have fewer devices
  if (there.device && *there.device >= server.devices.size()) there.device.reset();
  if (choice.help) {
    add_help(lines);
  } else if (server.state != ServerState::kLive) {
    lines.push_back({server.explanation});
  } else {
    add_devices(lines, server, there, size);
    add_processes(lines, server, rates, there, size.columns);
  }
  lines.resize(std::max<size_t>(size.rows, 1) - 1);
  lines.push_back({"q quit  Tab device  h help", LineStyle::kFaint});
  for (ScreenLine& line : lines) line.text = line.text.substr(0, size.columns);
  return lines;
}

}  // namespace understudy::command
