// SPDX-License-Identifier: Apache-2.0
#include "observe/recording_definitions.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <new>
#include <string>

#include "observe/stack_text.h"
#include "platform/kept_errno.h"

namespace understudy {

namespace {

// A text in room of its own, cut where that ends.
class TextBuffer {
 public:
  void add(std::string_view text) {
    const size_t count = std::min(text.size(), sizeof text_ - size_);
    std::memcpy(text_ + size_, text.data(), count);
    size_ += count;
  }
  std::string_view text() const { return {text_, size_}; }

 private:
  char text_[1024];
  size_t size_ = 0;
};

// Takes what stands before the next comma off the front; one within parentheses is of the word.
std::string_view take_word(std::string_view& list) {
  const size_t open = list.find('(');
  size_t comma = list.find(',');
  if (open < comma) comma = list.find(',', std::min(list.find(')', open), list.size()));
  comma = std::min(comma, list.size());
  std::string_view word = list.substr(0, comma);
  list.remove_prefix(std::min(comma + 1, list.size()));
  while (word.starts_with(' ')) word.remove_prefix(1);
  return word;
}

// "aclrtMalloc(out devPtr:p, size:u, policy:i)"
void add_shape(TextBuffer& buffer, const CallShape& shape) {
  buffer.add(shape.function);
  buffer.add("(");
  std::string_view names = shape.names;
  std::string_view types = shape.types;
  for (bool is_first = true; !names.empty(); is_first = false) {
    if (!is_first) buffer.add(", ");
    std::string_view name = take_word(names);
    if (name.starts_with("out(")) buffer.add("out ");
    const size_t open = name.find('(');
    if (open != std::string_view::npos)
      name = name.substr(open + 1, name.find_first_of(",)") - open - 1);
    buffer.add(name);
    buffer.add(":");
    buffer.add(take_word(types));
  }
  buffer.add(")");
}

// Lines, the innermost first. May throw std::bad_alloc.
std::string lines_of(const platform::CallStack& stack) {
  if (!stack.named().empty()) return std::string(stack.named());
  std::string text;
  for (const StackFrame& frame : frames_of(&stack)) {
    if (frame.is_of_system) continue;
    if (!text.empty()) text += '\n';
    if (!frame.function.empty()) text += frame.function + " at ";
    text += frame.place;
  }
  return text;
}

}  // namespace

size_t RecordingDefinitions::Numbers::place_of(const void* key) noexcept {
  return (reinterpret_cast<uintptr_t>(key) >> 3) * 0x9e3779b97f4a7c15 >> 50;
}

uint32_t RecordingDefinitions::Numbers::find(const void* key) const noexcept {
  for (size_t place = place_of(key);; place = (place + 1) % kSlots) {
    const void* const found = slots_[place].key.load(std::memory_order_acquire);
    if (found == key) return slots_[place].number.load(std::memory_order_relaxed);
    if (found == nullptr) return 0;
  }
}

uint32_t RecordingDefinitions::Numbers::add(const void* key) noexcept {
  size_t place = place_of(key);
  while (slots_[place].key.load(std::memory_order_relaxed) != nullptr) place = (place + 1) % kSlots;
  const uint32_t number = last_.load(std::memory_order_relaxed) + 1;
  last_.store(number, std::memory_order_relaxed);
  slots_[place].number.store(number, std::memory_order_relaxed);
  slots_[place].key.store(key, std::memory_order_release);
  return number;
}

uint32_t RecordingDefinitions::add(Numbers& numbers, const void* key, bool& is_new) noexcept {
  is_new = false;
  if (numbers.is_full()) return 0;
  const MutexLock lock(mutex_);
  if (const uint32_t known = numbers.find(key); known != 0) return known;
  if (numbers.is_full()) return 0;
  is_new = true;
  return numbers.add(key);
}

uint32_t RecordingDefinitions::function(const CallShape& shape) noexcept {
  if (const uint32_t known = functions_.find(shape.function); known != 0) [[likely]]
    return known;
  bool is_new = false;
  const uint32_t number = add(functions_, shape.function, is_new);
  if (is_new) {
    TextBuffer buffer;
    add_shape(buffer, shape);
    define(DefinitionKind::kFunction, number, buffer.text());
  }
  return number;
}

uint32_t RecordingDefinitions::stack(const platform::CallStack* stack) noexcept {
  if (stack == nullptr) return 0;
  if (const uint32_t known = stacks_.find(stack); known != 0) [[likely]]
    return known;
  const platform::KeptErrno kept_errno;
  bool is_new = false;
  const uint32_t number = add(stacks_, stack, is_new);
  if (!is_new) return number;
  try {
    define(DefinitionKind::kStack, number, lines_of(*stack));
  } catch (const std::bad_alloc&) {
    return number;  // known by its number alone
  }
  return number;
}

uint32_t RecordingDefinitions::text(std::string_view text) noexcept {
  // Texts go: what stays is a number of 63 bits, of which no two are alike by chance.
  const size_t hash = std::hash<std::string_view>{}(text) | 1;
  const auto* const key = reinterpret_cast<const void*>(hash);  // NOLINT(performance-no-int-to-ptr)
  if (const uint32_t known = texts_.find(key); known != 0) return known;
  bool is_new = false;
  const uint32_t number = add(texts_, key, is_new);
  if (is_new) define(DefinitionKind::kText, number, text);
  return number;
}

void RecordingDefinitions::define(DefinitionKind kind, uint32_t number,
                                  std::string_view text) noexcept {
  constexpr size_t kMostBytes = 16384;
  const MutexLock lock(mutex_);
  if (!write_locked(kind, number, text.substr(0, kMostBytes))) file_.note_lost(1);
}

bool RecordingDefinitions::write_locked(DefinitionKind kind, uint32_t number,
                                        std::string_view text) {
  const size_t words = 2 + (text.size() + 7) / 8;
  if (next_ == nullptr || next_ + words > end_) {
    ChunkHeader* const chunk = file_.take_chunk(ChunkKind::kDefinitions);
    if (chunk == nullptr) return false;
    auto* const bytes = reinterpret_cast<char*>(chunk);
    next_ = reinterpret_cast<uint64_t*>(bytes + kChunkHeaderBytes);
    end_ = reinterpret_cast<uint64_t*>(bytes + kChunkBytes);
  }
  next_[1] = text.size();
  std::memcpy(next_ + 2, text.data(), text.size());
  const RecordHead head{RecordKind::kDefinition, 0, static_cast<uint16_t>(kind),
                        static_cast<int32_t>(number)};
  std::atomic_ref(*next_).store(head.packed(), std::memory_order_release);
  next_ += words;
  return true;
}

}  // namespace understudy
