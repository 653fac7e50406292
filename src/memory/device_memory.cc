// SPDX-License-Identifier: Apache-2.0
#include "memory/device_memory.h"

#include <utility>

#include "base/scope_exit.h"
#include "base/size_text.h"
#include "memory/address_errors.h"
#include "observe/order.h"
#include "observe/unwritten_memory.h"

namespace understudy {

namespace {

constexpr uint64_t kSmallLimit = kMiB;

// The page kind to try first.
PageKind first_kind(const AllocationRequest& request) {
  switch (request.policy) {
    case PagePolicy::kPeerHugeFirst:
    case PagePolicy::kHugeOnly:
      break;
    case PagePolicy::kHugeFirst:
      return request.asked <= kSmallLimit ? PageKind::kNormal : PageKind::kHuge;
    case PagePolicy::kNormalOnly:
      return PageKind::kNormal;
    case PagePolicy::kGiantOnly:
      return PageKind::kGiant;
    case PagePolicy::kBySize:
      return request.asked >= kHugePage ? PageKind::kHuge : PageKind::kNormal;
  }
  return PageKind::kHuge;
}

bool may_fall_back(PagePolicy policy) {
  return policy == PagePolicy::kPeerHugeFirst || policy == PagePolicy::kHugeFirst;
}

BlockAttribute attribute_of(PageKind kind) {
  switch (kind) {
    case PageKind::kNormal:
      return BlockAttribute::kNormal;
    case PageKind::kHuge:
      return BlockAttribute::kHuge;
    case PageKind::kGiant:
      return BlockAttribute::kGiant;
  }
  return BlockAttribute::kHuge;
}

uint64_t charged_for(SlotRecord record) { return *align_up(record.usable(), kNormalPage); }

}  // namespace

// The slabs of one device.
class DeviceMemory::Slabs final : public SlabSource {
 public:
  Slabs(DeviceMemory& memory, unsigned device)
      : memory_(memory),
        device_(device),
        heap_(*this, memory.space_.allocations().slabs(), &memory.pools_.decay()) {}

  SlabHeap& heap() { return heap_; }

  Result<void> open(Slab& slab, unsigned slot_size) override {
    BackingPools& pools = memory_.pools_;
    US_TRY_ASSIGN(slab.extent, pools.take(location(), kGranule, PageKind::kNormal));
    ScopeExit undo_extent([&] { pools.of(location()).give_back(slab.extent); });
    if (memory_.settings_.commit == Commit::kEager) {
      US_TRY(pools.commit(*slab.extent.backing, slab.extent.offset, kGranule));
    }
    US_TRY_ASSIGN(const Arena place, memory_.arena_.take(kGranule, kGranule));
    ScopeExit undo_place([&] { memory_.arena_.give_back(place.range); });
    slab.divide(place.range.base, slot_size);
    US_TRY(memory_.space_.allocations().enter(place, slab, device_));
    undo_place.dismiss();
    undo_extent.dismiss();
    return {};
  }

  bool close(Slab& slab) noexcept override {
    if (!memory_.space_.allocations().leave(slab)) return false;
    memory_.arena_.give_back({slab.base.load(std::memory_order_relaxed), kGranule});
    memory_.pools_.of(location()).give_back(slab.extent);
    return true;
  }

 private:
  Location location() const { return {LocationKind::kDevice, device_}; }

