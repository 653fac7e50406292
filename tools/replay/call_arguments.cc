// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/call_arguments.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace understudy::command {

namespace {

constexpr size_t kRoom = size_t{256} << 10;  // more than an array of the longest batch
constexpr size_t kCleared = 256;
constexpr size_t kConfigurationRoom = 64;  // in front of what it lists

const ReplayState* awaited_by_functions = nullptr;

// In place of a function of the program that streams call. The argument says how many calls have
// to have ended first.
void end_behind_calls(void* calls) {
  awaited_by_functions->order().await_elsewhere(
      static_cast<uint32_t>(reinterpret_cast<uintptr_t>(calls)),
      awaited_by_functions->first_other_thread());
}

// In place of all others, whatever their parameters: 0 is success, and no value.
extern "C" uint64_t understudy_replay_does_nothing() { return 0; }

uint64_t word_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

template <typename Function>
uint64_t word_of_function(Function* function) {
  return reinterpret_cast<uint64_t>(function);
}

}  // namespace

void wait_in_functions_for(const ReplayState& state) { awaited_by_functions = &state; }

CallArguments::CallArguments(const Recording& recording, const ReplayPlan& plan,
                             const ReplayState& state, ProgramMemory& memory)
    : recording_(recording), plan_(plan), state_(state), memory_(memory) {
  void* const rooms = mmap(nullptr, kMost * kRoom, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (rooms == MAP_FAILED) throw std::bad_alloc();
  rooms_ = static_cast<char*>(rooms);
}

CallArguments::~CallArguments() { munmap(rooms_, kMost * kRoom); }

char* CallArguments::room(size_t parameter) {
  char* const room = rooms_ + parameter * kRoom;
  std::memset(room, 0, kCleared);
  return room;
}

// Nothing if the thing was not made.
std::optional<uint64_t> CallArguments::value_of(const Reference& reference) {
  switch (reference.source) {
    case Source::kAsRecorded:
      return reference.offset;
    case Source::kHostMemory:
      return memory_.host_memory();
    case Source::kThing:
      break;
  }
  const ThingNow& thing = state_.thing(reference.thing);
  if (thing.state.load(std::memory_order_acquire) != ThingState::kMade) return std::nullopt;
  const uint64_t value = thing.value + reference.offset;
  return reference.has_ended ? memory_.ended(value) : value;
}

bool CallArguments::prepare_reference(const PlannedCall& planned, size_t parameter,
                                      const Reference& reference) {
  const ParameterRole& role = function(planned).roles[parameter];
  uint64_t& word = words_.at(parameter);
  if (role.letter == 'r' && reference.source == Source::kThing) {
    ThingNow& thing = state_.thing(reference.thing);
    if (thing.state.load(std::memory_order_acquire) == ThingState::kNotYet) {
      thing.value =
          ProgramMemory::make(plan_.things[reference.thing].size,
                              recorded_word(recording_, recorded(planned), function(planned), 0));
      thing.state.store(ThingState::kMade, std::memory_order_release);
    }
  }
  if (!role.is_public() || reference.source != Source::kThing) {
    const std::optional<uint64_t> value = value_of(reference);
    word = value.value_or(0);
    return value.has_value();
  }
  const ThingNow& thing = state_.thing(reference.thing);
  if (thing.state.load(std::memory_order_acquire) != ThingState::kMade) return false;
  if (role.letter == 'o') {
    std::memcpy(&word, state_.bytes_of(reference.thing).data(), sizeof word);
  } else {
    word = word_of(
        std::memcpy(room(parameter), state_.bytes_of(reference.thing).data(), sizeof(PublicBytes)));
  }
  return true;
}

// A token, a handle or a key that no call of the recording has made.
static uint64_t public_as_recorded(const Recording& recording, char letter, uint64_t word,
                                   std::span<const std::byte> pointed, char* room) {
  switch (letter) {
    case 'i': {
      const std::string* const text = recorded_text(recording, word);
      if (text == nullptr) return 0;
      text->copy(room, kCleared - 1);
      return word_of(room);
    }
    case 'j':
      return word_of(std::memcpy(room, &word, sizeof word));
    case 'O':
      if (word == 0) return 0;
      std::copy_n(pointed.begin(), std::min(pointed.size(), kCleared),
                  reinterpret_cast<std::byte*>(room));
      return word_of(room);
    default:
      return word;
  }
}

// What a parameter led to, as far as it was recorded.
void CallArguments::prepare_content(const PlannedCall& planned, size_t parameter, uint64_t word) {
  const auto content = recording_.pointed_by(planned.call, static_cast<uint32_t>(parameter));
  char* const place = room(parameter);
  words_.at(parameter) = word == 0 ? 0 : word_of(place);
  if (function(planned).roles[parameter].letter != 'g') {
    std::copy(content.begin(), content.end(), reinterpret_cast<std::byte*>(place));
    return;
  }
  char* const listed = place + kConfigurationRoom;
  std::copy(content.begin(), content.end(), reinterpret_cast<std::byte*>(listed));
  aclrtMallocConfig configuration{};
  configuration.attrs = reinterpret_cast<aclrtMallocAttribute*>(listed);
  configuration.numAttrs = content.size() / sizeof(aclrtMallocAttribute);
  std::memcpy(place, &configuration, sizeof configuration);
}

bool CallArguments::prepare_elements(const PlannedCall& planned, size_t parameter,
                                     uint32_t& reference) {
  const uint64_t word = recorded_word(recording_, recorded(planned), function(planned), parameter);
  prepare_content(planned, parameter, word);
  const auto content = recording_.pointed_by(planned.call, static_cast<uint32_t>(parameter));
  char* place = rooms_ + parameter * kRoom;
  bool are_made = true;
  for (size_t count = content.size() / sizeof(uint64_t); count > 0; --count) {
    const std::optional<uint64_t> value = value_of(plan_.references[reference++]);
    are_made = are_made && value.has_value();
    const uint64_t element = value.value_or(0);
    std::memcpy(place, &element, sizeof element);
    place += sizeof element;
  }
  return are_made;
}

int32_t CallArguments::process_now(int32_t pid) const {
  const auto& processes = recording_.processes;
  for (uint32_t i = 0; i < processes.size(); ++i) {
    if (static_cast<int32_t>(processes[i].pid) == pid) return state_.process(i).pid.load();
  }
  return pid;
}

void CallArguments::prepare_processes(size_t parameter, size_t bytes) {
  char* place = rooms_ + parameter * kRoom;
  for (size_t count = bytes / sizeof(int32_t); count > 0; --count) {
    int32_t pid = 0;
    std::memcpy(&pid, place, sizeof pid);
    pid = process_now(pid);
    std::memcpy(place, &pid, sizeof pid);
    place += sizeof pid;
  }
}

uint64_t CallArguments::thread_now(const Reference& reference) const {
  if (reference.thing == kNone) return reference.offset;
  return state_.thread(reference.thing).identity;
}

void CallArguments::prepare_properties(const PlannedCall& planned, size_t parameter) {
  const auto arguments = recording_.arguments(recorded(planned));
  const size_t first = function(planned).words[parameter];
  std::array<uint64_t, 4> words{};
  for (size_t i = 0; i < words.size() && first + i < arguments.size(); ++i) {
    words.at(i) = arguments[first + i];
  }
  if (std::ranges::all_of(words, [](uint64_t word) { return word == UINT64_MAX; })) {
    words_.at(parameter) = 0;
    return;
  }
  aclrtPhysicalMemProp properties{};
  properties.handleType = static_cast<aclrtMemHandleType>(static_cast<int32_t>(words[0]));
  properties.allocationType =
      static_cast<aclrtMemAllocationType>(static_cast<int32_t>(words[0] >> 32));
  properties.memAttr = static_cast<aclrtMemAttr>(static_cast<int32_t>(words[1]));
  properties.location.type =
      static_cast<aclrtMemLocationType>(static_cast<int32_t>(words[1] >> 32));
  properties.location.id = static_cast<uint32_t>(words[2]);
  properties.reserve = words[3];
  words_.at(parameter) = word_of(std::memcpy(room(parameter), &properties, sizeof properties));
}

bool CallArguments::prepare_given(const PlannedCall& planned, size_t parameter,
                                  uint32_t& reference) {
  const RecordedCall& call = recorded(planned);
  const ParameterRole& role = function(planned).roles[parameter];
  const uint64_t recorded = recorded_word(recording_, call, function(planned), parameter);
  uint64_t& word = words_.at(parameter);
  switch (role.letter) {
    case '.':
      word = recorded;
      return true;
    case 'a':
    case 'r':
      return prepare_reference(planned, parameter, plan_.references[reference++]);
    case 'A':
    case 'H':
      return prepare_elements(planned, parameter, reference);
    case 'm':
    case 'g':
      prepare_content(planned, parameter, recorded);
      return true;
    case 'q':
      prepare_content(planned, parameter, recorded);
      prepare_processes(
          parameter, recording_.pointed_by(planned.call, static_cast<uint32_t>(parameter)).size());
      return true;
    case 'p':
      prepare_properties(planned, parameter);
      return true;
    case 'L': {
      // Of a call that failed the pointer is known, and not where it leads to.
      char* const place = room(parameter);
      const aclrtMemLocation location{
          static_cast<uint32_t>(recorded),
          static_cast<aclrtMemLocationType>(static_cast<int32_t>(recorded >> 32))};
      if (call.code == 0) std::memcpy(place, &location, sizeof location);
      word = call.code != 0 && recorded == 0 ? 0 : word_of(place);
      return true;
    }
    case 't': {
      const std::string* const text = recorded_text(recording_, recorded);
      word = text == nullptr ? 0 : word_of(text->c_str());
      return true;
    }
    case 'd':
      word = thread_now(plan_.references[reference++]);
      return true;
    case 'P':
      word = static_cast<uint64_t>(process_now(static_cast<int32_t>(recorded)));
      return true;
    case 'f':
      word = recorded == 0 ? 0 : word_of_function(understudy_replay_does_nothing);
      return true;
    case 'F':
      word = recorded == 0 ? 0 : word_of_function(end_behind_calls);
      return true;
    case 'G':
      word = planned.gate;
      return true;
    case 'w':
    case 'x':
      word = recorded == 0 ? 0 : word_of(room(parameter));
      return true;
    default:
      break;
  }
  const Reference& referred = plan_.references[reference++];
  if (referred.source == Source::kThing || !role.is_public()) {
    return prepare_reference(planned, parameter, referred);
  }
  word = public_as_recorded(recording_, role.letter, recorded,
                            recording_.pointed_by(planned.call, static_cast<uint32_t>(parameter)),
                            room(parameter));
  return true;
}

bool CallArguments::prepare(const PlannedCall& planned) {
  const PlannedFunction& called = function(planned);
  const RecordedCall& call = recorded(planned);
  uint32_t reference = planned.first_reference;
  bool are_made = true;
  for (size_t i = 0; i < called.roles.size(); ++i) {
    if (called.roles[i].is_written) {
      const bool is_null = call.code != 0 && recorded_word(recording_, call, called, i) == 0;
      words_.at(i) = is_null ? 0 : word_of(room(i));
    } else if (!prepare_given(planned, i, reference)) {
      are_made = false;
    }
  }
  return are_made;
}

void CallArguments::publish_things(const PlannedCall& planned) {
  const PlannedFunction& called = function(planned);
  uint32_t thing = planned.first_thing;
  for (size_t i = 0; i < called.roles.size(); ++i) {
    const ParameterRole& role = called.roles[i];
    if (role.ends) memory_.note_end(words_.at(i));
    if (!role.is_written || role.letter == '.' || thing == kNone) continue;
    ThingNow& made = state_.thing(thing);
    const char* const written = rooms_ + i * kRoom;
    std::memcpy(&made.value, written, sizeof made.value);
    if (role.is_public()) std::memcpy(&state_.bytes_of(thing), written, sizeof(PublicBytes));
    if (role.letter == 'a') memory_.note_begin(made.value, plan_.things[thing].size);
    made.state.store(ThingState::kMade, std::memory_order_release);
    ++thing;
  }
}

void CallArguments::give_up_things(const PlannedCall& planned) {
  const PlannedFunction& called = function(planned);
  uint32_t thing = planned.first_thing;
  for (const ParameterRole& role : called.roles) {
    if (!role.is_written || role.letter == '.' || thing == kNone) continue;
    state_.thing(thing++).state.store(ThingState::kNeverMade, std::memory_order_release);
  }
}

uint64_t CallArguments::made(const PlannedCall& planned) const {
  const PlannedFunction& called = function(planned);
  for (size_t i = 0; i < called.roles.size(); ++i) {
    if (!called.roles[i].is_written || called.roles[i].letter == '.') continue;
    uint64_t value = 0;
    std::memcpy(&value, rooms_ + i * kRoom, sizeof value);
    return value;
  }
  return words_[0];
}

}  // namespace understudy::command
