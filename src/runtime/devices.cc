// SPDX-License-Identifier: Apache-2.0
#include "runtime/devices.h"

#include <cinttypes>

namespace understudy {

Result<unsigned> Devices::check(int64_t device, const char* name, ErrorCode code) const {
  if (device >= 0 && device < count()) return static_cast<unsigned>(device);
  return Error::format(code, "%s is %" PRId64 " and there are %u devices", name, device, count());
}

Result<std::optional<ContextReference>> Devices::set(unsigned device) {
  MutexLock lock(mutex_);
  Use& use = uses_[device];
  const bool has_default = settings_.product.has(Feature::kDefaultContext);
  if (has_default && !use.default_context.valid()) {
    US_TRY_ASSIGN(use.default_context, make_context_locked(device, ContextKind::kDefault));
  }
  ++use.sets;
  if (!has_default) return std::optional<ContextReference>();
  return std::optional(use.default_context);
}

Error Devices::not_set(unsigned device) const {
  return Error::format(ErrorCode::kDeviceNotSet, "device %u is not set by this process", device);
}

Result<void> Devices::reset(unsigned device) {
  MutexLock lock(mutex_);
  if (uses_[device].sets == 0) return not_set(device);
  if (--uses_[device].sets == 0) end_use_locked(device);
  return {};
}

Result<void> Devices::reset_at_once(unsigned device) {
  MutexLock lock(mutex_);
  if (uses_[device].sets == 0) return not_set(device);
  end_use_locked(device);
  return {};
}

void Devices::reset_all() {
  MutexLock lock(mutex_);
  for (unsigned device = 0; device < count(); ++device) end_use_locked(device);
}

void Devices::end_use_locked(unsigned device) {
  uses_[device] = {};
  for (uint32_t index = 0; index < highest_context_; ++index) {
    if (!pool_.exists(index)) continue;
    Context& context = pool_.at(index);
    if (Context::alive(context.state.load(std::memory_order_relaxed)) &&
        context.device.load(std::memory_order_relaxed) == device) {
      end_context_locked(context);
    }
  }
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
  MutexLock lock(mutex_);
  return make_context_locked(device, ContextKind::kExplicit);
}

Result<ContextReference> Devices::make_context_locked(unsigned device, ContextKind kind) {
  const std::optional<uint32_t> index = pool_.take();
  if (!index) return out_of_numbers("context");
  Context& context = pool_.at(*index);
  context.index = *index;
  context.device.store(device, std::memory_order_relaxed);
  context.kind = kind;
  context.options = {};
  context.stream_limits = {};
  highest_context_ = std::max(highest_context_, *index + 1);
  const uint32_t state = context.state.load(std::memory_order_relaxed) + 1;
  context.state.store(state, std::memory_order_release);
  return ContextReference{&context, state};
}

void Devices::end_context_locked(Context& context) {
  const uint32_t ended = context.state.fetch_add(1, std::memory_order_release) + 1;
  // A slot whose generations are used up is not used again: an ancient handle would fit it.
  if (Context::generation(ended) != 0) pool_.give_back(context.index);
}

Result<void> Devices::destroy_context(uint64_t handle) {
  US_TRY_ASSIGN(const ContextReference reference, find_context(handle));
  MutexLock lock(mutex_);
  if (!reference.valid()) {
    return Error::format(ErrorCode::kRefused, "context 0x%" PRIx64 " was destroyed", handle);
  }
  if (reference.context->kind == ContextKind::kDefault) {
    return Error::format(ErrorCode::kNoContext,
                         "context 0x%" PRIx64 " is the default context of device %u", handle,
                         reference.device());
  }
  end_context_locked(*reference.context);
  return {};
}

Result<ContextReference> Devices::find_context(uint64_t handle) {
  const HandleParts parts = HandleParts::split(handle);
  if (parts.tag == HandleTag::kContext && pool_.exists(parts.index)) {
    Context& context = pool_.at(parts.index);
    const uint32_t state = context.state.load(std::memory_order_acquire);
    if (Context::alive(state) && Context::generation(state) == parts.generation) {
      return ContextReference{&context, state};
    }
    return Error::format(ErrorCode::kRefused, "context 0x%" PRIx64 " was destroyed", handle);
  }
  return Error::format(ErrorCode::kRefused, "context 0x%" PRIx64 " was never created", handle);
}

uint64_t Devices::handle_of(const ContextReference& context) {
  return HandleParts{HandleTag::kContext, Context::generation(context.state),
                     context.context->index}
      .pack();
}

uint64_t Devices::default_stream_of(const ContextReference& context) {
  return HandleParts{HandleTag::kStream, Context::generation(context.state), context.context->index}
      .pack();
}

Result<ContextReference> Devices::find_stream(uint64_t handle) {
  HandleParts parts = HandleParts::split(handle);
  if (parts.tag == HandleTag::kStream) {
    parts.tag = HandleTag::kContext;
    if (const Result<ContextReference> context = find_context(parts.pack()); context.ok()) {
      return context.value();
    }
  }
  return Error::format(ErrorCode::kInvalidHandle, "0x%" PRIx64 " is not a live stream", handle);
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

std::optional<uint32_t> Devices::stream_limit(const ContextReference& stream, unsigned kind) const {
  MutexLock lock(mutex_);
  if (!stream.valid()) return std::nullopt;
  return stream.context->stream_limits[kind];
}

void Devices::set_stream_limit(const ContextReference& stream, unsigned kind, uint32_t value) {
  MutexLock lock(mutex_);
  if (stream.valid()) stream.context->stream_limits[kind] = value;
}

void Devices::clear_stream_limits(const ContextReference& stream) {
  MutexLock lock(mutex_);
  if (stream.valid()) stream.context->stream_limits = {};
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
