// SPDX-License-Identifier: Apache-2.0
//
// Variables of kernels. The software NPU loads none, so that no symbol is one of them; arguments
// are checked as where there are some. Rules: SYM.
#include "acl/acl_rt.h"
#include "capi/call.h"
#include "capi/stream_argument.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

Error unknown_symbol(const void* symbol) {
  return Error::format(ErrorCode::kInvalidSymbol,
                       "symbol %p is not a variable of a loaded kernel; no kernels are loaded here",
                       symbol);
}

// What all copies have.
struct SymbolCopy {
  const void* symbol;
  const void* memory;
  const char* memory_name;
  size_t count;
  size_t offset;
  aclrtMemcpyKind kind;
  aclrtMemcpyKind direction;  // the kind it may be, besides the default
};

// SYM-01, SYM-03, SYM-04, SYM-05
Result<void> check_arguments(const SymbolCopy& copy) {
  US_TRY(require_pointer(copy.symbol, "symbol"));
  US_TRY(require_pointer(copy.memory, copy.memory_name));
  if (copy.kind != copy.direction && copy.kind != ACL_MEMCPY_DEFAULT) {
    return invalid_argument("kind is %d and must be %d or %d", static_cast<int>(copy.kind),
                            static_cast<int>(copy.direction), static_cast<int>(ACL_MEMCPY_DEFAULT));
  }
  if (copy.offset > SIZE_MAX - copy.count) {
    return invalid_argument("offset %zu and count %zu are beyond the end of every symbol",
                            copy.offset, copy.count);
  }
  return {};
}

SymbolCopy copy_out(void* dst, const void* symbol, size_t count, size_t offset,
                    aclrtMemcpyKind kind) {
  return {symbol, dst, "dst", count, offset, kind, ACL_MEMCPY_DEVICE_TO_HOST};
}

SymbolCopy copy_in(const void* symbol, const void* src, size_t count, size_t offset,
                   aclrtMemcpyKind kind) {
  return {symbol, src, "src", count, offset, kind, ACL_MEMCPY_HOST_TO_DEVICE};
}

Result<void> check_room(size_t count, size_t dstMax) {
  if (count <= dstMax) return {};
  return invalid_argument("count %zu is more than dstMax %zu", count, dstMax);
}

// Everything behind the checks of arguments.
Result<void> refuse(const void* symbol) {
  US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kSymbols));
  US_TRY(runtime->current_context());
  return unknown_symbol(symbol);
}

Result<void> refuse_on(aclrtStream stream, const void* symbol) {
  US_TRY(stream_call(Feature::kSymbols, stream));
  return unknown_symbol(symbol);
}

}  // namespace

aclError aclrtGetSymbolAddress(const void* symbol, void** devPtr) {
  return guarded(US_CALL(symbol, out(devPtr)), [&]() -> Result<void> {
    US_TRY(require_pointer(symbol, "symbol"));
    US_TRY(require_pointer(devPtr, "devPtr"));
    return refuse(symbol);
  });
}

aclError aclrtGetSymbolSize(const void* symbol, size_t* size) {
  return guarded(US_CALL(symbol, out(size)), [&]() -> Result<void> {
    US_TRY(require_pointer(symbol, "symbol"));
    US_TRY(require_pointer(size, "size"));
    return refuse(symbol);
  });
}

aclError aclrtMemcpyFromSymbol(void* dst, size_t dstMax, const void* symbol, size_t count,
                               size_t offset, aclrtMemcpyKind kind) {
  return guarded(US_CALL(dst, dstMax, symbol, count, offset, kind), count, [&]() -> Result<void> {
    if (count == 0) return {};
    US_TRY(check_arguments(copy_out(dst, symbol, count, offset, kind)));
    US_TRY(check_room(count, dstMax));
    const GatePass pass;
    return refuse(symbol);
  });
}

aclError aclrtMemcpyFromSymbolAsync(void* dst, size_t dstMax, const void* symbol, size_t count,
                                    size_t offset, aclrtMemcpyKind kind, aclrtStream stream) {
  return guarded(US_CALL(dst, dstMax, symbol, count, offset, kind, stream), count,
                 [&]() -> Result<void> {
                   if (count == 0) return {};
                   US_TRY(check_arguments(copy_out(dst, symbol, count, offset, kind)));
                   US_TRY(check_room(count, dstMax));
                   const GatePass pass;
                   return refuse_on(stream, symbol);
                 });
}

aclError aclrtMemcpyToSymbol(const void* symbol, const void* src, size_t count, size_t offset,
                             aclrtMemcpyKind kind) {
  return guarded(US_CALL(symbol, src, count, offset, kind), count, [&]() -> Result<void> {
    if (count == 0) return {};
    US_TRY(check_arguments(copy_in(symbol, src, count, offset, kind)));
    const GatePass pass;
    return refuse(symbol);
  });
}

aclError aclrtMemcpyToSymbolAsync(const void* symbol, const void* src, size_t count, size_t offset,
                                  aclrtMemcpyKind kind, aclrtStream stream) {
  return guarded(US_CALL(symbol, src, count, offset, kind, stream), count, [&]() -> Result<void> {
    if (count == 0) return {};
    US_TRY(check_arguments(copy_in(symbol, src, count, offset, kind)));
    const GatePass pass;
    return refuse_on(stream, symbol);
  });
}
