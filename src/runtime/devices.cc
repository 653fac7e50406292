// SPDX-License-Identifier: Apache-2.0
#include "runtime/devices.h"

#include <algorithm>
#include <cinttypes>

#include "base/scope_exit.h"

namespace understudy {

namespace {

Error destroyed(uint64_t context) {
  return Error::format(ErrorCode::kRefused, "context 0x%" PRIx64 " was destroyed", context);
}

}  // namespace

Result<unsigned> Devices::check(int64_t device, const char* name, ErrorCode code) const {
  if (device >= 0 && device < count()) return static_cast<unsigned>(device);
  return Error::format(code, "%s is %" PRId64 " and there are %u devices", name, device, count());
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
    if (!has_default) return std::optional<ContextReference>();
    return std::optional(use.default_context);
  }
}

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
  {
    MutexLock lock(mutex_);
    if (uses_[device].sets == 0) return not_set(device);
    if (--uses_[device].sets > 0) return {};
  }
  for (const uint64_t context : contexts_of(device)) streams_.finish_owner(context);
  if (begin_ending(device)) end_use(device);
  return {};
}

Result<void> Devices::reset_at_once(unsigned device) {
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

std::vector<uint64_t> Devices::contexts_of(unsigned device) const {
  std::vector<uint64_t> found;
  MutexLock lock(mutex_);
  for (uint32_t index = 0; index < highest_context_; ++index) {
    Context& context = pool_.at(index);
    const uint32_t state = context.state.load(std::memory_order_relaxed);
    if (SlotState::alive(state) && context.device.load(std::memory_order_relaxed) == device) {
      found.push_back(ContextReference{&context, state, {}}.handle());
    }
  }
  return found;
}

void Devices::end_use(unsigned device) {
  ScopeExit done([&] {
    MutexLock lock(mutex_);
    ending_[device].store(false);
    ending_[device].notify_all();
  });
  const std::vector<uint64_t> contexts = contexts_of(device);
  {
    MutexLock lock(mutex_);
    uses_[device] = {};
    for (const uint64_t handle : contexts) {
      Context& context = pool_.at(HandleParts::split(handle).index);
      const uint32_t state = context.state.load(std::memory_order_relaxed);
      // Another thread may have destroyed it meanwhile.
      if (SlotState::alive(state) && ContextReference{&context, state, {}}.handle() == handle) {
        end_context_locked(context);
      }
    }
  }
  for (const uint64_t context : contexts) streams_.end_owner(context);
  events_.end_device(device);
  memory_.free_all(device);
}

bool Devices::is_set(unsigned device) const {
  MutexLock lock(mutex_);
  return uses_[device].sets > 0;
}

bool Devices::has_default_context(unsigned device) const {
  MutexLock lock(mutex_);
  return uses_[device].default_context.valid();
}

Result<ContextReference> Devices::create_context(unsigned device) {
  while (true) {
    wait_while_ending(device);
    MutexLock lock(mutex_);
    if (!ending_[device].load()) return make_context_locked(device, ContextKind::kExplicit);
  }
}

Result<ContextReference> Devices::make_context_locked(unsigned device, ContextKind kind) {
  const std::optional<uint32_t> index = pool_.take();
  if (!index) return out_of_numbers("context");
  Context& context = pool_.at(*index);
  // Once: whoever holds a stale handle may look at it.
  if (context.index != *index) context.index = *index;
  context.device.store(device, std::memory_order_relaxed);
  context.kind = kind;
  context.options = {};
  highest_context_ = std::max(highest_context_, *index + 1);
  ContextReference made{&context, context.state.load(std::memory_order_relaxed) + 1, {}};
  ScopeExit undo([&] { pool_.give_back(*index); });
  US_TRY_ASSIGN(made.default_stream, streams_.create({.owner = made.handle(),
                                                      .device = device,
                                                      .priority = 0,
                                                      .flags = 0,
                                                      .is_default = true,
                                                      .is_unattended = false}));
  undo.dismiss();
  context.default_stream = made.default_stream;
  context.state.store(made.state, std::memory_order_release);
  return made;
}

void Devices::end_context_locked(Context& context) {
  const uint32_t ended = context.state.fetch_add(1, std::memory_order_release) + 1;
  if (!SlotState::is_used_up(ended)) pool_.give_back(context.index);
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
    if (!reference.valid()) return destroyed(handle);
    end_context_locked(*reference.context);
  }
  streams_.end_owner(handle);
  return {};
}

Result<ContextReference> Devices::find_context(uint64_t handle) {
  const HandleParts parts = HandleParts::split(handle);
  if (parts.tag != HandleTag::kContext || !pool_.exists(parts.index)) {
    return Error::format(ErrorCode::kRefused, "context 0x%" PRIx64 " was never created", handle);
  }
  MutexLock lock(mutex_);
  Context& context = pool_.at(parts.index);
  const ContextReference found{&context, context.state.load(std::memory_order_relaxed),
                               context.default_stream};
  if (!SlotState::alive(found.state) || found.handle() != handle) return destroyed(handle);
  return found;
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

int32_t Devices::overflow_mode(unsigned device) const {
  MutexLock lock(mutex_);
  return uses_[device].overflow_mode;
}

void Devices::set_overflow_mode(unsigned device, int32_t mode) {
  MutexLock lock(mutex_);
  uses_[device].overflow_mode = mode;
}

}  // namespace understudy
