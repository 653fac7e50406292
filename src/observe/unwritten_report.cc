// SPDX-License-Identifier: Apache-2.0
#include "observe/unwritten_report.h"

#include <optional>
#include <string>
#include <utility>

#include "base/size_text.h"
#include "observe/findings.h"
#include "observe/history.h"
#include "observe/place_text.h"
#include "observe/queued_places.h"
#include "observe/stack_text.h"

namespace understudy {

namespace {

// ", of which 1 KiB from 0x180000000c00 on was never written"
std::string unwritten_part_of(const UnwrittenRead& read) {
  if (read.unwritten_bytes == read.bytes) return ", which was never written";
  const std::string bytes = SizeText(read.unwritten_bytes).c_str();
  const std::string first = hex(read.first_unwritten.base);
  if (read.unwritten_bytes == read.first_unwritten.size) {
    return ", of which " + bytes + " from " + first + " on was never written";
  }
  return ", of which " + bytes + " in several parts, the first at " + first + ", was never written";
}

void add_begin(Finding& finding, const ObjectLife& life) {
  finding.notes.push_back(
      {described(life) + " " + words_of(life.kind).begun + by_call(life.begun), life.begun});
}

}  // namespace

void tell_unwritten_read(const UnwrittenRead& read, StreamTask task) {
  const bool is_task = task.position != 0;
  const ProgramPlace place = is_task ? QueuedPlaces::find(task) : History::here();
  Finding finding;
  finding.check = Check::kInit;
  finding.sentence = call_at(place);
  if (is_task) finding.sentence += " on stream " + std::to_string(task.stream);
  finding.sentence += read.use == AccessUse::kReduce ? " reduces into " : " reads ";
  finding.sentence += text_of(VirtualRange{read.base, read.bytes}) + unwritten_part_of(read);
  finding.notes.push_back({"read" + by_call(place), place});
  if (const auto life = History::explain(read.first_unwritten.base)) {
    finding.sentence += "; " + described(*life) + " " + words_of(life->kind).begun + " at " +
                        place_of(life->begun.stack);
    add_begin(finding, *life);
    if (life->kind == ObjectKind::kMapping) {
      const auto block = History::find_live(ObjectKind::kBlock, life->part_of);
      if (block) add_begin(finding, *block);
    }
  }
  Findings::add(std::move(finding));
}

}  // namespace understudy