  DeviceMemory& memory_;
  const unsigned device_;
  SlabHeap heap_;
};

DeviceMemory::DeviceMemory(const Settings& settings, Capacity& capacity, BackingPools& pools,
                           PhysicalMemory& physical, AddressSpace& space)
    : settings_(settings),
      capacity_(capacity),
      pools_(pools),
      physical_(physical),
      space_(space),
      arena_(space.reservations().index()) {
  for (unsigned device = 0; device < settings.devices; ++device) {
    slabs_.push_back(std::make_unique<Slabs>(*this, device));
  }
  pools.add_cache(*this);
}

DeviceMemory::~DeviceMemory() { pools_.remove_cache(*this); }

Result<VirtualAddress> DeviceMemory::allocate(const AllocationRequest& request) {
  const PageKind kind = first_kind(request);
  if (kind == PageKind::kHuge && may_fall_back(request.policy)) {
    Result<VirtualAddress> address = allocate_of(request, PageKind::kHuge);
    if (address.ok() || address.error().code() != ErrorCode::kOutOfMemory) return address;
    return allocate_of(request, PageKind::kNormal);
  }
  return allocate_of(request, kind);
}

Result<VirtualAddress> DeviceMemory::allocate_of(const AllocationRequest& request, PageKind kind) {
  const std::optional<uint64_t> bytes = align_up(request.usable, page_size(kind));
  if (!bytes) {
    return Error::format(ErrorCode::kOutOfMemory, "no device has %s",
                         SizeText(request.usable).c_str());
  }
  // A slab is for reading and writing, so read-only memory has granules of its own.
  // Memory that the program must not free is no slot either: those have no place to say so.
  if (kind == PageKind::kNormal && request.usable <= kMaxSlotBytes && !request.read_only &&
      !request.is_internal) {
    return allocate_slot(request, *bytes);
  }
  return allocate_block(request, kind, *bytes);
}

Result<VirtualAddress> DeviceMemory::allocate_slot(const AllocationRequest& request,
                                                   uint64_t bytes) {
  const Charge charge{request.device, PageKind::kNormal, bytes, request.module};
  std::optional<HazardPin> pin;  // before anything is taken: the first of a thread needs memory
  if (settings_.poison == Poison::kOn) pin.emplace();
  US_TRY(charge_or_explain(capacity_, charge));
  ScopeExit undo([&] { capacity_.credit(charge); });
  US_TRY_ASSIGN(const VirtualAddress address,
                slabs_[request.device]->heap().allocate(request.usable, request.module));
  undo.dismiss();
  if (pin) {
    if (const std::optional<Place> place = space_.translation().locate(address, *pin)) {
      place->backing->refill(place->file_offset, request.usable);
    }
  }
  if (is_init_checked()) [[unlikely]]
    UnwrittenMemory::renew({space_.translation().look_up(address).host() + address % kGranule,
                            *align_up(request.usable, UnwrittenLines::kLine)});
  return address;
}

Result<VirtualAddress> DeviceMemory::allocate_block(const AllocationRequest& request, PageKind kind,
                                                    uint64_t bytes) {
  const BlockTraits traits{attribute_of(kind),
                           request.module,
                           static_cast<uint8_t>(request.device),
                           {LocationKind::kDevice, request.device}};
  US_TRY_ASSIGN(Block* const block, physical_.create_mapped(traits, bytes));
  // What the program cannot write, the device does.
  if (request.read_only && is_init_checked()) [[unlikely]]
    UnwrittenMemory::forget(
        {block->extent.backing->alias(block->extent.offset), block->extent.size});
  ScopeExit undo_block([&] { physical_.drop_internal_ref(*block); });
  US_TRY_ASSIGN(const VirtualAddress address, place(*block, {.size = request.usable,
                                                             .read_only = request.read_only,
                                                             .is_internal = request.is_internal}));
  undo_block.dismiss();
  return address;
}

Result<VirtualAddress> DeviceMemory::place(Block& block, const UsablePart& part) {
  US_TRY_ASSIGN(const Arena place, arena_.take(block.extent.size, block.traits.granularity()));
  ScopeExit undo([&] { arena_.give_back(place.range); });
  US_TRY(space_.allocations().place(place, block, part));
  undo.dismiss();
  return place.range.base + part.offset;
}

Result<VirtualAddress> DeviceMemory::place_import(Block& block, const UsablePart& part) {
  return place(block, part);
}

Result<void> DeviceMemory::end_import(VirtualAddress address) {
  const MemoryEnd end(ObjectKind::kAllocation, address);
  US_TRY_ASSIGN(const VirtualRange addresses,
                space_.allocations().end(address, {}, AllocationPlacement::Origin::kImported));
  arena_.give_back(addresses);
  end.confirm();
  return {};
}

Result<void> DeviceMemory::free_observed(VirtualAddress address) {
  const MemoryEnd end(ObjectKind::kAllocation, address);
  US_TRY(free_unobserved(address));
  end.confirm();
  return {};
}

Result<void> DeviceMemory::free_unobserved(VirtualAddress address) {
  const PageEntry entry = space_.translation().look_up(address);
  if (!entry.divided()) {
    if (entry.restricted() && pool_hooks_ != nullptr) {
      if (const std::optional<uint32_t> pool = space_.translation().pool_of(address)) {
        return pool_hooks_->free_at_once(*pool, address);
      }
    }
    return free_block(address);
  }
  const unsigned device = entry.owner();
  const std::optional<SlotRecord> record =
      slabs_[device]->heap().free(space_.allocations().slabs().at(entry.mapping()), address);
  if (!record) return not_an_allocation(space_.translation(), space_.reservations(), address);
  settle_slot(device, address, *record);
  return {};
}

void DeviceMemory::settle_slot(unsigned device, VirtualAddress address, SlotRecord record) {
  const Charge charge{device, PageKind::kNormal, charged_for(record), record.tag()};
  if (!record.shared()) {
    capacity_.credit(charge);
    return;
  }
  switch (share_hooks_->on_slot_freed(address)) {
    case SlotEnd::kNeverShared:
      capacity_.credit(charge);
      give_back_slot(address);
      break;
    case SlotEnd::kShared:
      capacity_.note_share_ended(charge);
      break;
    case SlotEnd::kInExport:
      break;
  }
}

std::optional<DeviceMemory::SlabPlace> DeviceMemory::slab_around(VirtualAddress address) {
  const PageEntry entry = space_.translation().look_up(address);
  if (!entry.present() || !entry.divided()) return std::nullopt;
  return SlabPlace{&slabs_[entry.owner()]->heap(),
                   &space_.allocations().slabs().at(entry.mapping()), entry.owner()};
}

std::optional<DeviceMemory::SharedSlot> DeviceMemory::share_slot(VirtualAddress address) {
  const std::optional<SlabPlace> place = slab_around(address);
  if (!place) return std::nullopt;
  SharedSlot shared;
  const std::optional<SlotRecord> record =
      place->heap->share(*place->slab, address, shared.granule);
  if (!record) return std::nullopt;
  shared.part = {.offset = address % kGranule, .size = record->usable()};
  shared.charge = {place->device, PageKind::kNormal, charged_for(*record), record->tag()};
  return shared;
}

void DeviceMemory::unshare_slot(VirtualAddress address) {
  if (const std::optional<SlabPlace> place = slab_around(address)) {
    place->heap->unshare(*place->slab, address);
  }
}

void DeviceMemory::give_back_slot(VirtualAddress address) {
  if (const std::optional<SlabPlace> place = slab_around(address)) {
    place->heap->give_back_kept(*place->slab, address);
  }
}

Result<void> DeviceMemory::free_block(VirtualAddress address, std::optional<unsigned> device) {
  US_TRY_ASSIGN(const VirtualRange addresses, space_.allocations().end(address, device));
  arena_.give_back(addresses);
  return {};
}

Result<VirtualAddress> DeviceMemory::allocate_internal(unsigned device, uint64_t bytes) {
  return allocate({.device = device,
                   .asked = bytes,
                   .usable = bytes,
                   .policy = PagePolicy::kNormalOnly,
                   .is_internal = true});
}

void DeviceMemory::free_internal(VirtualAddress address) {
  const Result<VirtualRange> addresses =
      space_.allocations().end(address, {}, AllocationPlacement::Origin::kInternal);
  // A block that the CPU cannot be kept out of, for want of map entries, stays.
  if (addresses.ok()) arena_.give_back(addresses.value());
}

void DeviceMemory::free_all(unsigned device) {
  if (pool_hooks_ != nullptr) pool_hooks_->end_device(device);
  space_.managed().free_all(device);
  slabs_[device]->heap().free_all(
      [&](VirtualAddress address, SlotRecord record) { settle_slot(device, address, record); });
  arena_.for_each_range([&](VirtualRange range) {
    space_.translation().for_each(range, [&](VirtualAddress at) {
      VirtualAddress base = 0;
      {
        HazardPin pin;
        const std::optional<Place> place = space_.translation().locate(at, pin);
        if (!place || place->location.id != device || place->entry.divided()) return;
        base = place->range.base;
      }
      // Another thread may have freed it meanwhile. A block that the CPU cannot be kept out of, for
      // want of map entries, stays allocated until it is freed.
      (void)free_block(base, device);
    });
  });
}

void DeviceMemory::trim() {
  for (const std::unique_ptr<Slabs>& slabs : slabs_) slabs->heap().trim();
}

bool DeviceMemory::give_back_idle() {
  bool keeps = false;
  for (const std::unique_ptr<Slabs>& slabs : slabs_) keeps |= slabs->heap().give_back_idle();
  return keeps;
}

void DeviceMemory::give_back_kept(unsigned device) {
  slabs_[device]->heap().trim();
  pools_.trim({LocationKind::kDevice, device});
}

}  // namespace understudy
