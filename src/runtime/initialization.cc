// SPDX-License-Identifier: Apache-2.0
#include "runtime/initialization.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/scope_exit.h"
#include "device/config_value.h"
#include "platform/text_file.h"

namespace understudy {

namespace {

using Json = nlohmann::json;
// Objects inside each other, and arrays (INIT-15).
constexpr unsigned kMostNested = 10;

// How deep a parser is in objects and in arrays.
class Nesting {
 public:
  void see(Json::parse_event_t event) {
    using Event = Json::parse_event_t;
    // Whatever is too deep is not taken apart, so its end is not seen either.
    if (event == Event::object_start) deepest_ = std::max(deepest_, ++objects_);
    if (event == Event::array_start) deepest_ = std::max(deepest_, ++arrays_);
    if (event == Event::object_end) --objects_;
    if (event == Event::array_end) --arrays_;
  }
  bool too_deep() const { return deepest_ > kMostNested; }

 private:
  unsigned objects_ = 0;
  unsigned arrays_ = 0;
  unsigned deepest_ = 0;
};

// Numbers are written both as 0 and as "0".
std::optional<uint64_t> number_of(const Json& value) {
  if (value.is_number_unsigned()) return value.get<uint64_t>();
  if (value.is_string()) return parse_number(value.get_ref<const std::string&>());
  return std::nullopt;
}

Error wrong_entry(const char* path, const char* key, const char* allowed) {
  return Error::format(ErrorCode::kInvalidArgument, "%s of %s must be %s", key, path, allowed);
}

struct LimitKey {
  const char* section;  // null: at the top
  const char* key;
  KernelLimit limit;
};
constexpr LimitKey kLimitKeys[] = {
    {"StackSize", "simt_stack_size", KernelLimit::kThreadStack},
    {"StackSize", "simt_divergence_stack_size", KernelLimit::kDivergenceStack},
    {"StackSize", "aicore_stack_size", KernelLimit::kCoreStack},
    {nullptr, "simd_printf_fifo_size_per_core", KernelLimit::kCoreOutput},
    {nullptr, "simt_printf_fifo_size", KernelLimit::kThreadOutput},
};

// LIMIT-08
Result<void> read_limits(const Json& json, const char* path, InitOptions& options) {
  for (const LimitKey& each : kLimitKeys) {
    const Json* place = &json;
    if (each.section != nullptr) {
      if (!json.contains(each.section)) continue;
      place = &json[each.section];
      if (!place->is_object()) return wrong_entry(path, each.section, "an object");
    }
    if (!place->contains(each.key)) continue;
    const std::optional<uint64_t> value = number_of((*place)[each.key]);
    if (!value) return wrong_entry(path, each.key, "a number of bytes");
    options.kernel_limits[static_cast<size_t>(each.limit)] = value;
  }
  return {};
}

Result<void> read_entries(const Json& json, const char* path, InitOptions& options) {
  if (json.contains("defaultDevice")) {
    const Json& section = json["defaultDevice"];
    const std::optional<uint64_t> device = section.is_object() && section.contains("default_device")
                                               ? number_of(section["default_device"])
                                               : std::nullopt;
    if (!device || *device > std::numeric_limits<int32_t>::max()) {
      return wrong_entry(path, "defaultDevice.default_device", "a device number");
    }
    options.default_device = static_cast<int64_t>(*device);
  }
  if (json.contains("err_msg_mode")) {
    const std::optional<uint64_t> mode = number_of(json["err_msg_mode"]);
    if (!mode || *mode > 1) return wrong_entry(path, "err_msg_mode", "\"0\" or \"1\"");
    options.error_text_scope = *mode == 1 ? ErrorTextScope::kProcess : ErrorTextScope::kThread;
  }
  return read_limits(json, path, options);
}

}  // namespace

Result<InitOptions> read_init_options(const char* path) {
  InitOptions options;
  if (path == nullptr || *path == '\0') return options;
  const std::optional<std::string> text = platform::read_text_file(path);
  if (!text) {
    return Error::format(ErrorCode::kInvalidFile, "configPath %s cannot be read", path);
  }
  // Deep nesting has no meaning here, and taking it apart would need as deep a stack.
  Nesting nesting;
  const auto within_depth = [&](int, Json::parse_event_t event, Json&) {
    nesting.see(event);
    return !nesting.too_deep();
  };
  const Json json = Json::parse(*text, within_depth, /*allow_exceptions=*/false);
  if (nesting.too_deep()) {
    return Error::format(ErrorCode::kInvalidArgument,
                         "configPath %s has more than %u objects or arrays inside each other", path,
                         kMostNested);
  }
  if (!json.is_object()) {
    return Error::format(ErrorCode::kInvalidArgument, "configPath %s is not a JSON object", path);
  }
  US_TRY(read_entries(json, path, options));
  options.content = json.dump();
  options.text = *text;
  return options;
}

Result<int32_t> Initialization::init(const InitOptions& options, const Caller& call) {
  std::vector<Callback> callbacks;
  InitOptions previous_options;
  bool was_initialized = false;
  {
    MutexLock lock(mutex_);
    if (ever_initialized_ && options.content != options_.content) {
      return Error::format(ErrorCode::kInvalidArgument,
                           "the configuration is %s and was %s the first time",
                           options.content.c_str(), options_.content.c_str());
    }
    if (uses_ > 0) {
      ++uses_;
      return Error::format(ErrorCode::kAlreadyInitialized,
                           "the process is initialized already, now %llu times",
                           static_cast<unsigned long long>(uses_));
    }
    uses_ = 1;
    was_initialized = std::exchange(ever_initialized_, true);
    previous_options = std::exchange(options_, options);
    callbacks = init_callbacks_;
  }
  // A callback may fail, throw, or end its thread.
  ScopeExit undo([&] {
    MutexLock lock(mutex_);
    // Other threads may have finalized meanwhile, or counted uses of their own, which stand.
    if (uses_ > 0) --uses_;
    if (uses_ > 0) return;
    ever_initialized_ = was_initialized;
    std::swap(options_, previous_options);
  });
  for (const Callback& callback : callbacks) {
    if (const int32_t code = call(callback, options.text); code != 0) return code;
  }
  undo.dismiss();
  return 0;
}

Result<uint64_t> Initialization::finalize_all(const Caller& call) {
  return finalize(Uses::kAll, call);
}

Result<uint64_t> Initialization::finalize_one(const Caller& call) {
  return finalize(Uses::kOne, call);
}

Result<uint64_t> Initialization::finalize(Uses uses, const Caller& call) {
  std::vector<Callback> callbacks;
  std::string text;
  uint64_t ended = 0;
  {
    MutexLock lock(mutex_);
    if (uses_ == 0) {
      return Error::format(ErrorCode::kAlreadyFinalized,
                           "the process is not initialized, or finalized already");
    }
    ended = uses == Uses::kAll ? uses_ : 1;
    if (uses_ == ended) {
      callbacks = finalize_callbacks_;
      text = options_.text;
    }
    uses_ -= ended;
    if (uses_ > 0) return uses_;
  }
  // A callback may throw or end its thread: then nothing has ended.
  ScopeExit undo([&] {
    MutexLock lock(mutex_);
    uses_ += ended;
  });
  for (const Callback& callback : callbacks) call(callback, text);
  undo.dismiss();
  return uint64_t{0};
}

Result<int32_t> Initialization::add_callback(Moment moment, const Callback& callback,
                                             Multiplicity multiplicity, const Caller& call) {
  std::string text;
  {
    MutexLock lock(mutex_);
    std::vector<Callback>& callbacks = callbacks_locked(moment);
    for (const Callback& other : callbacks) {
      if (other.type == callback.type && multiplicity == Multiplicity::kOne) {
        return Error::format(ErrorCode::kCallbackRefused,
                             "type %d has a callback already and takes one only", callback.type);
      }
    }
    callbacks.push_back(callback);
    if (moment != Moment::kInit || uses_ == 0) return 0;
    text = options_.text;
  }
  return call(callback, text);
}

Result<void> Initialization::remove_callback(Moment moment, int32_t type, AnyFunction function) {
  MutexLock lock(mutex_);
  std::vector<Callback>& callbacks = callbacks_locked(moment);
  for (auto callback = callbacks.begin(); callback != callbacks.end(); ++callback) {
    if (callback->type != type || callback->function != function) continue;
    callbacks.erase(callback);
    return {};
  }
  return Error::format(ErrorCode::kCallbackRefused, "type %d has no such callback", type);
}

}  // namespace understudy
