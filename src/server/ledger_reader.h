// SPDX-License-Identifier: Apache-2.0
//
// Reads parts of a ledger file that other processes change, without taking part. Copies, so that
// what was checked stays as it was. Used by the views of a server alone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "platform/memory_file.h"
#include "platform/read_only_file.h"
#include "server/ledger_file.h"
#include "server/ledger_layout.h"

namespace understudy {

// Header, slots and what their processes use, as they were together.
struct LedgerCopy {
  std::unique_ptr<LedgerHeader> header;
  std::vector<ProcessSlot> slots;
  std::vector<UseGroup> uses;

  const DeviceUse& use(unsigned slot, size_t device) const {
    return uses[slot / UseGroup::kSlots].devices[device][slot % UseGroup::kSlots];
  }
};

class LedgerReader {
 public:
  static Result<LedgerReader> open(const std::string& path);

  // Nothing if the file is too short for a header.
  std::unique_ptr<LedgerHeader> read_header() const;
  // Nothing if the file is not a whole ledger of this version. Tries a few times to find no process
  // in the middle of a change, and makes do with what it finds: that process may be stopped.
  std::optional<LedgerCopy> read() const;
  // Nothing if the slot was given to another process since it was copied.
  std::unique_ptr<ProcessFigures> read_figures(unsigned slot, const ProcessSlot& copied) const;

  platform::FileIdentity identity() const { return platform::identity_of_file(file_.descriptor()); }
  // Whether the process of a slot has ended.
  bool has_ended(unsigned slot, const ProcessSlot& copied) const;
  // Whether a process lives that has the file: by the locks of all slots, which any version has,
  // and by the slots if this version can read them.
  bool has_live_process() const;

 private:
  explicit LedgerReader(platform::ReadOnlyFile file) : file_(std::move(file)) {}

  std::optional<LedgerCopy> read_once() const;
  template <typename T>
  bool fill(uint64_t offset, std::span<T> values) const {
    return file_.read_at(offset, std::as_writable_bytes(values));
  }

  platform::ReadOnlyFile file_;
};

}  // namespace understudy
