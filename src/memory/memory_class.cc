// SPDX-License-Identifier: Apache-2.0
#include "memory/memory_class.h"

#include "base/size_text.h"
#include "memory/address_errors.h"
#include "memory/address_layout.h"

namespace understudy {

MemorySide MemoryClasses::at(VirtualAddress address) const {
  const PageEntry entry = translation_.look_up(address);
  if (entry.present()) {
    // Where small allocations share a granule, and where a large one ends, not all is memory.
    if ((entry.divided() || entry.restricted()) && !translation_.find(address)) {
      return {MemoryClass::kNone, false};
    }
    if (entry.is_managed()) return {MemoryClass::kManaged, true};
    return {entry.on_host() ? MemoryClass::kHost : MemoryClass::kDevice, true};
  }
  if (host_.find(address)) return {MemoryClass::kHost, false};
  const bool has_memory = (address < kHostEnd && reservations_.is_plainly_host(address)) ||
                          reservations_.has_host_memory(address);
  return {has_memory ? MemoryClass::kUnregistered : MemoryClass::kNone, false};
}

Error MemoryClasses::explain(const CopySides& sides, VirtualAddress to, VirtualAddress from) const {
  const bool is_target = sides.target.memory_class == MemoryClass::kNone;
  return no_memory_at(translation_, reservations_, is_target ? to : from);
}

Error MemoryClasses::unfit(VirtualAddress address, const char* wanted, ErrorCode code) const {
  if (at(address).memory_class == MemoryClass::kNone) {
    return no_memory_at(translation_, reservations_, address, code);
  }
  return Error::format(code, "%p is not %s", to_pointer(address), wanted);
}

bool MemoryClasses::is_device(VirtualRange range) const {
  for (VirtualAddress at = range.base; at < range.end();) {
    const std::optional<MappingView> found = translation_.find(at);
    if (!found) return false;
    const bool is_managed = found->location.kind == LocationKind::kManaged;
    if (!is_managed && !found->location.on_device()) return false;
    at = found->range.end();
  }
  return true;
}

Result<void> MemoryClasses::check_restricted(VirtualAddress base, uint64_t size) const {
  if (!translation_.pool_of(base)) return {};
  const std::optional<MappingView> found = translation_.find(base);
  if (!found) {
    return Error::format(ErrorCode::kInvalidParam, "%p is memory of a pool that was freed",
                         to_pointer(base));
  }
  if (size <= found->range.end() - base) return {};
  return Error::format(ErrorCode::kInvalidParam, "%s at %p leave the allocation of %s at %p",
                       SizeText(size).c_str(), to_pointer(base),
                       SizeText(found->range.size).c_str(), to_pointer(found->range.base));
}

std::optional<unsigned> MemoryClasses::device_at(VirtualAddress address, unsigned asking) const {
  const std::optional<MappingView> found = translation_.find(address);
  if (!found) return std::nullopt;
  if (found->location.kind == LocationKind::kManaged) return asking;
  if (!found->location.on_device()) return std::nullopt;
  return found->location.id;
}

bool MemoryClasses::is_memory_of(VirtualRange range, unsigned device) const {
  if (!VirtualRange::make(range.base, range.size)) return false;
  HazardPin pin;
  const Reservation* joins = nullptr;
  for (VirtualAddress at = range.base; at < range.end();) {
    const std::optional<Place> place = translation_.locate(at, pin);
    if (!place) return false;
    const bool is_managed = place->location.kind == LocationKind::kManaged;
    if (!is_managed && place->location != Location{LocationKind::kDevice, device}) return false;
    if (at != range.base && (place->joins == nullptr || place->joins != joins)) return false;
    joins = place->joins;
    at = place->range.end();
  }
  return true;
}

bool MemoryClasses::is_known(VirtualRange range) const {
  if (translation_.find(range.base)) return true;
  const std::optional<VirtualRange> host = host_.find(range.base);
  return host && host->contains(range);
}

Sides CopySides::for_task() const {
  if (!source.is_translated) return Sides::kFromHost;
  return target.is_translated ? Sides::kDevices : Sides::kToHost;
}

}  // namespace understudy
