// SPDX-License-Identifier: Apache-2.0
#include "server/shortage.h"

#include <cstdio>
#include <cstring>

#include "base/size_text.h"

namespace understudy {

namespace {

// "20 MiB"; "3.99 GiB (4286582784 bytes)" where that is not exact.
class AskedText {
 public:
  explicit AskedText(uint64_t bytes) {
    const RoughSizeText size(bytes);
    const bool is_exact = strcmp(size.c_str(), SizeText(bytes).c_str()) == 0;
    if (is_exact) {
      snprintf(text_, sizeof text_, "%s", size.c_str());
    } else {
      snprintf(text_, sizeof text_, "%s (%llu bytes)", size.c_str(),
               static_cast<unsigned long long>(bytes));
    }
  }
  const char* c_str() const { return text_; }

 private:
  char text_[64];
};

// ", and 3 GiB are in use when it is idle"; nothing where that is nothing.
class IdleText {
 public:
  explicit IdleText(uint64_t bytes) {
    if (bytes == 0) return;
    snprintf(text_, sizeof text_, ", and %s are in use when it is idle",
             RoughSizeText(bytes).c_str());
  }
  const char* c_str() const { return text_; }

 private:
  char text_[80] = "";
};

// "process 4711 holds the most, 12.50 GiB"
class HolderText {
 public:
  explicit HolderText(const Capacity::Holder& holder) {
    const RoughSizeText size(holder.bytes);
    if (holder.bytes == 0) {
      snprintf(text_, sizeof text_, "no process holds any of it");
    } else if (holder.is_own) {
      snprintf(text_, sizeof text_, "this process holds the most, %s", size.c_str());
    } else if (holder.process == 0) {
      snprintf(text_, sizeof text_, "memory that processes share is the most, %s", size.c_str());
    } else {
      snprintf(text_, sizeof text_, "process %d holds the most, %s", holder.process, size.c_str());
    }
  }
  const char* c_str() const { return text_; }

 private:
  char text_[80];
};

}  // namespace

Error shortage(const Capacity& capacity, const Charge& charge) {
  // The charge has waited already if it had to.
  const PoolFigures normal = capacity.figures(charge.device, PageKind::kNormal, kOneAttempt);
  const PoolFigures huge = capacity.figures(charge.device, PageKind::kHuge, kOneAttempt);
  return Error::format(ErrorCode::kOutOfMemory,
                       "%s in %s pages are not free on device %u: it has %s of %s in normal and %s "
                       "of %s in huge pages left%s; %s",
                       AskedText(charge.bytes).c_str(), name_of(charge.kind), charge.device,
                       RoughSizeText(normal.free).c_str(), RoughSizeText(normal.total).c_str(),
                       RoughSizeText(huge.free).c_str(), RoughSizeText(huge.total).c_str(),
                       IdleText(capacity.idle_usage()).c_str(),
                       HolderText(capacity.largest_holder(charge.device)).c_str());
}

}  // namespace understudy
