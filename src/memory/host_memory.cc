// SPDX-License-Identifier: Apache-2.0
#include "memory/host_memory.h"

#include "base/size_text.h"
#include "memory/address_errors.h"
#include "memory/address_layout.h"
#include "observe/history.h"
#include "observe/order.h"
#include "platform/host_memory.h"

namespace understudy {

HostMemory::HostMemory(const Settings& settings, BackingPools& pools, AddressSpace& space,
                       DeviceMemory& device_memory)
    : settings_(settings),
      space_(space),
      device_memory_(device_memory),
      pinned_(settings, pools),
      registered_(settings, device_memory.addresses(), pinned_) {}

Result<VirtualAddress> HostMemory::allocate(uint64_t size, DeviceAddress address, unsigned device) {
  if (settings_.product.run_mode == RunMode::kHost) {
    US_TRY_ASSIGN(const VirtualAddress base, pinned_.allocate(size, address));
    History::begin({ObjectKind::kHostBlock, base, size});
    return base;
  }
  const std::optional<uint64_t> rounded = align_up(size, kAllocationUnit);
  if (!rounded) {
    return Error::format(ErrorCode::kOutOfMemory, "no device has %s", SizeText(size).c_str());
  }
  US_TRY_ASSIGN(const VirtualAddress base,
                device_memory_.allocate({.device = device,
                                         .asked = size,
                                         .usable = *rounded,
                                         .policy = PagePolicy::kNormalOnly}));
  History::begin({ObjectKind::kAllocation, base, size, static_cast<int32_t>(device)});
  return base;
}

Result<void> HostMemory::free(VirtualAddress address) {
  if (settings_.product.run_mode == RunMode::kDevice) return device_memory_.free(address);
  const std::optional<PinnedView> block = pinned_.find(address);
  if (!block || block->range.base != address) return not_a_block(address).about(address);
  if (registered_.overlaps(block->range)) {
    return Error::format(ErrorCode::kInvalidParam,
                         "the block at %p is registered; unregister it first", to_pointer(address));
  }
  const MemoryEnd end(ObjectKind::kHostBlock, address);
  if (!pinned_.free(address)) return not_a_block(address).about(address);
  end.confirm();
  return {};
}

Error HostMemory::not_a_block(VirtualAddress address) {
  if (const auto block = pinned_.find(address)) {
    return Error::format(ErrorCode::kInvalidParam, "%p is inside the host block of %s at %p",
                         to_pointer(address), SizeText(block->range.size).c_str(),
                         to_pointer(block->range.base));
  }
  if (const auto on_device = space_.translation().find(address)) {
    return Error::format(ErrorCode::kInvalidParam, "%p is device memory, in the %s of %s at %p",
                         to_pointer(address), on_device->is_allocation ? "allocation" : "mapping",
                         SizeText(on_device->range.size).c_str(),
                         to_pointer(on_device->range.base));
  }
  if (!space_.reservations().has_host_memory(address)) {
    return no_memory_at(space_.translation(), space_.reservations(), address);
  }
  return Error::format(ErrorCode::kInvalidParam, "%p is not the start of a host block",
                       to_pointer(address));
}

Result<VirtualAddress> HostMemory::add_registration(VirtualRange range, RegistrationKind kind) {
  US_TRY(check_range(range, kind));
  const std::optional<PinnedView> block = pinned_.find(range.base);
  if (block && kind.pinned) {
    return Error::format(ErrorCode::kInvalidParam, "the memory at %p is page-locked already",
                         to_pointer(range.base));
  }
  if (block ? !block->range.contains(range) : pinned_.overlaps(range)) {
    return Error::format(ErrorCode::kInvalidParam,
                         "the range of %s at %p is not wholly inside one host block",
                         SizeText(range.size).c_str(), to_pointer(range.base));
  }
  const bool same =
      settings_.cpu_sees_devices() || (block && block->address == DeviceAddress::kSame);
  US_TRY_ASSIGN(const VirtualAddress on_device,
                registered_.add({range, kind.mapped, !block.has_value(), same}));
  History::begin({ObjectKind::kRegistration, range.base, range.size});
  return on_device;
}

Result<void> HostMemory::remove_registration(VirtualAddress base) {
  const MemoryEnd end(ObjectKind::kRegistration, base);
  if (const Result<void> removed = registered_.remove(base); !removed.ok()) {
    return removed.error().about(base);
  }
  end.confirm();
  return {};
}

Result<void> HostMemory::check_range(VirtualRange range, RegistrationKind kind) {
  if (kind.mapped && !is_aligned(range.base, kNormalPage)) {
    return Error::format(ErrorCode::kInvalidParam, "%p is not a multiple of 4 KiB",
                         to_pointer(range.base));
  }
  if (space_.reservations().overlaps(range)) {
    return Error::format(ErrorCode::kInvalidParam,
                         "the range of %s at %p has device addresses in it",
                         SizeText(range.size).c_str(), to_pointer(range.base));
  }
  if (range.base < kHostBegin || range.end() > kHostEnd || !platform::is_wholly_mapped(range)) {
    return Error::format(ErrorCode::kInvalidParam,
                         "the range of %s at %p is not all memory of the host",
                         SizeText(range.size).c_str(), to_pointer(range.base));
  }
  return {};
}

std::optional<VirtualRange> HostMemory::find(VirtualAddress address) {
  if (const auto block = find_block(address)) return block;
  return registered_.find(address);
}

std::optional<VirtualRange> HostMemory::find_block(VirtualAddress address) {
  const std::optional<PinnedView> block = pinned_.find(address);
  if (!block) return std::nullopt;
  return block->range;
}

}  // namespace understudy
