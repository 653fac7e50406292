// SPDX-License-Identifier: Apache-2.0
//
// Start and end of a program's use of the library. Rules: INIT.
#include <algorithm>

#include "acl/acl.h"
#include "capi/call.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

int32_t call_init(const Initialization::Callback& callback, const std::string& text) {
  const auto function = reinterpret_cast<aclInitCallbackFunc>(callback.function);
  return function(text.c_str(), text.size(), callback.user_data);
}

int32_t call_finalize(const Initialization::Callback& callback, const std::string&) {
  return reinterpret_cast<aclFinalizeCallbackFunc>(callback.function)(callback.user_data);
}

// Memory outlives this: blocks, reservations and mappings belong to the process (DEV-11).
Result<uint64_t> finalize(
    Result<uint64_t> (Initialization::*how)(const Initialization::Caller& call)) {
  const GatePass pass;
  Runtime* const runtime = Runtime::existing();
  if (runtime == nullptr) {
    return Error::format(ErrorCode::kAlreadyFinalized, "the process was never initialized");
  }
  Devices::prepare_reset();
  US_TRY_ASSIGN(const uint64_t left, (runtime->initialization().*how)(call_finalize));
  if (left == 0) runtime->devices().reset_all();
  return left;
}

// On products that count it, a call without its aclInit is none (INIT-16).
Result<void> finalize_counted() {
  const Result<uint64_t> left = finalize(&Initialization::finalize_one);
  if (!left.ok() && left.error().code() != ErrorCode::kAlreadyFinalized) return left.error();
  return {};
}

Result<void> check_callback(aclRegisterCallbackType type, bool has_function) {
  if (!has_function) return invalid_argument("cbFunc is NULL");
  const int number = type;
  if ((number < ACL_REG_TYPE_ACL_MODEL || number > ACL_REG_TYPE_ACL_RETR) &&
      number != ACL_REG_TYPE_OTHER) {
    return invalid_argument("type is %d, which is no component", number);
  }
  return {};
}

// Before anything changes (LIMIT-08, LIMIT-09).
Result<void> check_limits(const Runtime& runtime, const InitOptions& options) {
  const bool asks = std::ranges::any_of(options.kernel_limits,
                                        [](const auto& request) { return request.has_value(); });
  if (!asks) return {};
  US_TRY(runtime.require(Feature::kKernelLimits));
  return runtime.kernel_limits().check(options.kernel_limits);
}

// Gives the code of a callback that ran at once through `code`.
Result<void> add_callback(Initialization::Moment moment, aclRegisterCallbackType type,
                          AnyFunction function, void* user_data,
                          const Initialization::Caller& caller, aclError& code) {
  US_TRY(check_callback(type, function != nullptr));
  US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
  const auto multiplicity = type == ACL_REG_TYPE_OTHER ? Initialization::Multiplicity::kMany
                                                       : Initialization::Multiplicity::kOne;
  US_TRY_ASSIGN(code, runtime->initialization().add_callback(moment, {type, function, user_data},
                                                             multiplicity, caller));
  return {};
}

Result<void> remove_callback(Initialization::Moment moment, aclRegisterCallbackType type,
                             AnyFunction function) {
  US_TRY(check_callback(type, function != nullptr));
  US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
  return runtime->initialization().remove_callback(moment, type, function);
}

// As `guarded`, for calls in which callbacks run: a code that one gave is passed on as it is.
template <typename... T, typename Body>
aclError guarded_with_callbacks(const Called<T...>& called, Body body) {
  const char* const function = called.function;
  return watched(called, 0, [&]() -> aclError {
    aclError callback_code = ACL_SUCCESS;
    const aclError code = attempt(function, [&] { return body(callback_code); });
    if (code != ACL_SUCCESS || callback_code == ACL_SUCCESS) return code;
    report_as(callback_code, function,
              Error::format(ErrorCode::kCallbackRefused, "a callback returned %d", callback_code));
    return callback_code;
  });
}

}  // namespace

aclError aclInit(const char* configPath) {
  return guarded_with_callbacks(
      US_CALL(text(configPath)), [&](aclError& callback_code) -> Result<void> {
        US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
        US_TRY_ASSIGN(const InitOptions options, read_init_options(configPath));
        if (options.default_device) {
          US_TRY(runtime->devices().check(*options.default_device, "default_device of configPath",
                                          ErrorCode::kInvalidArgument));
        }
        US_TRY(check_limits(*runtime, options));
        US_TRY_ASSIGN(callback_code, runtime->initialization().init(options, call_init));
        if (callback_code == ACL_SUCCESS) runtime->apply(options);
        return {};
      });
}

aclError aclFinalize(void) {
  return guarded(US_CALL(), [&]() -> Result<void> {
    const Runtime* const runtime = Runtime::existing();
    if (runtime != nullptr && !runtime->settings().product.has(Feature::kFinalizeAll)) {
      return finalize_counted();
    }
    US_TRY(finalize(&Initialization::finalize_all));
    return {};
  });
}

aclError aclFinalizeReference(uint64_t* refCount) {
  return guarded(US_CALL(out(refCount)), [&]() -> Result<void> {
    US_TRY_ASSIGN(const uint64_t left, finalize(&Initialization::finalize_one));
    if (refCount != nullptr) *refCount = left;
    return {};
  });
}

aclError aclInitCallbackRegister(aclRegisterCallbackType type, aclInitCallbackFunc cbFunc,
                                 void* userData) {
  return guarded_with_callbacks(US_CALL(type, cbFunc, userData),
                                [&](aclError& callback_code) -> Result<void> {
                                  return add_callback(Initialization::Moment::kInit, type,
                                                      reinterpret_cast<AnyFunction>(cbFunc),
                                                      userData, call_init, callback_code);
                                });
}

aclError aclInitCallbackUnRegister(aclRegisterCallbackType type, aclInitCallbackFunc cbFunc) {
  return guarded(US_CALL(type, cbFunc), [&]() -> Result<void> {
    return remove_callback(Initialization::Moment::kInit, type,
                           reinterpret_cast<AnyFunction>(cbFunc));
  });
}

aclError aclFinalizeCallbackRegister(aclRegisterCallbackType type, aclFinalizeCallbackFunc cbFunc,
                                     void* userData) {
  return guarded_with_callbacks(US_CALL(type, cbFunc, userData),
                                [&](aclError& callback_code) -> Result<void> {
                                  return add_callback(Initialization::Moment::kFinalize, type,
                                                      reinterpret_cast<AnyFunction>(cbFunc),
                                                      userData, call_finalize, callback_code);
                                });
}

aclError aclFinalizeCallbackUnRegister(aclRegisterCallbackType type,
                                       aclFinalizeCallbackFunc cbFunc) {
  return guarded(US_CALL(type, cbFunc), [&]() -> Result<void> {
    return remove_callback(Initialization::Moment::kFinalize, type,
                           reinterpret_cast<AnyFunction>(cbFunc));
  });
}
