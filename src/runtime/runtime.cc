// SPDX-License-Identifier: Apache-2.0
#include "runtime/runtime.h"

#include <cstdio>
#include <memory>
#include <utility>

#include "base/pause.h"
#include "platform/fork_sentinel.h"
#include "platform/loaded_library.h"
#include "platform/private_directory.h"
#include "runtime/config.h"
#include "runtime/process.h"

namespace understudy {

std::atomic<Runtime*> Runtime::current_{nullptr};

Runtime::Runtime(Settings settings, std::unique_ptr<Ledger> ledger)
    : process_(current_process_id()),
      settings_(std::move(settings)),
      ledger_(std::move(ledger)),
      capacity_(*ledger_, settings_.visible_devices),
      storages_(settings_, *ledger_),
      physical_(settings_, capacity_, storages_),
      space_(settings_, physical_, storages_),
      device_memory_(settings_, capacity_, storages_, physical_, space_),
      sharing_(*ledger_, capacity_, storages_, physical_, device_memory_),
      ipc_keys_(*ledger_, sharing_, device_memory_),
      host_memory_(settings_, storages_, space_, device_memory_),
      transfer_(settings_, space_, storages_),
      streams_(settings_, transfer_, host_memory_),
      events_(streams_, *ledger_),
      devices_(settings_, device_memory_, streams_, events_) {}

bool Runtime::platform_forked() { return platform::in_fork_child(); }

namespace {

// Programs then have two sets of devices without knowing it: say so where it is seen.
Result<void> refuse_second_copy() {
  const auto copies = platform::second_copy_of_this_library();
  if (!copies) return {};
  const Error error = Error::format(ErrorCode::kInternal,
                                    "the process has loaded two copies of the library, %s and %s",
                                    copies->own.c_str(), copies->other.c_str());
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) fprintf(stderr, "understudy: %s\n", error.text());
  return error;
}

Result<std::unique_ptr<Ledger>> join_server(const Settings& settings) {
  ServerShape shape;
  settings.product.key.copy(shape.product.data(), shape.product.size() - 1);
  shape.devices = settings.server_devices;
  shape.memory = settings.memory;
  shape.normal_memory = settings.normal_memory;
  US_TRY_ASSIGN(platform::PrivateDirectory directory,
                platform::PrivateDirectory::open_or_make(settings.runtime_directory.empty()
                                                             ? platform::default_server_directory()
                                                             : settings.runtime_directory));
  return Ledger::join(std::move(directory), shape);
}

// One thread of a process at a time. A fork child may find what its parent left.
class MakerTurn {
 public:
  explicit MakerTurn(int32_t process) {
    int32_t seen = 0;
    while (!maker_.compare_exchange_weak(seen, process)) {
      if (seen == process) {
        nap();
        seen = 0;
      }
    }
  }
  ~MakerTurn() { maker_.store(0); }
  MakerTurn(const MakerTurn&) = delete;
  MakerTurn& operator=(const MakerTurn&) = delete;

 private:
  static inline std::atomic<int32_t> maker_{0};
};

}  // namespace

Result<Runtime*> Runtime::make_instance() {
  // A second runtime of the process, however short its life, would end the first one's hold on the
  // server's files.
  const MakerTurn turn(current_process_id());
  if (Runtime* const made = existing()) return made;
  return make_instance_alone();
}

Result<Runtime*> Runtime::make_instance_alone() {
  if (current_.load(std::memory_order_acquire) != nullptr) {
    // A fork child: the parent's runtime is a picture of a moment, with locks that nobody will
    // release and windows that were not inherited. Leave it where it is.
    platform::close_inherited_descriptors();
    thread_state() = {};
  }
  US_TRY(refuse_second_copy());
  US_TRY_ASSIGN(Settings settings, read_settings());
  US_TRY_ASSIGN(std::unique_ptr<Ledger> ledger, join_server(settings));
  auto* const fresh = new Runtime(std::move(settings), std::move(ledger));
  current_.store(fresh, std::memory_order_release);
  platform::arm_fork_sentinel();
  fresh->streams_.help_with_copies();
  return fresh;
}

Error Runtime::missing_feature() const {
  return Error::format(ErrorCode::kNotSupported, "product %s (%s) does not have this function",
                       settings_.product.key.data(), settings_.soc_name.c_str());
}

Result<ContextReference> Runtime::current_context() {
  ThreadState& thread = thread_state();
  if (thread.context.valid()) [[likely]]
    return thread.context;
  const int64_t adopted = default_device_.load(std::memory_order_relaxed);
  if (adopted >= 0 && adopted < devices_.count()) {
    US_TRY_ASSIGN(const auto context, devices_.set(static_cast<unsigned>(adopted)));
    if (context) {
      thread.context = *context;
      return *context;
    }
  }
  return Error::format(ErrorCode::kNoContext,
                       "the calling thread has no context; set a device or a context first");
}

Result<void> Runtime::wait_for_device(Deadline deadline) {
  US_TRY_ASSIGN(const ContextReference context, current_context());
  return streams_.synchronize_owner(context.handle(), deadline);
}

void Runtime::apply(const InitOptions& options) {
  default_device_.store(options.default_device.value_or(-1), std::memory_order_relaxed);
  text_scope_.store(options.error_text_scope, std::memory_order_relaxed);
}

void Runtime::add_error_text(std::string text) {
  if (text_scope_.load(std::memory_order_relaxed) == ErrorTextScope::kThread) {
    thread_state().texts.add(std::move(text));
    return;
  }
  MutexLock lock(texts_mutex_);
  texts_.add(std::move(text));
}

std::string Runtime::take_error_texts() {
  if (text_scope_.load(std::memory_order_relaxed) == ErrorTextScope::kThread) {
    return thread_state().texts.take();
  }
  MutexLock lock(texts_mutex_);
  return texts_.take();
}

}  // namespace understudy
