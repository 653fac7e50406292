// SPDX-License-Identifier: Apache-2.0
#include "runtime/runtime.h"

#include <cstdlib>
#include <memory>
#include <utility>

#include "base/scope_exit.h"
#include "device/config.h"
#include "device/config_names.h"
#include "device/switched_features.h"
#include "observe/advice.h"
#include "observe/device_choices.h"
#include "platform/fork_sentinel.h"
#include "platform/loaded_library.h"
#include "platform/log.h"
#include "platform/private_directory.h"
#include "platform/system_number.h"
#include "runtime/call_gate.h"
#include "runtime/call_watch.h"

namespace understudy {

std::atomic<Runtime*> Runtime::current_{nullptr};

Runtime::Runtime(Settings settings, std::unique_ptr<Server> server)
    : settings_(std::move(settings)),
      plain_features_(settings_.product.features -
                      (is_advised() ? settings_.switched_on : FeatureSet())),
      server_(std::move(server)),
      pools_(settings_, *server_),
      physical_(settings_, capacity(), pools_),
      space_(settings_, physical_, pools_),
      device_memory_(settings_, capacity(), pools_, physical_, space_),
      sharing_(*server_, {capacity(), pools_, physical_, device_memory_}),
      ipc_keys_(*server_, sharing_, device_memory_),
      host_memory_(settings_, pools_, space_, device_memory_),
      transfer_(settings_, space_, pools_),
      streams_(settings_, transfer_, host_memory_, &server_->figures()),
      memory_pools_(capacity(), physical_, space_, device_memory_, streams_),
      copies_(settings_, {space_, host_memory_}, transfer_, pools_.budget(), streams_),
      cache_operations_({space_, host_memory_}, copies_, streams_),
      prefetches_(space_.managed(), streams_),
      events_(settings_, streams_, server_->events()),
      ring_listener_(server_->slots(), streams_),
      notifies_(settings_, streams_, server_->notifies(), ring_listener_,
                [this](ShareToken token) { sharing_.notify_access().forget(token); }),
      notify_keys_(*server_, sharing_.notify_access(), notifies_),
      devices_(settings_, device_memory_, streams_, events_, notifies_),
      snapshot_(settings_, capacity(), streams_, devices_),
      kernel_limits_(settings_),
      operator_timeout_(settings_.product.operator_times) {
  server_->figures().set_soc(settings_.soc_name);
}

namespace {

// Programs then have two sets of devices without knowing it: say so where it is seen.
Result<void> refuse_second_copy() {
  const auto copies = platform::second_copy_of_this_library();
  if (!copies) return {};
  const Error error = Error::format(ErrorCode::kInternal,
                                    "the process has loaded two copies of the library, %s and %s",
                                    copies->own.c_str(), copies->other.c_str());
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) platform::say("%s", error.text());
  return error;
}

// A setting that is misspelt would silently have its default.
void name_unknown_variables() {
  static std::atomic<bool> said{false};
  if (said.load()) return;
  for (const std::string& sentence : unknown_variables()) platform::say("%s", sentence.c_str());
  said.store(true);
}

// Begins the log as well, so that a wrong configuration is told of where the environment asks for
// it.
Result<Settings> read_settings_and_watch_calls() {
  Result<Settings> settings = read_settings();
  US_TRY(choose_call_watch(settings));
  return settings;
}

// What is wrong with the directory where processes meet, and how to choose another.
Error with_advice(const Error& error) {
  if (error.code() != ErrorCode::kNoPermission && !platform::means_unusable_place(error)) {
    return error;
  }
  return Error::format(
      error.code(),
      "the runtime directory cannot be used: %.200s; set UNDERSTUDY_RUNTIME_DIR to "
      "a directory of your own",
      error.text());
}

Result<std::unique_ptr<Server>> join_server(const Settings& settings) {
  ServerShape shape;
  settings.product.key.copy(shape.product.data(), shape.product.size() - 1);
  shape.devices = settings.server_devices;
  shape.memory = settings.memory;
  shape.normal_memory = settings.normal_memory;
  shape.idle_usage = settings.idle_usage;
  shape.host_window = settings.host_peer_memory.value_or(ServerShape::kUnlimited);
  US_TRY_ASSIGN(platform::PrivateDirectory directory,
                platform::PrivateDirectory::open_or_make(settings.runtime_directory.empty()
                                                             ? platform::default_server_directory()
                                                             : settings.runtime_directory));
  return Server::join(std::move(directory), shape, settings.visible_devices);
}

// The socket at which others find this process goes with it; after a kill, with its slot.
void withdraw_socket() {
  if (Runtime* const runtime = Runtime::existing()) runtime->sharing().withdraw();
}
// When the library is loaded: a fork in the middle of a static variable's initialization, or of the
// C library's list of handlers, would leave the child waiting for it for ever.
[[maybe_unused]] const bool withdraws_at_exit = std::atexit(withdraw_socket) == 0;

// What a schedule did. Before checks end the process with a status of theirs, and behind all
// handlers of exit, some of which wait for streams.
[[gnu::destructor]] void tell_schedule() {
  if (Runtime* const runtime = Runtime::existing()) runtime->streams().tell_schedule();
}

}  // namespace

