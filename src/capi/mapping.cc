// SPDX-License-Identifier: Apache-2.0
//
// Mappings, and what an address belongs to. Rules: MAP, NOACC, UNMAP, RETAIN, RANGE, LINK.
#include "acl/acl_rt.h"
#include "capi/call.h"
#include "observe/history.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

Result<VirtualRange> range_argument(const void* address, size_t size) {
  const std::optional<VirtualRange> range = VirtualRange::make(to_address(address), size);
  if (range) return *range;
  return Error::format(ErrorCode::kInvalidParam,
                       "size %zu at %p runs past the end of all addresses", size, address);
}

Result<void> map(void* address, size_t size, size_t offset, aclrtDrvMemHandle handle,
                 uint64_t flags, InitialAccess access) {
  US_TRY(require_pointer(address, "virPtr"));
  US_TRY(require_pointer(handle, "handle"));
  US_TRY(require_size(size, "size"));
  US_TRY(require_zero(flags, "flags"));
  const GatePass pass;
  US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kVirtualMemory));
  if (access == InitialAccess::kNone) US_TRY(runtime->require(Feature::kMapNoAccess));
  US_TRY_ASSIGN(const VirtualRange range, range_argument(address, size));
  return runtime->address_space().mapper().map({range, offset, handle_number(handle), access});
}

}  // namespace

aclError aclrtMapMem(void* virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle,
                     uint64_t flags) {
  return guarded(US_CALL(virPtr, size, offset, handle, flags), size,
                 [&] { return map(virPtr, size, offset, handle, flags, InitialAccess::kOwner); });
}

aclError aclrtMemMapNoAccess(void* virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle,
                             uint64_t flags) {
  return guarded(US_CALL(virPtr, size, offset, handle, flags), size,
                 [&] { return map(virPtr, size, offset, handle, flags, InitialAccess::kNone); });
}

aclError aclrtUnmapMem(void* virPtr) {
  return guarded(US_CALL(virPtr), [&]() -> Result<void> {
    US_TRY(require_pointer(virPtr, "virPtr"));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kVirtualMemory));
    return runtime->address_space().mapper().unmap(to_address(virPtr));
  });
}

aclError aclrtMemRetainAllocationHandle(void* virPtr, aclrtDrvMemHandle* handle) {
  return guarded(US_CALL(virPtr, out(handle)), [&]() -> Result<void> {
    US_TRY(require_pointer(virPtr, "virPtr"));
    US_TRY(require_pointer(handle, "handle"));
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kVirtualMemory));
    US_TRY(runtime->require(Feature::kRetainHandle));
    US_TRY_ASSIGN(const BlockHandle retained,
                  runtime->address_space().mapper().retain(to_address(virPtr)));
    History::add_handle(ObjectKind::kBlock, retained);
    *handle = handle_pointer(retained);
    return {};
  });
}

aclError aclrtMemGetAddressRange(void* ptr, void** pbase, size_t* psize) {
  return guarded(US_CALL(ptr, out(pbase), out(psize)), [&]() -> Result<void> {
    US_TRY(require_pointer(ptr, "ptr"));
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kAddressRange));
    if (pbase == nullptr && psize == nullptr) {
      return Error::format(ErrorCode::kInvalidParam, "pbase and psize are both NULL");
    }
    const VirtualAddress address = to_address(ptr);
    std::optional<VirtualRange> found = runtime->host_memory().find_block(address);
    if (const auto on_device = runtime->address_space().translation().find(address))
      found = on_device->range;
    if (!found) {
      if (pbase != nullptr) *pbase = nullptr;  // RANGE-09
      US_TRY(runtime->copies().check_memory(address));
      return Error::format(ErrorCode::kInvalidParam,
                           "ptr %p is host memory that this interface did not give out", ptr);
    }
    if (pbase != nullptr) *pbase = to_pointer(found->base);
    if (psize != nullptr) *psize = found->size;
    return {};
  });
}

aclError aclrtMemMapSelectedLink(void* virPtrDst, size_t size, void* virPtrSrc, uint32_t linkIdx) {
  return guarded(US_CALL(virPtrDst, size, virPtrSrc, linkIdx), [&]() -> Result<void> {
    US_TRY(require_pointer(virPtrDst, "virPtrDst"));
    US_TRY(require_pointer(virPtrSrc, "virPtrSrc"));
    US_TRY(require_size(size, "size"));
    if (linkIdx > ACL_RT_MEM_LINK_IDX_1) {
      return invalid_argument("linkIdx is %u and must be 0 or 1", linkIdx);
    }
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kUncachedReservation));
    US_TRY_ASSIGN(const VirtualRange destination, range_argument(virPtrDst, size));
    return runtime->address_space().mapper().map_alias(destination, to_address(virPtrSrc));
  });
}

aclError aclrtMemMapSetLink(aclrtDrvMemHandle handle, aclrtMemLinkType adviceLink) {
  return guarded(US_CALL(handle, adviceLink), [&]() -> Result<void> {
    US_TRY(require_pointer(handle, "handle"));
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kUncachedReservation));
    if (adviceLink != ACL_RT_MEM_ACCESS_LINK_SIO && adviceLink != ACL_RT_MEM_ACCESS_LINK_HCCS) {
      return Error::format(ErrorCode::kLinkNotSupported, "adviceLink is %d, which is no link here",
                           static_cast<int>(adviceLink));
    }
    // Both links lead to the same bytes; the advice changes nothing that a program could see.
    US_TRY(runtime->physical_memory().properties(handle_number(handle)));
    return {};
  });
}
