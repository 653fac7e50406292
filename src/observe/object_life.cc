// SPDX-License-Identifier: Apache-2.0
#include "observe/object_life.h"

#include <array>

#include "base/size_text.h"

namespace understudy {

namespace {

constexpr std::array<ObjectWords, kObjectKinds> kWords = {{
    {"allocation", "allocations", "allocated", "freed", "frees"},
    {"physical block", "physical blocks", "created", "freed", "frees"},
    {"reservation", "reservations", "reserved", "released", "releases"},
    {"mapping", "mappings", "mapped", "unmapped", "unmaps"},
    {"host block", "host blocks", "allocated", "freed", "frees"},
    {"registration", "registrations", "registered", "unregistered", "unregisters"},
    {"memory pool", "memory pools", "created", "destroyed", "destroys"},
    {"stream", "streams", "created", "destroyed", "destroys"},
    {"event", "events", "created", "destroyed", "destroys"},
    {"notify", "notifies", "created", "destroyed", "destroys"},
    {"share", "shares", "exported", "closed", "closes"},
}};

}  // namespace

const ObjectWords& words_of(ObjectKind kind) { return kWords.at(static_cast<size_t>(kind)); }

bool has_addresses(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::kAllocation:
    case ObjectKind::kReservation:
    case ObjectKind::kMapping:
    case ObjectKind::kHostBlock:
    case ObjectKind::kRegistration:
      return true;
    case ObjectKind::kBlock:
    case ObjectKind::kPool:
    case ObjectKind::kStream:
    case ObjectKind::kEvent:
    case ObjectKind::kNotify:
    case ObjectKind::kShare:
      return false;
  }
  return false;
}

std::string described(const ObjectLife& life) {
  std::string text = words_of(life.kind).noun;
  if (life.size != 0) text += std::string(" of ") + SizeText(life.size).c_str();
  if (life.device != kNoDevice) text += " on device " + std::to_string(life.device);
  return text;
}

}  // namespace understudy
