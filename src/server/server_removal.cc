// SPDX-License-Identifier: Apache-2.0
#include "server/server_removal.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "platform/byte_lock.h"
#include "platform/memory_file.h"
#include "platform/private_directory.h"
#include "platform/shared_mapping.h"
#include "platform/system_number.h"
#include "server/ledger_reader.h"
#include "server/slot_sockets.h"

namespace understudy {

namespace {

Removal refused(RemovalOutcome outcome, std::string explanation) {
  return {outcome, std::move(explanation)};
}

// What a process leaves that was killed before it had begun a server: no bytes, or zeros.
bool is_unbegun(const LedgerHeader* header, int file) {
  if (header == nullptr) return platform::file_size(file) == 0;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(header, 1));
  return std::all_of(bytes.begin(), bytes.end(),
                     [](std::byte each) { return each == std::byte{}; });
}

// Whether the file of a name is the one that is open, and a ledger of any version.
bool is_ledger(const LedgerReader& reader, int open_file) {
  if (reader.identity() != platform::identity_of_file(open_file)) return false;
  const std::unique_ptr<LedgerHeader> header = reader.read_header();
  return (header != nullptr && header->magic == kLedgerMagic) ||
         is_unbegun(header.get(), open_file);
}

bool is_of_server(const platform::PrivateDirectory& directory, const std::string& name) {
  return name == "ledger" || is_slot_socket(directory, name);
}

// Removes ledger and sockets, and the directory if it then is empty.
Removal remove_all_of(const platform::PrivateDirectory& directory, RemovalMode mode) {
  // Looked at first: when the ledger is gone, a new server may begin there.
  const Result<std::vector<std::string>> names = directory.names();
  if (!names.ok()) return refused(RemovalOutcome::kLeftOver, names.error().text());
  const bool has_others =
      !std::all_of(names.value().begin(), names.value().end(),
                   [&](const std::string& name) { return is_of_server(directory, name); });
  if (mode == RemovalMode::kRemove) {
    remove_slot_sockets(directory);
    directory.remove("ledger");
  }
  if (has_others) {
    return refused(RemovalOutcome::kLeftOver,
                   directory.path() + " has other files in it and stays without its ledger");
  }
  if (mode == RemovalMode::kOnlyLook) return {RemovalOutcome::kRemoved, ""};
  std::error_code failed;
  std::filesystem::remove(directory.path(), failed);
  if (!failed) return {RemovalOutcome::kRemoved, ""};
  if (failed == std::errc::directory_not_empty) {
    return refused(RemovalOutcome::kInUse, directory.path() + " was used again meanwhile");
  }
  return refused(RemovalOutcome::kLeftOver,
                 directory.path() + " stays without its ledger: " + failed.message());
}

}  // namespace

Removal remove_abandoned_server(const std::string& path, RemovalMode mode) {
  const Result<platform::PrivateDirectory> directory = platform::PrivateDirectory::open(path);
  if (!directory.ok()) {
    return platform::means_absent(directory.error())
               ? refused(RemovalOutcome::kAbsent, path + " does not exist")
               : refused(RemovalOutcome::kNotServer, directory.error().text());
  }
  const Result<platform::UnsharedFd> file = directory.value().open_existing_file("ledger");
  if (!file.ok()) return refused(RemovalOutcome::kNotServer, path + " has no ledger in it");
  const int ledger = file.value().get();
  // Given up with the descriptor.
  if (!platform::try_lock_byte(ledger, kJoinByte)) {
    return refused(RemovalOutcome::kInUse, "a process is joining the server at " + path);
  }
  // By its name, now that no process can begin a server there.
  const Result<LedgerReader> reader = LedgerReader::open(directory.value().path() + "/ledger");
  if (!reader.ok() || !is_ledger(reader.value(), ledger)) {
    return refused(RemovalOutcome::kNotServer, path + "/ledger is not a ledger");
  }
  if (reader.value().has_live_process()) {
    return refused(RemovalOutcome::kInUse, "the server at " + path + " is in use");
  }
  return remove_all_of(directory.value(), mode);
}

}  // namespace understudy
