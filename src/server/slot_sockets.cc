// SPDX-License-Identifier: Apache-2.0
#include "server/slot_sockets.h"

#include <charconv>

#include "server/process_slots.h"

namespace understudy {

namespace {

bool is_name_of_slot(const std::string& name) {
  const size_t digits = name.find_first_of("0123456789");
  if (digits == std::string::npos) return false;
  unsigned slot = kProcessSlots;
  std::from_chars(name.data() + digits, name.data() + name.size(), slot);
  return slot < kProcessSlots && name == ProcessSlots::socket_name(slot);
}

}  // namespace

bool is_slot_socket(const platform::PrivateDirectory& directory, const std::string& name) {
  return is_name_of_slot(name) && directory.is_socket(name.c_str());
}

void remove_slot_sockets(const platform::PrivateDirectory& directory) {
  const Result<std::vector<std::string>> names = directory.names();
  if (!names.ok()) return;
  for (const std::string& name : names.value()) {
    if (is_name_of_slot(name)) directory.remove_socket(name.c_str());
  }
}

}  // namespace understudy
