// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/compared_places.h"

#include <algorithm>

namespace understudy::command {

namespace {

using Place = ComparableFigures::Place;
using Places = std::map<std::string, Place>;
using Entry = Places::value_type;

// Places that differ by nothing but line numbers.
struct Group {
  std::vector<const Entry*> before;  // by name
  std::vector<const Entry*> after;
};

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }
bool is_hex_digit(char letter) {
  return is_digit(letter) || (letter >= 'a' && letter <= 'f') || (letter >= 'A' && letter <= 'F');
}

bool is_before(const Entry* left, const Entry* right) { return left->first < right->first; }

bool has_all_of(const std::vector<const Entry*>& whole, const std::vector<const Entry*>& part) {
  return std::includes(whole.begin(), whole.end(), part.begin(), part.end(), is_before);
}

ComparedPlace compared(std::string name, const Place* before, const Place* after) {
  const Place nothing;
  const Place& one = before == nullptr ? nothing : *before;
  const Place& two = after == nullptr ? nothing : *after;
  ComparedPlace row;
  row.name = std::move(name);
  row.presence = before == nullptr  ? Presence::kNew
                 : after == nullptr ? Presence::kVanished
                                    : Presence::kBoth;
  row.at_peak = {one.at_peak, two.at_peak};
  row.at_end = {one.at_end, two.at_end};
  row.allocations = {one.allocations, two.allocations};
  row.allocated = {one.allocated, two.allocated};
  return row;
}

void compare_each(const Group& group, std::vector<ComparedPlace>& rows) {
  auto after = group.after.begin();
  for (const Entry* const one : group.before) {
    while (after != group.after.end() && is_before(*after, one)) {
      rows.push_back(compared((*after)->first, nullptr, &(*after)->second));
      ++after;
    }
    const bool is_in_both = after != group.after.end() && (*after)->first == one->first;
    rows.push_back(compared(one->first, &one->second, is_in_both ? &(*after)->second : nullptr));
    if (is_in_both) ++after;
  }
  for (; after != group.after.end(); ++after) {
    rows.push_back(compared((*after)->first, nullptr, &(*after)->second));
  }
}

ComparedPlace compare_together(const std::string& name, const Group& group) {
  Place before;
  Place after;
  for (const Entry* const entry : group.before) before.add(entry->second);
  for (const Entry* const entry : group.after) after.add(entry->second);
  // One place on each side is one place that moved: its line of today is known.
  const bool is_one = group.before.size() == 1 && group.after.size() == 1;
  ComparedPlace row = compared(is_one ? group.after.front()->first : name, &before, &after);
  row.has_moved = true;
  return row;
}

}  // namespace

std::string without_lines(std::string_view place) {
  std::string text;
  for (size_t index = 0; index < place.size(); ++index) {
    size_t end = index + 1;
    if (place[index] == ':') {
      while (end < place.size() && is_digit(place[end])) ++end;
      const bool is_line = end > index + 1 && (end == place.size() || place[end] == ' ');
      if (!is_line) end = index + 1;
    } else if (place.substr(index, 2) == "0x") {
      end = index + 2;
      while (end < place.size() && is_hex_digit(place[end])) ++end;
    }
    if (end == index + 1) {
      text += place[index];
    } else {
      index = end - 1;
    }
  }
  return text;
}

std::vector<ComparedPlace> compare_places(const Places& before, const Places& after) {
  std::map<std::string, Group> groups;
  for (const Entry& entry : before) groups[without_lines(entry.first)].before.push_back(&entry);
  for (const Entry& entry : after) groups[without_lines(entry.first)].after.push_back(&entry);
  std::vector<ComparedPlace> rows;
  for (const auto& [name, group] : groups) {
    if (has_all_of(group.before, group.after) || has_all_of(group.after, group.before)) {
      compare_each(group, rows);
    } else {
      rows.push_back(compare_together(name, group));
    }
  }
  return rows;
}

}  // namespace understudy::command
