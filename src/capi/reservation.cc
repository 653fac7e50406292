// SPDX-License-Identifier: Apache-2.0
//
// Reservations of device addresses. Rules: RESV, RESVN, REL.
#include "acl/acl_rt.h"
#include "capi/call.h"
#include "observe/history.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

Result<void> check_arguments(void* const* address, size_t size, uint64_t flags) {
  US_TRY(require_pointer(address, "virPtr"));
  US_TRY(require_size(size, "size"));
  if (flags > 1) {
    return invalid_argument("flags is %llu and must be 0 or 1",
                            static_cast<unsigned long long>(flags));
  }
  return {};
}

Result<void> check_alignment(size_t alignment) {
  if (alignment == 0) return {};
  return Error::format(ErrorCode::kInvalidParam, "alignment is %zu and must be 0", alignment);
}

}  // namespace

aclError aclrtReserveMemAddress(void** virPtr, size_t size, size_t alignment, void* expectPtr,
                                uint64_t flags) {
  return guarded(
      US_CALL(out(virPtr), size, alignment, expectPtr, flags), size, [&]() -> Result<void> {
        US_TRY(check_arguments(virPtr, size, flags));
        const GatePass pass;
        US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kVirtualMemory));
        US_TRY(check_alignment(alignment));
        const ReservedPages pages = flags == 1 ? ReservedPages::kHuge : ReservedPages::kCommon;
        std::optional<VirtualAddress> expected;
        if (expectPtr != nullptr) expected = to_address(expectPtr);
        US_TRY_ASSIGN(const VirtualAddress base,
                      runtime->address_space().reservations().reserve(size, pages, expected));
        History::begin({ObjectKind::kReservation, base, size});
        *virPtr = to_pointer(base);
        return {};
      });
}

aclError aclrtReserveMemAddressNoUCMemory(void** virPtr, size_t size, size_t alignment,
                                          void* expectPtr, uint64_t flags) {
  return guarded(
      US_CALL(out(virPtr), size, alignment, expectPtr, flags), size, [&]() -> Result<void> {
        US_TRY(check_arguments(virPtr, size, flags));
        const GatePass pass;
        US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kUncachedReservation));
        US_TRY(check_alignment(alignment));
        if (!is_aligned(size, kGiB)) {
          return Error::format(ErrorCode::kInvalidParam, "size is %zu and not a multiple of 1 GiB",
                               size);
        }
        if (expectPtr == nullptr) {
          return Error::format(ErrorCode::kNotSupported,
                               "expectPtr is NULL, the address must come from the caller");
        }
        US_TRY_ASSIGN(
            const VirtualAddress base,
            runtime->address_space().reservations().reserve_uncached(size, to_address(expectPtr)));
        History::begin({ObjectKind::kReservation, base, size});
        *virPtr = to_pointer(base);
        return {};
      });
}

aclError aclrtReleaseMemAddress(void* virPtr) {
  return guarded(US_CALL(virPtr), [&]() -> Result<void> {
    US_TRY(require_pointer(virPtr, "virPtr"));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kVirtualMemory));
    const ObjectEnd end(ObjectKind::kReservation, to_address(virPtr));
    US_TRY(runtime->address_space().reservations().release(to_address(virPtr)));
    end.confirm();
    return {};
  });
}