Result<Runtime*> Runtime::make_instance() {
  // One at a time: a second runtime of the process, however short its life, would be a second set
  // of devices.
  const platform::ProcessTurn turn;
  if (Runtime* const made = existing()) return made;
  return make_instance_alone();
}

Result<Runtime*> Runtime::make_instance_alone() {
  if (platform::in_fork_child()) {
    // The parent's runtime, if it had one, is a picture of a moment, with locks that no thread will
    // release and windows that were not inherited. Leave it where it is.
    platform::close_inherited_descriptors();
    (void)CallGate::notice_child();
    thread_state() = {};
  }
  US_TRY(refuse_second_copy());
  name_unknown_variables();
  US_TRY_ASSIGN(Settings settings, read_settings_and_watch_calls());
  Result<std::unique_ptr<Server>> server = join_server(settings);
  if (!server.ok()) return with_advice(server.error());
  auto* const fresh = new Runtime(std::move(settings), std::move(server.value()));
  current_.store(fresh, std::memory_order_release);
  platform::arm_fork_sentinel();
  return fresh;
}

Result<void> Runtime::require_slowly(Feature feature, const char* what) const {
  if (!settings_.product.has(feature)) return missing_feature(feature, what);
  if (is_advised()) advise_if_switched_on(settings_, feature);
  return {};
}

Error Runtime::missing_feature(Feature feature, const char* what) const {
  // What the product has with a newer driver.
  if (settings_.driver->lacks.has(feature) && find_product(settings_.product.key)->has(feature)) {
    return Error::format(
        ErrorCode::kNotInProduct, "driver %s does not have %s; drivers from %s on have it",
        settings_.driver->name.data(), what, first_driver_with(feature).name.data());
  }
  return Error::format(ErrorCode::kNotInProduct, "product %s (%s) does not have %s; it is in %s",
                       settings_.product.key.data(), settings_.soc_name.c_str(), what,
                       products_with(feature).c_str());
}

Result<ContextReference> Runtime::find_missing_context() {
  Result<ContextReference> found = look_for_context();
  if (!found.ok() && is_advised()) {
    DeviceChoices::tell_missing_context(
        found.error(), [this](uint64_t context) { return devices_.find_context(context).ok(); });
  }
  return found;
}

Result<ContextReference> Runtime::look_for_context() {
  ThreadState& thread = thread_state();
  if (thread.context.valid()) [[likely]]
    return thread.context;
  const int64_t adopted = default_device_.load(std::memory_order_relaxed);
  if (adopted >= 0 && adopted < devices_.count()) {
    US_TRY_ASSIGN(const auto context, devices_.set(static_cast<unsigned>(adopted)));
    if (context) {
      make_current(*context);
      return *context;
    }
  }
  return Error::format(ErrorCode::kNoContext,
                       "the calling thread has no context; set a device or a context first");
}

void make_current(const ContextReference& context) {
  thread_state().context = context;
  if (is_advised()) [[unlikely]]
    DeviceChoices::note_context(context.handle(), context.device());
}

Result<VirtualAddress> Runtime::overflow_status() {
  US_TRY_ASSIGN(const ContextReference context, current_context());
  if (const VirtualAddress known = devices_.overflow_status(context); known != 0) return known;
  const unsigned device = context.device();
  US_TRY_ASSIGN(const VirtualAddress fresh,
                device_memory_.allocate_internal(device, kOverflowStatusBytes));
  ScopeExit undo([&] { device_memory_.free_internal(fresh); });
  US_TRY(transfer_.set(fresh, 0, kOverflowStatusBytes, device));
  const VirtualAddress kept = devices_.keep_overflow_status(context, fresh);
  if (kept == 0) {
    return Error::format(ErrorCode::kNoContext, "the context ended during the call");
  }
  if (kept == fresh) undo.dismiss();
  return kept;
}

Result<void> Runtime::wait_for_device(Deadline deadline) {
  US_TRY_ASSIGN(const ContextReference context, current_context());
  return streams_.synchronize_owner(context.handle(), deadline);
}

void Runtime::apply(const InitOptions& options) {
  default_device_.store(options.default_device.value_or(-1), std::memory_order_relaxed);
  text_scope_.store(options.error_text_scope, std::memory_order_relaxed);
  // They were found good before. Limits that another thread has set since count.
  (void)kernel_limits_.set(options.kernel_limits);
}

template <typename Change>
void Runtime::change_texts(Change change) {
  Runtime* const runtime = existing();
  if (runtime == nullptr ||
      runtime->text_scope_.load(std::memory_order_relaxed) == ErrorTextScope::kThread) {
    ErrorTexts& texts = thread_state().texts;
    change(texts);
    awaited_successes = texts.awaited();
    return;
  }
  MutexLock lock(runtime->texts_mutex_);
  change(runtime->texts_);
  awaited_successes = runtime->texts_.awaited();
}

void Runtime::add_error_text(const char* function, const Error& error) {
  change_texts([&](ErrorTexts& texts) { texts.add(function, error); });
}

std::string Runtime::take_error_texts() {
  std::string taken;
  change_texts([&](ErrorTexts& texts) { taken = texts.take(); });
  return taken;
}

void Runtime::note_success(const char* function) noexcept {
  change_texts([&](ErrorTexts& texts) { texts.note_success(function); });
}

}  // namespace understudy
