// SPDX-License-Identifier: Apache-2.0
#include "runtime/devices.h"

#include <algorithm>
#include <cinttypes>
#include <limits>
#include <utility>

#include "base/scope_exit.h"
#include "memory/hazard_pointers.h"
#include "observe/advice.h"
#include "observe/device_choices.h"
#include "observe/history.h"
#include "observe/leaks.h"

namespace understudy {

Result<unsigned> Devices::check(int64_t device, const char* name, ErrorCode code) const {
  if (device >= 0 && device < count()) return static_cast<unsigned>(device);
  // Ids have 32 bits, and -1 stays -1 where the published type has no sign.
  const bool is_word = device >= 0 && device <= std::numeric_limits<uint32_t>::max();
  const int64_t shown = is_word ? static_cast<int32_t>(device) : device;
  return Error::format(code, "%s is %" PRId64 " and there are %u devices", name, shown, count());
}

Result<unsigned> Devices::with_logic_id(uint32_t id, const char* name, ErrorCode code) const {
  const std::vector<int32_t>& visible = settings_.visible_devices;
  const auto found = std::find(visible.begin(), visible.end(), static_cast<int32_t>(id));
  if (found != visible.end()) return static_cast<unsigned>(found - visible.begin());
  const bool exists = id < settings_.server_devices;
  return Error::format(code, "%s is %d, %s", name, static_cast<int>(id),
                       exists ? "the logic id of a device that ASCEND_RT_VISIBLE_DEVICES hides"
                              : "which is the logic id of no device");
}

Result<std::optional<ContextReference>> Devices::set(unsigned device) {
  while (true) {
    wait_while_ending(device);
    MutexLock lock(mutex_);
    if (ending_[device].load()) continue;
    Use& use = uses_[device];
    const bool has_default = settings_.product.has(Feature::kDefaultContext);
    if (has_default && !use.default_context.valid()) {
      US_TRY_ASSIGN(use.default_context, make_context_locked(device, ContextKind::kDefault));
    }
    ++use.sets;
    if (is_advised()) [[unlikely]]
      DeviceChoices::note_set(device);
    if (!has_default) return std::optional<ContextReference>();
    return std::optional(use.default_context);
  }
}

void Devices::prepare_reset() { prepare_pins(); }

Error Devices::not_set(unsigned device) const {
  return Error::format(ErrorCode::kDeviceNotSet, "device %u is not set by this process", device);
}

bool Devices::begin_ending(unsigned device) {
  MutexLock lock(mutex_);
  // Set again meanwhile, or another thread is at it.
  if (uses_[device].sets > 0 || ending_[device].load()) return false;
  ending_[device].store(true);
  return true;
}

Result<void> Devices::reset(unsigned device) {
  prepare_reset();
  {
    MutexLock lock(mutex_);
    if (uses_[device].sets == 0) return not_set(device);
    if (--uses_[device].sets > 0) return {};
  }
  streams_.finish_device(device);
  if (begin_ending(device)) end_use(device);
  return {};
}

Result<void> Devices::reset_at_once(unsigned device) {
  prepare_reset();
  {
    MutexLock lock(mutex_);
    if (uses_[device].sets == 0) return not_set(device);
    uses_[device].sets = 0;
  }
  if (begin_ending(device)) end_use(device);
  return {};
}

void Devices::reset_all() {
  for (unsigned device = 0; device < count(); ++device) {
    {
      MutexLock lock(mutex_);
      uses_[device].sets = 0;
    }
    if (begin_ending(device)) end_use(device);
  }
}

namespace {

// What the program leaves to a reset.
void note_ends(unsigned device) {
  if (!is_observed()) return;
  tell_leaks_on(static_cast<int32_t>(device));
  for (const ObjectKind kind : kEndedByReset) {
    History::end_on(kind, static_cast<int32_t>(device), "its device was reset");
  }
}

}  // namespace

void Devices::end_use(unsigned device) {
  ScopeExit done([&] {
    MutexLock lock(mutex_);
    ending_[device].store(false);
    ending_[device].notify_all();
  });
  {
    MutexLock lock(mutex_);
    uses_[device] = {};
  }
  contexts_.for_each([&](Context& context) {
    MutexLock lock(mutex_);
    if (!context.life().alive || context.device.load(std::memory_order_relaxed) != device) return;
    streams_.forget_owner(contexts_.handle_of(context));
    end_context_locked(context);
  });
  note_ends(device);
  streams_.end_device(device);
  events_.end_device(device);
  notifies_.end_device(device);
  memory_.free_all(device);
  // A program that is done with its devices, but not with the machine.
  in_use() == 0 ? memory_.give_back_all_kept() : memory_.give_back_kept(device);
}

bool Devices::is_set(unsigned device) const {
  MutexLock lock(mutex_);
  return uses_[device].sets > 0;
}

bool Devices::has_default_context(unsigned device) const {
  MutexLock lock(mutex_);
  return uses_[device].default_context.valid();
}

uint32_t Devices::in_use() const {
  uint32_t devices = 0;
  MutexLock lock(mutex_);
  for (unsigned device = 0; device < count(); ++device) {
    if (uses_[device].sets > 0) devices |= 1U << device;
  }
  contexts_.for_each([&](const Context& context) {
    if (context.life().alive) devices |= 1U << context.device.load(std::memory_order_relaxed);
  });
  return devices;
}

Result<ContextReference> Devices::create_context(unsigned device) {
  while (true) {
    wait_while_ending(device);
    MutexLock lock(mutex_);
    if (!ending_[device].load()) return make_context_locked(device, ContextKind::kExplicit);
  }
}

Result<ContextReference> Devices::make_context_locked(unsigned device, ContextKind kind) {
  US_TRY_ASSIGN(Context* const taken, contexts_.take());
  Context& context = *taken;
  context.device.store(device, std::memory_order_relaxed);
  context.kind = kind;
  context.options = {};
  ContextReference made{&context, context.state.load(std::memory_order_relaxed) + 1, {}};
  ScopeExit undo([&] { contexts_.cancel(context); });
  US_TRY_ASSIGN(made.default_stream,
                streams_.create({.owner = made.handle(),
                                 .device = device,
                                 .priority = 0,
                                 .flags = 0,
                                 .is_default = true,
                                 .overflow_mode = overflow_mode_locked(device)}));
  undo.dismiss();
  context.default_stream = made.default_stream;
  context.state.store(made.state, std::memory_order_release);
  return made;
}

void Devices::end_context_locked(Context& context) {
  if (const VirtualAddress status = std::exchange(context.overflow_status, 0); status != 0) {
    memory_.free_internal(status);
  }
  context.state.fetch_add(1, std::memory_order_release);
  contexts_.recycle(context);
}

Result<void> Devices::destroy_context(uint64_t handle) {
  US_TRY_ASSIGN(const ContextReference reference, find_context(handle));
  {
    MutexLock lock(mutex_);
    if (reference.valid() && reference.context->kind == ContextKind::kDefault) {
      return Error::format(ErrorCode::kNoContext,
                           "context 0x%" PRIx64 " is the default context of device %u", handle,
                           reference.device());
    }
  }
  streams_.finish_owner(handle);
  {
    MutexLock lock(mutex_);
    if (!reference.valid()) return contexts_.unknown(handle);
    end_context_locked(*reference.context);
  }
  History::end_parts_of(ObjectKind::kStream, handle, "its context was destroyed");
  streams_.end_owner(handle);
  return {};
}

Result<ContextReference> Devices::find_context(uint64_t handle) {
  MutexLock lock(mutex_);
  US_TRY_ASSIGN(Context* const context, contexts_.find(handle));
  return ContextReference{context, context->state.load(std::memory_order_relaxed),
                          context->default_stream};
}

void Devices::set_peer_access(unsigned device, unsigned peer, bool enabled) {
  MutexLock lock(mutex_);
  uint32_t& peers = uses_[device].peers;
  peers = enabled ? peers | 1U << peer : peers & ~(1U << peer);
}

bool Devices::has_peer_access(unsigned device, unsigned peer) const {
  MutexLock lock(mutex_);
  return (uses_[device].peers >> peer & 1) != 0;
}

std::optional<uint32_t> Devices::core_limit(unsigned device, unsigned kind) const {
  MutexLock lock(mutex_);
  return uses_[device].limits[kind];
}

void Devices::set_core_limit(unsigned device, unsigned kind, uint32_t value) {
  MutexLock lock(mutex_);
  uses_[device].limits[kind] = value;
}

void Devices::clear_core_limits(unsigned device) {
  MutexLock lock(mutex_);
  uses_[device].limits = {};
}

std::optional<int64_t> Devices::option(const ContextReference& context, unsigned number) const {
  MutexLock lock(mutex_);
  if (!context.valid()) return std::nullopt;
  return context.context->options[number];
}

void Devices::set_option(const ContextReference& context, unsigned number, int64_t value) {
  MutexLock lock(mutex_);
  if (context.valid()) context.context->options[number] = value;
}

VirtualAddress Devices::overflow_status(const ContextReference& context) const {
  MutexLock lock(mutex_);
  return context.valid() ? context.context->overflow_status : 0;
}

VirtualAddress Devices::keep_overflow_status(const ContextReference& context,
                                             VirtualAddress address) {
  MutexLock lock(mutex_);
  if (!context.valid()) return 0;
  VirtualAddress& kept = context.context->overflow_status;
  if (kept == 0) kept = address;
  return kept;
}

OverflowMode Devices::overflow_mode(unsigned device) const {
  MutexLock lock(mutex_);
  return overflow_mode_locked(device);
}

Result<void> Devices::set_overflow_mode(unsigned device, OverflowMode mode) {
  const ProductProfile& product = settings_.product;
  if (mode != product.overflow_mode() && !product.has(Feature::kOverflowModes)) {
    return Error::format(ErrorCode::kNotInProduct, "product %s has overflow mode %d alone",
                         product.key.data(), static_cast<int>(product.overflow_mode()));
  }
  MutexLock lock(mutex_);
  uses_[device].overflow_mode = mode;
  return {};
}

}  // namespace understudy
