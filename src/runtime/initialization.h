// SPDX-License-Identifier: Apache-2.0
//
// Start and end of a program's use of the library: counted, with the JSON file that aclInit takes
// and callbacks around both. Nothing else depends on it: calls before and after are served.
// Rules: INIT. Any thread may call anything; callbacks run without a lock and may call back.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "runtime/kernel_limits.h"
#include "runtime/named_callbacks.h"

namespace understudy {

// Where the texts of errors are kept.
enum class ErrorTextScope : uint8_t { kThread, kProcess };

// What the JSON file of aclInit can say.
struct InitOptions {
  std::optional<int64_t> default_device;
  KernelLimitRequests kernel_limits;
  ErrorTextScope error_text_scope = ErrorTextScope::kThread;
  std::string content = "{}";  // in canonical form, to compare
  std::string text;            // as it was read, for callbacks
};

// The options of a file; of nothing if `path` is null or empty.
Result<InitOptions> read_init_options(const char* path);

class Initialization {
 public:
  // A callback as registered. `function` and `user_data` identify nothing to us but themselves.
  struct Callback {
    int32_t type = 0;
    AnyFunction function = nullptr;
    void* user_data = nullptr;
  };
  enum class Moment : uint8_t { kInit, kFinalize };
  // Calls a callback with the configuration text; its result is a published code, 0 for success.
  using Caller = std::function<int32_t(const Callback&, const std::string& text)>;

  // Counts one more use. If it is the first, runs the init callbacks; the code of one that failed
  // is returned and the use is not counted.
  Result<int32_t> init(const InitOptions& options, const Caller& call);
  // Ends all uses, or one. Gives how many are left; at zero the finalize callbacks have run.
  Result<uint64_t> finalize_all(const Caller& call);
  Result<uint64_t> finalize_one(const Caller& call);

  // Only `kMany` may have several callbacks.
  enum class Multiplicity : uint8_t { kOne, kMany };
  // An init callback that comes after the fact runs at once; gives its code.
  Result<int32_t> add_callback(Moment moment, const Callback& callback, Multiplicity multiplicity,
                               const Caller& call);
  Result<void> remove_callback(Moment moment, int32_t type, AnyFunction function);

 private:
  enum class Uses : uint8_t { kOne, kAll };
  Result<uint64_t> finalize(Uses uses, const Caller& call);

  std::vector<Callback>& callbacks_locked(Moment moment) US_REQUIRES(mutex_) {
    return moment == Moment::kInit ? init_callbacks_ : finalize_callbacks_;
  }

  Mutex mutex_{LockRank::kInitialization};
  uint64_t uses_ US_GUARDED_BY(mutex_) = 0;
  bool ever_initialized_ US_GUARDED_BY(mutex_) = false;
  InitOptions options_ US_GUARDED_BY(mutex_);
  std::vector<Callback> init_callbacks_ US_GUARDED_BY(mutex_);
  std::vector<Callback> finalize_callbacks_ US_GUARDED_BY(mutex_);
};

}  // namespace understudy
