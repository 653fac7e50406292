// SPDX-License-Identifier: Apache-2.0
//
// Contexts and options kept with them. Rules: CTX.
#include "acl/acl_rt.h"
#include "capi/call.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

Result<unsigned> option_number(aclSysParamOpt option) {
  const auto number = static_cast<unsigned>(option);
  if (number < kSystemOptions) return number;
  return Error::format(ErrorCode::kInvalidParam, "opt is %d, which is no option",
                       static_cast<int>(option));
}

}  // namespace

aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId) {
  return guarded(US_CALL(out(context), deviceId), [&]() -> Result<void> {
    US_TRY(require_pointer(context, "context"));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const unsigned device, runtime->devices().check(deviceId, "deviceId"));
    US_TRY_ASSIGN(const ContextReference created, runtime->devices().create_context(device));
    make_current(created);
    *context = handle_pointer(created.handle());
    return {};
  });
}

aclError aclrtDestroyContext(aclrtContext context) {
  return guarded(US_CALL(context), [&]() -> Result<void> {
    US_TRY(require_pointer(context, "context"));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    return runtime->devices().destroy_context(handle_number(context));
  });
}

aclError aclrtSetCurrentContext(aclrtContext context) {
  return guarded(US_CALL(context), [&]() -> Result<void> {
    US_TRY(require_pointer(context, "context"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const ContextReference found,
                  runtime->devices().find_context(handle_number(context)));
    make_current(found);
    return {};
  });
}

aclError aclrtGetCurrentContext(aclrtContext* context) {
  return guarded(US_CALL(out(context)), [&]() -> Result<void> {
    US_TRY(require_pointer(context, "context"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    const Result<ContextReference> current = runtime->look_for_context();
    if (!current.ok()) {
      *context = nullptr;  // some programs look at the pointer and not at the code
      return current.error();
    }
    *context = handle_pointer(current.value().handle());
    return {};
  });
}

aclError aclrtCtxGetCurrentDefaultStream(aclrtStream* stream) {
  return guarded(US_CALL(out(stream)), [&]() -> Result<void> {
    US_TRY(require_pointer(stream, "stream"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const ContextReference context, runtime->current_context());
    *stream = handle_pointer(context.default_stream.handle());
    return {};
  });
}

aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  return guarded(US_CALL(opt, value), [&]() -> Result<void> {
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const unsigned number, option_number(opt));
    US_TRY_ASSIGN(const ContextReference context, runtime->current_context());
    runtime->devices().set_option(context, number, value);
    return {};
  });
}

aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
  return guarded(US_CALL(opt, out(value)), [&]() -> Result<void> {
    US_TRY(require_pointer(value, "value"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const unsigned number, option_number(opt));
    US_TRY_ASSIGN(const ContextReference context, runtime->current_context());
    const std::optional<int64_t> found = runtime->devices().option(context, number);
    if (!found) {
      return Error::format(ErrorCode::kOptionNotSet, "option %u was never set for this context",
                           number);
    }
    *value = *found;
    return {};
  });
}

aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  return guarded(US_CALL(opt, value), [&]() -> Result<void> {
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const unsigned number, option_number(opt));
    runtime->choices().options[number].store(value, std::memory_order_relaxed);
    return {};
  });
}

aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
  return guarded(US_CALL(opt, out(value)), [&]() -> Result<void> {
    US_TRY(require_pointer(value, "value"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const unsigned number, option_number(opt));
    *value = runtime->choices().options[number].load(std::memory_order_relaxed);
    return {};
  });
}
