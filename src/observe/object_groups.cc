// SPDX-License-Identifier: Apache-2.0
#include "observe/object_groups.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "base/size_text.h"
#include "observe/history.h"
#include "observe/stack_text.h"

namespace understudy {

namespace {

std::vector<int32_t> devices_of(const ObjectGroup& group) {
  std::vector<int32_t> devices;
  for (const ObjectLife& life : group.lives) {
    if (life.device != kNoDevice) devices.push_back(life.device);
  }
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  return devices;
}

// " on device 0", " on devices 0, 1 and 2"; empty if they are on none.
std::string place_on_devices(const std::vector<int32_t>& devices) {
  if (devices.empty()) return {};
  std::string text = devices.size() == 1 ? " on device " : " on devices ";
  for (size_t i = 0; i < devices.size(); ++i) {
    if (i > 0) text += i + 1 == devices.size() ? " and " : ", ";
    text += std::to_string(devices[i]);
  }
  return text;
}

}  // namespace

uint64_t ObjectGroup::bytes() const {
  uint64_t sum = 0;
  for (const ObjectLife& life : lives) sum += life.size;
  return sum;
}

std::vector<ObjectGroup> grouped_by_place(const std::vector<ObjectLife>& lives) {
  std::map<std::pair<const platform::CallStack*, ObjectKind>, size_t> numbers;
  std::vector<ObjectGroup> groups;
  for (const ObjectLife& life : lives) {
    const auto [found, is_new] = numbers.try_emplace({life.begun.stack, life.kind}, groups.size());
    if (is_new) groups.emplace_back();
    groups[found->second].lives.push_back(life);
  }
  return groups;
}

std::string text_of(const ObjectGroup& group) {
  const ObjectWords& words = words_of(group.lives.front().kind);
  const bool is_one = group.lives.size() == 1;
  std::string text =
      std::to_string(group.lives.size()) + " " + (is_one ? words.noun : words.plural);
  if (const uint64_t bytes = group.bytes(); bytes != 0) {
    text += std::string(" of ") + SizeText(bytes).c_str() + (is_one ? "" : " together");
  }
  return text + place_on_devices(devices_of(group));
}

std::string sentence_of(const ObjectGroup& group) {
  const ObjectLife& first = group.lives.front();
  std::string text =
      text_of(group) + ", " + words_of(first.kind).begun + " at " + place_of(first.begun.stack);
  if (first.begun.function != nullptr) text += std::string(" by ") + first.begun.function;
  return text;
}

namespace {

// The lines of the program that lead to an object. Compilers copy code: several stacks may have the
// same ones.
std::string lines_of(const ObjectLife& life) {
  std::string lines(words_of(life.kind).noun);
  for (const StackFrame& frame : frames_of(life.begun.stack)) {
    lines += "\n" + frame.place + " " + frame.function;
  }
  return lines;
}

}  // namespace

std::vector<ObjectGroup> live_since(uint64_t begun) {
  std::vector<ObjectLife> lives = History::live();
  std::erase_if(lives, [begun](const ObjectLife& life) {
    return life.order <= begun || life.kind == ObjectKind::kShare;
  });
  std::map<std::string, size_t> numbers;
  std::vector<ObjectGroup> groups;
  for (ObjectGroup& group : grouped_by_place(lives)) {
    const auto [found, is_new] = numbers.try_emplace(lines_of(group.lives.front()), groups.size());
    if (is_new) {
      groups.push_back(std::move(group));
    } else {
      std::ranges::copy(group.lives, std::back_inserter(groups[found->second].lives));
    }
  }
  return groups;
}

}  // namespace understudy
