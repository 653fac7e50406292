// SPDX-License-Identifier: Apache-2.0
//
// The devices of a server as npu-smi counts them: cards with chips, sizes in MB (that is, MiB).
// Without a server they are those of the configuration, and idle.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/product_profile.h"
#include "server/server_view.h"

namespace understudy::command {

struct ChipProcess {
  int32_t process = 0;
  std::string program;
  uint64_t megabytes = 0;
};

struct Chip {
  unsigned chip = 0;    // on its card
  unsigned device = 0;  // of all
  std::string bus_id;
  uint64_t used = 0;  // MB
  uint64_t total = 0;
  uint64_t huge_pages_used = 0;
  uint64_t huge_pages = 0;
  std::vector<ChipProcess> processes;

  uint64_t percent_used() const { return total == 0 ? 0 : used * 100 / total; }
};

struct Card {
  unsigned number = 0;
  std::vector<Chip> chips;
};

struct CardSet {
  const ProductProfile* product = nullptr;
  std::string soc;
  std::string driver;  // its version, as the configuration chooses it
  std::vector<Card> cards;

  bool has_hbm() const { return product->technology == MemoryTechnology::kHbm; }
  // Cards with two chips show the number of each device, and one name for all chips.
  bool has_pairs() const { return product->peer_link == PeerLink::kDiePairs; }
  std::string chip_name() const;
};

// Fails if the configuration is wrong, or the server's ledger cannot be read.
Result<CardSet> find_cards();

}  // namespace understudy::command
