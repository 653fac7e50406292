// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel_limits.h"

#include <algorithm>
#include <cinttypes>
#include <limits>

#include "base/sizes.h"

namespace understudy {

namespace {

constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();

struct Row {
  const char* name;
  Feature needs;
  uint64_t initial;
  uint64_t least;    // accepted
  uint64_t most;     // accepted
  uint64_t floor;    // smaller values are stored as this
  uint64_t unit;     // to which values are rounded up
  uint64_t threads;  // how often the program reads it back
};

constexpr std::array<Row, kKernelLimits> kRows = {{
    {"SIMT_STACK_SIZE", Feature::kThreadGroups, 1152, 0, kAny, 0, 128, 32},
    {"SIMT_DVG_WARP_STACK_SIZE", Feature::kThreadGroups, 1024, 0, kAny, 0, 128, 1},
    {"SIMD_STACK_SIZE", Feature::kKernelLimits, 32 * kKiB, 0, 192 * kKiB, 32 * kKiB, 16 * kKiB, 1},
    {"SIMD_PRINTF_FIFO_SIZE_PER_CORE", Feature::kKernelLimits, 32 * kKiB, kKiB, 64 * kMiB, 0, 8, 1},
    {"SIMT_PRINTF_FIFO_SIZE", Feature::kThreadGroups, 2 * kMiB, kMiB, 64 * kMiB, 0, 8, 1},
}};
// Products with groups of threads have less for the stacks of cores.
constexpr uint64_t kMostCoreStackBesideGroups = 128 * kKiB;

const Row& row_of(KernelLimit limit) { return kRows[static_cast<size_t>(limit)]; }

uint64_t most_of(KernelLimit limit, const ProductProfile& product) {
  return limit == KernelLimit::kCoreStack && product.has(Feature::kThreadGroups)
             ? kMostCoreStackBesideGroups
             : row_of(limit).most;
}

Result<void> check_product(KernelLimit limit, const ProductProfile& product) {
  if (product.has(row_of(limit).needs)) return {};
  return Error::format(ErrorCode::kNotInProduct, "product %s has no limit %s", product.key.data(),
                       row_of(limit).name);
}

}  // namespace

KernelLimits::KernelLimits(const Settings& settings) : settings_(settings) {
  std::ranges::transform(kRows, values_.begin(), &Row::initial);
}

Result<uint64_t> KernelLimits::get(KernelLimit limit) const {
  US_TRY(check_product(limit, settings_.product));
  MutexLock lock(mutex_);
  uint64_t value = 0;
  const bool fits =
      !__builtin_mul_overflow(values_[static_cast<size_t>(limit)], row_of(limit).threads, &value);
  return fits ? value : kAny;
}

Result<uint64_t> KernelLimits::rounded(KernelLimit limit, uint64_t value) const {
  const Row& row = row_of(limit);
  US_TRY(check_product(limit, settings_.product));
  const uint64_t most = most_of(limit, settings_.product);
  if (value < row.least || value > most) {
    return Error::format(ErrorCode::kInvalidParam,
                         "limit %s is to be %" PRIu64 " and must be %" PRIu64 " to %" PRIu64,
                         row.name, value, row.least, most);
  }
  // The largest sizes of all are rounded down.
  return std::max(row.floor, align_up(value, row.unit).value_or(align_down(kAny, row.unit)));
}

Result<KernelLimits::Values> KernelLimits::values_after_locked(
    const KernelLimitRequests& requests) const {
  Values values = values_;
  for (size_t i = 0; i < kKernelLimits; ++i) {
    if (!requests[i]) continue;
    // The driver keeps them with the first device of the machine (LIMIT-09).
    if (std::ranges::find(settings_.visible_devices, 0) == settings_.visible_devices.end()) {
      return Error::format(ErrorCode::kInvalidDevice,
                           "limits are set with device 0, which ASCEND_RT_VISIBLE_DEVICES hides");
    }
    US_TRY_ASSIGN(values[i], rounded(static_cast<KernelLimit>(i), *requests[i]));
  }
  constexpr auto kThreads = static_cast<size_t>(KernelLimit::kThreadStack);
  constexpr auto kDivergence = static_cast<size_t>(KernelLimit::kDivergenceStack);
  if (values[kThreads] == 0 && values[kDivergence] == 0) {
    return Error::format(ErrorCode::kInvalidParam, "limits %s and %s must not both be 0",
                         kRows[kThreads].name, kRows[kDivergence].name);
  }
  return values;
}

Result<void> KernelLimits::check(const KernelLimitRequests& requests) const {
  MutexLock lock(mutex_);
  US_TRY(values_after_locked(requests));
  return {};
}

Result<void> KernelLimits::set(const KernelLimitRequests& requests) {
  MutexLock lock(mutex_);
  US_TRY_ASSIGN(values_, values_after_locked(requests));
  return {};
}

Result<void> KernelLimits::set(KernelLimit limit, uint64_t value) {
  KernelLimitRequests requests;
  requests[static_cast<size_t>(limit)] = value;
  return set(requests);
}

}  // namespace understudy
