// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/replay_plan.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <queue>
#include <unordered_map>

#include "memory/address_layout.h"
#include "tools/replay/known_values.h"

namespace understudy::command {

namespace {

constexpr uint64_t kUnknownBytes = 512;  // of a descriptor in the program's memory
constexpr uint64_t kMostHostBytes = uint64_t{64} << 30;

constexpr const char* kNotKnown = "what it uses was made by a call that is not in the recording";
constexpr const char* kNotOfMemory = "what it uses is not made with --only memory";
constexpr const char* kNotRecorded = "what its arguments lead to is not part of the recording";

bool may_be_host_memory(uint64_t address) {
  return address >= kHostBegin && address < kHostEnd && !is_in_device_window(address);
}

// How processes know a thing of another one.
std::string public_name(char letter, std::span<const std::byte> bytes) {
  std::string name(1, letter == 'O' ? 'o' : letter);
  return name.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

class Planner {
 public:
  Planner(const Recording& recording, ReplayedCalls which)
      : recording_(recording),
        which_(which),
        is_incomplete_(is_incomplete(recording)),
        known_(recording.processes.size()) {}

  ReplayPlan make();

 private:
  // A call that has begun, until it ends.
  struct OpenEnd {
    uint64_t time;
    uint32_t planned;
    bool operator>(const OpenEnd& other) const {
      return time != other.time ? time > other.time : planned > other.planned;
    }
  };

  void plan_functions();
  void find_threads_of_reports();
  void find_devices_of_threads();
  void find_gates();
  void plan_call(uint32_t number);
  // Why it cannot be made.
  const char* refer(uint32_t number, const PlannedFunction& function);
  const char* refer_address(const RecordedCall& call, uint64_t address, uint64_t bytes);
  const char* refer_handle(const RecordedCall& call, char kind, uint64_t value);
  const char* refer_public(uint32_t number, const PlannedFunction& function, size_t parameter);
  const char* refer_elements(uint32_t number, const PlannedFunction& function, size_t parameter);
  void refer_thread(uint32_t process, uint64_t identity);
  void note_own_memory(const PlannedFunction& function, PlannedCall& planned);
  void end_calls(uint64_t until);
  void note_what_was_made(const PlannedCall& planned);
  uint64_t size_of_made(const RecordedCall& call, const PlannedFunction& function,
                        const PlannedCall& planned, size_t parameter) const;
  std::string public_name_of(uint32_t number, const PlannedFunction& function,
                             size_t parameter) const;
  // Whether an unknown value of the call stands for a thing all the same.
  bool is_right_value(const RecordedCall& call) const { return call.code == 0 || is_incomplete_; }
  const char* not_known() const {
    return which_ == ReplayedCalls::kOnlyMemory ? kNotOfMemory : kNotKnown;
  }
  uint32_t process_of(const RecordedCall& call) const {
    return recording_.threads[call.thread].process;
  }

  const Recording& recording_;
  const ReplayedCalls which_;
  const bool is_incomplete_;
  ReplayPlan plan_;
  std::vector<KnownValues> known_;  // of each process
  std::unordered_map<std::string, uint32_t> public_;
  std::map<std::pair<uint32_t, std::string>, uint64_t> left_out_;
  std::priority_queue<OpenEnd, std::vector<OpenEnd>, std::greater<>> open_;
  std::vector<uint64_t> ends_;  // of the calls that have ended, in order
  // Threads that take reports, by process; and who a number of a thread means.
  std::vector<std::vector<uint32_t>> reporters_;
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> identities_;
};

void Planner::plan_functions() {
  for (const RecordedFunction& recorded : recording_.functions) {
    PlannedFunction& function = plan_.functions.emplace_back();
    const ReplayedCall* const known = find_replayed_call(recorded.name);
    if (known == nullptr || known->invoke == nullptr) {
      function.why_not = known == nullptr ? "it is not a function of this API" : known->roles;
      continue;
    }
    function.roles = parse_roles(known->roles);
    if (function.roles.size() != recorded.parameters.size()) {
      function.why_not = "it was recorded with other parameters";
      continue;
    }
    uint32_t word = 0;
    for (const Parameter& parameter : recorded.parameters) {
      function.words.push_back(word);
      word += parameter.words;
    }
    if (which_ == ReplayedCalls::kOnlyMemory && known->group == CallGroup::kOther) {
      function.why_not = "";  // as was asked for
      continue;
    }
    function.called = known;
  }
}

void Planner::find_threads_of_reports() {
  reporters_.resize(recording_.processes.size());
  std::vector<bool> seen(recording_.threads.size());
  for (const RecordedCall& call : recording_.calls) {
    if (seen[call.thread] || recording_.functions[call.function].name != "aclrtProcessReport")
      continue;
    seen[call.thread] = true;
    reporters_[process_of(call)].push_back(call.thread);
  }
}

void Planner::find_devices_of_threads() {
  // Of calls that show which device their thread uses.
  std::unordered_map<uint32_t, int32_t> devices;
  for (const RecordedObject& object : recording_.objects) {
    if (object.begin_call != kNone && object.device >= 0) {
      devices[object.begin_call] = object.device;
    }
  }
  for (const RecordedTask& task : recording_.tasks) {
    if (task.queued_by != kNone) devices[task.queued_by] = recording_.streams[task.stream].device;
  }
  std::vector<bool> has_chosen(recording_.threads.size());
  for (uint32_t number = 0; number < recording_.calls.size(); ++number) {
    const RecordedCall& call = recording_.calls[number];
    if (has_chosen[call.thread] || call.code != 0) continue;
    const std::string& name = recording_.functions[call.function].name;
    const auto shown = devices.find(number);
    if (name == "aclrtSetDevice" || name == "aclrtSetCurrentContext" ||
        name == "aclrtCreateContext") {
      has_chosen[call.thread] = true;
    } else if (shown != devices.end() && shown->second >= 0) {
      has_chosen[call.thread] = true;
      plan_.threads[call.thread].device = shown->second;
    }
  }
}

const char* Planner::refer_address(const RecordedCall& call, uint64_t address, uint64_t bytes) {
  Reference reference{.offset = address};
  const bool succeeded = call.code == 0;
  KnownValues& known = known_[process_of(call)];
  auto found = known.find_address(address);
  // A wrong call may be about the memory that ends before it.
  if (!found && !succeeded && is_in_device_window(address)) found = known.find_near(address);
  // What has ended is of no use: the call that made another thing there is missing.
  if (found && found->has_ended && succeeded) return not_known();
  if (found) {
    reference = {found->offset, found->thing, Source::kThing, found->has_ended};
    if (found->has_ended) plan_.processes[process_of(call)].uses_what_ended = true;
  } else if (may_be_host_memory(address)) {
    reference.source = Source::kHostMemory;
    uint64_t& most = plan_.processes[process_of(call)].host_bytes;
    most = std::max(most, std::min(bytes, kMostHostBytes));
  } else if (address != 0 && is_right_value(call) && is_in_device_window(address)) {
    return not_known();
  }
  plan_.references.push_back(reference);
  return nullptr;
}

const char* Planner::refer_handle(const RecordedCall& call, char kind, uint64_t value) {
  Reference reference{.offset = value};
  const auto found = known_[process_of(call)].find_handle(kind, value);
  if (found) {
    reference = {0, *found, Source::kThing, false};
  } else if (value != 0 && is_right_value(call)) {
    return not_known();
  }
  plan_.references.push_back(reference);
  return nullptr;
}

std::string Planner::public_name_of(uint32_t number, const PlannedFunction& function,
                                    size_t parameter) const {
  const char letter = function.roles[parameter].letter;
  const uint64_t word = recorded_word(recording_, recording_.calls[number], function, parameter);
  switch (letter) {
    case 'i':
      if (const std::string* const text = recorded_text(recording_, word)) {
        return public_name(letter, std::as_bytes(std::span(*text)));
      }
      return {};
    case 'O': {
      const auto bytes = recording_.pointed_by(number, static_cast<uint32_t>(parameter));
      return bytes.empty() ? std::string() : public_name(letter, bytes);
    }
    default:
      return word == 0 ? std::string() : public_name(letter, std::as_bytes(std::span(&word, 1)));
  }
}

const char* Planner::refer_public(uint32_t number, const PlannedFunction& function,
                                  size_t parameter) {
  const RecordedCall& call = recording_.calls[number];
  const uint64_t word = recorded_word(recording_, call, function, parameter);
  Reference reference{.offset = word};
  const std::string name = public_name_of(number, function, parameter);
  const auto found = public_.find(name);
  if (found != public_.end()) {
    reference = {0, found->second, Source::kThing, false};
    const uint32_t maker = plan_.things[found->second].process;
    if (maker != process_of(call) && call.code == 0) {
      plan_.processes[maker].needed_until = static_cast<uint32_t>(plan_.calls.size());
    }
  } else if (call.code == 0) {
    return name.empty() ? kNotRecorded : not_known();
  }
  plan_.references.push_back(reference);
  return nullptr;
}

const char* Planner::refer_elements(uint32_t number, const PlannedFunction& function,
                                    size_t parameter) {
  const RecordedCall& call = recording_.calls[number];
  const ParameterRole& role = function.roles[parameter];
  const auto bytes = recording_.pointed_by(number, static_cast<uint32_t>(parameter));
  for (size_t element = 0; element < bytes.size() / sizeof(uint64_t); ++element) {
    uint64_t value = 0;
    std::memcpy(&value, bytes.data() + element * sizeof value, sizeof value);
    const char* const why =
        role.letter == 'H'
            ? refer_handle(call, 'n', value)
            : refer_address(call, value, recorded_element_bytes(recording_, number, role, element));
    if (why != nullptr) return why;
  }
  return nullptr;
}

// Which thread a number means is not recorded: the first one that is subscribed is taken for the
// first one that takes reports, and so on.
void Planner::refer_thread(uint32_t process, uint64_t identity) {
  const auto [found, is_new] = identities_.try_emplace({process, identity}, kNone);
  std::vector<uint32_t>& reporters = reporters_[process];
  if (is_new && !reporters.empty()) {
    found->second = reporters.front();
    reporters.erase(reporters.begin());
  }
  plan_.references.push_back({.offset = identity, .thing = found->second});
}

const char* Planner::refer(uint32_t number, const PlannedFunction& function) {
  const RecordedCall& call = recording_.calls[number];
  for (size_t i = 0; i < function.roles.size(); ++i) {
    const ParameterRole& role = function.roles[i];
    if (role.is_written) continue;
    const uint64_t word = recorded_word(recording_, call, function, i);
    const char* why = nullptr;
    switch (role.letter) {
      case 'a':
      case 'r':
        why = refer_address(call, word, recorded_bytes(recording_, call, function, role));
        if (why == nullptr && role.ends && call.code == 0 &&
            plan_.references.back().source != Source::kThing) {
          why = not_known();
        }
        break;
      case 'A':
      case 'H':
        why = refer_elements(number, function, i);
        [[fallthrough]];
      case 'm':
      case 'q':
        if (call.code == 0 && word != 0 &&
            recording_.pointed_by(number, static_cast<uint32_t>(i)).empty()) {
          why = kNotRecorded;
        }
        break;
      case 'd':
        refer_thread(process_of(call), word);
        break;
      default:
        if (role.is_public()) {
          why = refer_public(number, function, i);
        } else if (role.is_handle()) {
          why = refer_handle(call, role.letter, word);
        }
    }
    if (why != nullptr) return why;
  }
  return nullptr;
}

// Memory of the program becomes a thing where the library keeps it in mind.
void Planner::note_own_memory(const PlannedFunction& function, PlannedCall& planned) {
  const RecordedCall& call = recording_.calls[planned.call];
  uint32_t reference = planned.first_reference;
  for (size_t i = 0; i < function.roles.size(); ++i) {
    const ParameterRole& role = function.roles[i];
    if (role.letter == 'r' && plan_.references[reference].source == Source::kHostMemory) {
      const uint64_t size =
          role.size < 0 ? kUnknownBytes : recorded_bytes(recording_, call, function, role);
      const auto thing = static_cast<uint32_t>(plan_.things.size());
      plan_.things.push_back({process_of(call), std::min(size, kMostHostBytes)});
      known_[process_of(call)].add_range(recorded_word(recording_, call, function, i), size, thing);
      plan_.references[reference] = {0, thing, Source::kThing, false};
    }
    return;  // it is the first parameter of all functions that have one
  }
}

uint64_t Planner::size_of_made(const RecordedCall& call, const PlannedFunction& function,
                               const PlannedCall& planned, size_t parameter) const {
  const ParameterRole& role = function.roles[parameter];
  if (role.size < 0) return role.letter == 'a' ? kUnknownBytes : 0;
  if (!role.is_alike) return recorded_bytes(recording_, call, function, role);
  // The other parameter is the only one that refers to something.
  if (planned.first_reference >= plan_.references.size()) return kUnknownBytes;
  const Reference& other = plan_.references[planned.first_reference];
  if (other.source != Source::kThing) return kUnknownBytes;
  const uint64_t size = plan_.things[other.thing].size;
  return size > other.offset ? size - other.offset : kUnknownBytes;
}

void Planner::plan_call(uint32_t number) {
  const RecordedCall& call = recording_.calls[number];
  const PlannedFunction& function = plan_.functions[call.function];
  const uint32_t process = process_of(call);
  const auto left_out = [&](const char* why) {
    if (*why != '\0') ++left_out_[{call.function, why}];
  };
  if (function.called == nullptr) return left_out(function.why_not);
  PlannedCall planned;
  planned.call = number;
  planned.awaited = static_cast<uint32_t>(ends_.size());
  planned.first_reference = static_cast<uint32_t>(plan_.references.size());
  if (const char* const why = refer(number, function)) {
    plan_.references.resize(planned.first_reference);
    return left_out(why);
  }
  note_own_memory(function, planned);
  if (call.code == 0) {
    for (size_t i = 0; i < function.roles.size(); ++i) {
      const ParameterRole& role = function.roles[i];
      if (role.ends) {
        known_[process].end_range(recorded_word(recording_, call, function, i));
      }
      if (!role.is_written || role.letter == '.') continue;
      if (planned.first_thing == kNone) {
        planned.first_thing = static_cast<uint32_t>(plan_.things.size());
      }
      plan_.things.push_back({process, size_of_made(call, function, planned, i)});
    }
  }
  const auto position = static_cast<uint32_t>(plan_.calls.size());
  plan_.calls.push_back(planned);
  plan_.threads[call.thread].calls.push_back(position);
  open_.push({call.begin + call.duration, position});
}

void Planner::note_what_was_made(const PlannedCall& planned) {
  const RecordedCall& call = recording_.calls[planned.call];
  const PlannedFunction& function = plan_.functions[call.function];
  uint32_t thing = planned.first_thing;
  if (thing == kNone) return;
  KnownValues& known = known_[process_of(call)];
  for (size_t i = 0; i < function.roles.size(); ++i) {
    const ParameterRole& role = function.roles[i];
    if (!role.is_written || role.letter == '.') continue;
    const uint64_t value = recorded_word(recording_, call, function, i);
    if (role.is_public()) {
      const std::string name = public_name_of(planned.call, function, i);
      if (!name.empty()) public_[name] = thing;
    } else if (role.letter == 'a') {
      if (value != 0) known.add_range(value, plan_.things[thing].size, thing);
    } else {
      known.add_handle(role.letter, value, thing);
    }
    ++thing;
  }
}

void Planner::end_calls(uint64_t until) {
  while (!open_.empty() && open_.top().time <= until) {
    const OpenEnd end = open_.top();
    open_.pop();
    plan_.calls[end.planned].place = static_cast<uint32_t>(ends_.size());
    ends_.push_back(end.time);
    const PlannedCall& planned = plan_.calls[end.planned];
    plan_.processes[process_of(recording_.calls[planned.call])].over_at = planned.place + 1;
    note_what_was_made(planned);
  }
}

// Streams and threads of the program may have waited for the end of a function on a stream: it ends
// again when all calls have ended that had ended before it.
void Planner::find_gates() {
  std::unordered_map<uint32_t, uint64_t> ends;
  for (const RecordedTask& task : recording_.tasks) {
    if (task.has_run && task.queued_by != kNone) ends[task.queued_by] = task.begin + task.duration;
  }
  for (PlannedCall& planned : plan_.calls) {
    const std::vector<ParameterRole>& roles =
        plan_.functions[recording_.calls[planned.call].function].roles;
    if (std::none_of(roles.begin(), roles.end(),
                     [](const auto& role) { return role.letter == 'F'; }))
      continue;
    const auto end = ends.find(planned.call);
    if (end == ends.end()) continue;
    planned.gate = static_cast<uint32_t>(std::lower_bound(ends_.begin(), ends_.end(), end->second) -
                                         ends_.begin());
  }
}

ReplayPlan Planner::make() {
  plan_.threads.resize(recording_.threads.size());
  plan_.processes.resize(recording_.processes.size());
  plan_functions();
  find_threads_of_reports();
  find_devices_of_threads();
  for (uint32_t number = 0; number < recording_.calls.size(); ++number) {
    end_calls(recording_.calls[number].begin);
    plan_call(number);
  }
  end_calls(UINT64_MAX);
  find_gates();
  for (uint32_t thread = 0; thread < recording_.threads.size(); ++thread) {
    if (plan_.threads[thread].calls.empty()) continue;
    plan_.processes[recording_.threads[thread].process].threads.push_back(thread);
  }
  for (const auto& [which, calls] : left_out_) {
    plan_.left_out.push_back({which.first, which.second, calls});
  }
  std::stable_sort(plan_.left_out.begin(), plan_.left_out.end(),
                   [](const auto& left, const auto& right) { return left.calls > right.calls; });
  return std::move(plan_);
}

}  // namespace

uint64_t recorded_word(const Recording& recording, const RecordedCall& call,
                       const PlannedFunction& function, size_t parameter) {
  const uint32_t word = function.words[parameter];
  const auto arguments = recording.arguments(call);
  return word < arguments.size() ? arguments[word] : 0;
}

uint64_t recorded_bytes(const Recording& recording, const RecordedCall& call,
                        const PlannedFunction& function, const ParameterRole& role) {
  if (role.size < 0) return 0;
  const uint64_t size = recorded_word(recording, call, function, static_cast<size_t>(role.size));
  if (role.factor < 0) return size;
  const uint64_t factor =
      recorded_word(recording, call, function, static_cast<size_t>(role.factor));
  uint64_t product = 0;
  return __builtin_mul_overflow(size, factor, &product) ? UINT64_MAX : product;
}

uint64_t recorded_element_bytes(const Recording& recording, uint32_t call,
                                const ParameterRole& role, size_t element) {
  if (role.size < 0) return 0;
  const auto sizes = recording.pointed_by(call, static_cast<uint32_t>(role.size));
  uint64_t size = 0;
  if (sizes.size() / sizeof size <= element) return 0;
  std::memcpy(&size, sizes.data() + element * sizeof size, sizeof size);
  return size;
}

const std::string* recorded_text(const Recording& recording, uint64_t word) {
  return word < recording.texts.size() ? &recording.texts[word] : nullptr;
}

bool is_incomplete(const Recording& recording) {
  return recording.is_ring || recording.is_part || recording.lost != 0 || !recording.notes.empty();
}

ReplayPlan make_replay_plan(const Recording& recording, ReplayedCalls which) {
  return Planner(recording, which).make();
}

}  // namespace understudy::command
