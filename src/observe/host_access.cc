// SPDX-License-Identifier: Apache-2.0
#include "observe/host_access.h"

#include <cinttypes>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "base/size_text.h"
#include "base/virtual_range.h"
#include "observe/findings.h"
#include "observe/history.h"
#include "observe/stack_text.h"
#include "platform/fault_observer.h"
#include "platform/log.h"

namespace understudy {

namespace {

struct Pointed {
  uint64_t address;
  ObjectLife life;
};

// What the access is to; of registers the first that points to an object.
std::optional<Pointed> pointed_to(const platform::FaultedAccess& access) {
  if (access.address != 0) {
    if (const auto life = History::explain_near(access.address))
      return Pointed{access.address, *life};
    return std::nullopt;
  }
  for (const uintptr_t value : access.registers) {
    const auto life = History::explain_near(value);
    if (life && life->contains(value)) return Pointed{value, *life};
  }
  return std::nullopt;
}

// "64 bytes into", "at the start of", "16 bytes behind the end of"
std::string offset_text(const Pointed& pointed) {
  const uint64_t offset = pointed.address - pointed.life.number;
  if (offset == 0) return "at the start of";
  if (offset < pointed.life.size) return std::string(SizeText(offset).c_str()) + " into";
  const uint64_t behind = offset - pointed.life.size;
  if (behind == 0) return "right behind";
  return std::string(SizeText(behind).c_str()) + " behind the end of";
}

std::string sentence_of(const platform::FaultedAccess& access, const Pointed& pointed) {
  char number[32];
  snprintf(number, sizeof number, "0x%" PRIx64, pointed.address);
  std::string text = std::string("the CPU ") + (access.is_write ? "writes " : "reads ") + number +
                     ", " + offset_text(pointed) + " " + described(pointed.life);
  if (pointed.life.has_ended)
    text += std::string(", which was ") + words_of(pointed.life.kind).ended;
  return text;
}

Finding finding_of(const platform::FaultedAccess& access, const Pointed& pointed) {
  const ObjectLife& life = pointed.life;
  Finding finding;
  finding.check = Check::kHost;
  finding.sentence = sentence_of(access, pointed) + ", at " + place_of(access.stack) +
                     "; device memory is for copies and streams";
  finding.notes.push_back({access.is_write ? "written by the CPU" : "read by the CPU",
                           ProgramPlace{access.stack, nullptr, History::here().thread}});
  finding.notes.push_back({words_of(life.kind).begun, life.begun});
  if (life.has_ended) finding.notes.push_back({words_of(life.kind).ended, life.ended});
  return finding;
}

void tell_access(const platform::FaultedAccess& access) {
  const std::optional<Pointed> pointed = pointed_to(access);
  if (!pointed) return;
  try {
    if (access.has_little_room) {
      platform::say("host: %s", sentence_of(access, *pointed).c_str());
      return;
    }
    Findings::add(finding_of(access, *pointed));
    // No handler of exit comes any more.
    if (access.is_fatal) (void)Findings::finish();
  } catch (const std::bad_alloc&) {
    platform::say("no memory to explain a fault");
  }
}

}  // namespace

Result<void> begin_host_check() { return platform::observe_faults(tell_access); }

}  // namespace understudy
