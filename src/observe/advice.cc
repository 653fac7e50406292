// SPDX-License-Identifier: Apache-2.0
#include "observe/advice.h"

#include <new>
#include <utility>

#include "base/size_text.h"
#include "observe/findings.h"
#include "observe/history.h"
#include "observe/place_text.h"
#include "observe/stack_text.h"
#include "platform/log.h"

namespace understudy {

namespace {

// Makes the sentence and tells it, or says that there is no memory for that.
template <typename Sentence>
void advise_here(std::string_view topic, Sentence sentence) noexcept {
  try {
    const ProgramPlace here = History::here();
    advise(topic, here, sentence(here));
  } catch (const std::bad_alloc&) {
    platform::say("no memory for advice");
  }
}

}  // namespace

void advise(std::string_view topic, const ProgramPlace& place, std::string sentence) noexcept {
  try {
    Finding finding;
    finding.check = Check::kAdvice;
    finding.topic = topic;
    finding.sentence = std::move(sentence);
    finding.notes.push_back(
        {place.function == nullptr ? "called" : std::string("called ") + place.function, place});
    Findings::add(std::move(finding));
  } catch (const std::bad_alloc&) {
    platform::say("no memory for advice");
  }
}

void advise_pageable(uint64_t bytes) noexcept {
  advise_here("pageable", [bytes](const ProgramPlace& here) {
    return call_at(here) + " copies " + SizeText(bytes).c_str() +
           " of host memory that is not page-locked, so it waits for its stream and is complete "
           "when it returns; allocate that memory page-locked, or register it, and the copy is "
           "queued";
  });
}

void advise_switched_on(std::string_view feature, std::string_view lacking) noexcept {
  advise_here("switch", [=](const ProgramPlace& here) {
    return call_at(here) + " works because the configuration has features=" + std::string(feature) +
           "; " + std::string(lacking) + " does not have it: choose one that has, or do without it";
  });
}

void advise_unsupported(const char* function, const Error& error) noexcept {
  if (error.code() != ErrorCode::kNotInProduct) return;
  advise_here("product", [=, &error](const ProgramPlace& here) {
    return std::string(function) + ": " + error.text() + "; called at " + place_of(here.stack) +
           ", where a program for this product needs another way";
  });
}

}  // namespace understudy
