// SPDX-License-Identifier: Apache-2.0
//
// The command under the name npu-smi: `npu-smi info` in its various forms, in the layout that
// programs which parse it expect. What a software NPU has not (power, temperature, cores at work)
// is 0, and what it cannot know (serial numbers) is NA.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device/config.h"
#include "tools/command.h"
#include "tools/command_line.h"
#include "tools/npu_cards.h"
#include "tools/text_table.h"

namespace understudy::command {

namespace {

// ---- npu-smi info ----

constexpr size_t kFirst = 27;  // widths of the three parts of the table
constexpr size_t kSecond = 15;
constexpr size_t kThird = 52;
constexpr size_t kAll = kFirst + kSecond + kThird + 2;

void print_rule(char line) {
  printf("+%s+%s+%s+\n", std::string(kFirst, line).c_str(), std::string(kSecond, line).c_str(),
         std::string(kThird, line).c_str());
}

void print_row(const std::string& first, const std::string& second, const std::string& third) {
  printf("|%s|%s|%s|\n", fit(" " + first, kFirst).c_str(), fit(" " + second, kSecond).c_str(),
         fit(" " + third, kThird).c_str());
}

void print_whole_row(const std::string& text) { printf("|%s|\n", fit(" " + text, kAll).c_str()); }

// The three figures of a row.
std::string figures(const std::string& one, const std::string& two, const std::string& three) {
  return fit(one, 12) + fit(two, 18) + three;
}

std::string pair_of(uint64_t used, uint64_t total) {
  return fit(std::to_string(used), std::max<size_t>(5, std::to_string(used).size())) + "/ " +
         std::to_string(total);
}

void print_chip(const CardSet& set, const Card& card, const Chip& chip) {
  // What huge pages a device has is a figure of those with ordinary memory.
  const std::string huge =
      set.has_hbm() ? pair_of(0, 0) : pair_of(chip.huge_pages_used, chip.huge_pages);
  const std::string memory = pair_of(chip.used, chip.total);
  print_row(fit(std::to_string(card.number), 6) + set.chip_name(), "OK",
            figures(chip.chip == 0 ? "0.0" : "-", "0", huge));
  print_row(fit(std::to_string(chip.chip), 6) +
                (set.has_pairs() || !set.has_hbm() ? std::to_string(chip.device) : ""),
            chip.bus_id,
            set.has_hbm() ? figures("0", pair_of(0, 0), memory) : figures("0", memory, ""));
}

void print_chips(const CardSet& set) {
  printf("+%s+\n", std::string(kAll, '-').c_str());
  print_whole_row(fit("npu-smi understudy-" US_VERSION, 33) + "Version: " + set.driver);
  print_rule('-');
  print_row("NPU   Name", "Health", "Power(W)    Temp(C)           Hugepages-Usage(page)");
  const std::string second_name = set.has_pairs() ? "Chip  Phy-ID" : "Chip  Device";
  print_row(set.has_pairs() || !set.has_hbm() ? second_name : "Chip", "Bus-Id",
            std::string("AICore(%)   Memory-Usage(MB)") + (set.has_hbm() ? "  HBM-Usage(MB)" : ""));
  print_rule('=');
  for (const Card& card : set.cards) {
    for (const Chip& chip : card.chips) {
      if (chip.chip != 0) printf("+%s+\n", std::string(kAll, '-').c_str());
      print_chip(set, card, chip);
    }
    print_rule('=');
  }
}

void print_processes(const CardSet& set) {
  print_rule('-');
  const auto print_line = [](const std::string& card, const std::string& chip,
                             const std::string& process, const std::string& name,
                             const std::string& memory) {
    print_row(fit(card, 8) + chip, process, fit(name, 25) + "| " + memory);
  };
  print_line("NPU", "Chip", "Process id", "Process name", "Process memory(MB)");
  print_rule('=');
  for (const Card& card : set.cards) {
    bool any = false;
    for (const Chip& chip : card.chips) {
      for (const ChipProcess& process : chip.processes) {
        print_line(std::to_string(card.number), std::to_string(chip.chip),
                   std::to_string(process.process), process.program,
                   std::to_string(process.megabytes));
        any = true;
      }
    }
    if (!any) print_whole_row("No running processes found in NPU " + std::to_string(card.number));
    print_rule('=');
  }
}

void print_overview(const CardSet& set) {
  print_chips(set);
  print_processes(set);
}

// ---- Lists of names and values ----

void print_value(const char* name, const std::string& value) {
  printf("\t%s : %s\n", fit(name, 30).c_str(), value.c_str());
}

void print_value(const char* name, uint64_t value) { print_value(name, std::to_string(value)); }

// npu-smi info -l
void print_list(const CardSet& set) {
  print_value("Total Count", set.cards.size());
  for (const Card& card : set.cards) {
    puts("");
    print_value("NPU ID", card.number);
    print_value("Product Name", std::string(set.product->family));
    print_value("Serial Number", "NA");
    print_value("Chip Count", card.chips.size());
  }
}

// npu-smi info -m
void print_map(const CardSet& set) {
  const auto print_line = [](const std::vector<std::string>& cells) {
    std::string line = "\t";
    for (size_t i = 0; i < cells.size(); ++i) {
      line += i + 1 < cells.size() ? fit(cells[i], 31) : cells[i];
    }
    puts(line.c_str());
  };
  std::vector<std::string> titles{"NPU ID", "Chip ID", "Chip Logic ID", "Chip Name"};
  if (set.has_pairs()) titles.insert(titles.end() - 1, "Chip Phy-ID");
  print_line(titles);
  const std::string name =
      set.has_pairs() ? set.chip_name() : std::string("Ascend ") + set.chip_name();
  for (const Card& card : set.cards) {
    for (const Chip& chip : card.chips) {
      const std::string device = std::to_string(chip.device);
      std::vector<std::string> cells{std::to_string(card.number), std::to_string(chip.chip), device,
                                     name};
      if (set.has_pairs()) cells.insert(cells.end() - 1, device);
      print_line(cells);
    }
  }
}

// npu-smi info -t memory
void print_memory(const CardSet& set, const Chip& chip) {
  print_value("DDR Capacity(MB)", set.has_hbm() ? 0 : chip.total);
  print_value("DDR Clock Speed(MHz)", uint64_t{0});
  if (!set.has_hbm()) return;
  print_value("HBM Capacity(MB)", chip.total);
  print_value("HBM Clock Speed(MHz)", uint64_t{0});
  print_value("HBM Temperature(C)", uint64_t{0});
  print_value("HBM Manufacturer ID", "NA");
}

// npu-smi info -t usages
void print_usages(const CardSet& set, const Chip& chip) {
  const uint64_t huge_percent =
      chip.huge_pages == 0 ? 0 : chip.huge_pages_used * 100 / chip.huge_pages;
  print_value("DDR Capacity(MB)", set.has_hbm() ? 0 : chip.total);
  print_value("DDR Usage Rate(%)", set.has_hbm() ? 0 : chip.percent_used());
  print_value("DDR Hugepages Total(page)", set.has_hbm() ? 0 : chip.huge_pages);
  print_value("DDR Hugepages Usage Rate(%)", set.has_hbm() ? 0 : huge_percent);
  if (set.has_hbm()) {
    print_value("HBM Capacity(MB)", chip.total);
    print_value("HBM Usage Rate(%)", chip.percent_used());
  }
  for (const char* const nothing :
       {"Aicore Usage Rate(%)", "Aivector Usage Rate(%)", "Aicpu Usage Rate(%)",
        "Ctrlcpu Usage Rate(%)", "DDR Bandwidth Usage Rate(%)"}) {
    print_value(nothing, uint64_t{0});
  }
  if (set.has_hbm()) print_value("HBM Bandwidth Usage Rate(%)", uint64_t{0});
}

// npu-smi info -t board of a chip
void print_chip_board(const CardSet& set, const Chip& chip) {
  print_value("Chip Name", set.chip_name());
  print_value("Chip Type", "Ascend");
  print_value("PCIe Bus Info", chip.bus_id);
}

// The same of a card
void print_card_board(const CardSet& set, const Card& card) {
  print_value("NPU ID", card.number);
  print_value("Product Name", std::string(set.product->family));
  print_value("Model", set.soc);
  print_value("Manufacturer", "understudy");
  print_value("Serial Number", "NA");
  print_value("Software Version", set.driver);
  print_value("Firmware Version", "NA");
  print_value("Board ID", "NA");
  print_value("PCIe Bus Info", card.chips.front().bus_id);
  print_value("Slot ID", card.number);
  print_value("Chip Count", card.chips.size());
}

// ---- Arguments ----

struct SmiOptions {
  bool list = false;
  bool map = false;
  std::string type;
  std::optional<unsigned> card;
  std::optional<unsigned> chip;
};

int refuse(const std::string& sentence, int status) {
  fprintf(stderr, "npu-smi: %s\n", sentence.c_str());
  return status;
}

void print_typed(const CardSet& set, const Card& card, const SmiOptions& options) {
  if (options.type == "board" && !options.chip) return print_card_board(set, card);
  print_value("NPU ID", card.number);
  if (!options.chip) print_value("Chip Count", card.chips.size());
  for (const Chip& chip : card.chips) {
    if (options.chip && *options.chip != chip.chip) continue;
    puts("");
    if (options.type == "memory") print_memory(set, chip);
    if (options.type == "usages") print_usages(set, chip);
    if (options.type == "board") print_chip_board(set, chip);
    print_value("Chip ID", chip.chip);
  }
}

int show_typed(const CardSet& set, const SmiOptions& options) {
  if (!options.card) return refuse("info -t needs -i, the number of a card", kWrongUsage);
  if (*options.card >= set.cards.size()) {
    return refuse("there is no card " + std::to_string(*options.card) + "; the last one is " +
                      std::to_string(set.cards.size() - 1),
                  kWrongUsage);
  }
  const Card& card = set.cards[*options.card];
  if (options.chip && *options.chip >= card.chips.size()) {
    return refuse(
        "card " + std::to_string(card.number) + " has no chip " + std::to_string(*options.chip),
        kWrongUsage);
  }
  print_typed(set, card, options);
  return kDone;
}

int show(const SmiOptions& options) {
  const Result<CardSet> set = find_cards();
  if (!set.ok()) return refuse(set.error().text(), kFailed);
  if (!options.type.empty()) return show_typed(set.value(), options);
  if (options.list) {
    print_list(set.value());
  } else if (options.map) {
    print_map(set.value());
  } else {
    print_overview(set.value());
  }
  return kDone;
}

// The version of the driver, as the real command's.
int show_version() {
  const Result<Settings> settings = read_settings();
  if (!settings.ok()) return refuse(settings.error().text(), kFailed);
  printf("npu-smi version: %s\n", std::string(settings.value().driver->name).c_str());
  return kDone;
}

}  // namespace

int run_npu_smi(int argc, char** argv) {
  SmiOptions chosen;
  CommandLine line("npu-smi", "npu-smi: devices of the software NPU understudy");
  line.add_version("-v,--version", "");  // which only help lists: it is read here
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (!arguments.empty() && (arguments.front() == "--version" || arguments.front() == "-v")) {
    return show_version();
  }
  OptionSet info = line.add_subcommand("info", "show the devices");
  info.add_flag("-l", chosen.list, "list the cards");
  info.add_flag("-m", chosen.map, "list the chips and their numbers");
  info.add("-t", chosen.type, "show one kind of figures of a card: memory, usages or board", "TYPE",
           {"memory", "usages", "board"});
  info.add("-i", chosen.card, "number of the card", "N", {0, 999});
  info.add("-c", chosen.chip, "number of the chip on it", "N", {0, 999});
  if (const auto status = line.read(std::move(arguments))) return *status;
  return show(chosen);
}

}  // namespace understudy::command
