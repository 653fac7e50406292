// SPDX-License-Identifier: Apache-2.0
//
// How much memory there is, and what an address is. Rules: INFO, PTR.
#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "acl/acl_rt.h"
#include "capi/block_attributes.h"
#include "capi/call.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

// Which pages of which memory a query is about.
struct Query {
  bool ddr;  // asks for DDR by name
  std::span<const PageKind> kinds;

  bool asks_for(PageKind kind) const {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  }
};
constexpr std::array kNormalAndHuge{PageKind::kNormal, PageKind::kHuge};
constexpr std::array kOnlyNormal{PageKind::kNormal};
constexpr std::array kOnlyHuge{PageKind::kHuge};
constexpr std::array kOnlyGiant{PageKind::kGiant};

Result<Query> query_argument(aclrtMemAttr attribute) {
  switch (attribute) {
    case ACL_DDR_MEM:
      return Query{true, kNormalAndHuge};
    case ACL_HBM_MEM:
      return Query{false, kNormalAndHuge};
    case ACL_DDR_MEM_HUGE:
    case ACL_DDR_MEM_P2P_HUGE:
      return Query{true, kOnlyHuge};
    case ACL_DDR_MEM_NORMAL:
    case ACL_DDR_MEM_P2P_NORMAL:
      return Query{true, kOnlyNormal};
    case ACL_HBM_MEM_HUGE:
    case ACL_HBM_MEM_P2P_HUGE:
    case ACL_MEM_HUGE:
    case ACL_MEM_P2P_HUGE:
      return Query{false, kOnlyHuge};
    case ACL_HBM_MEM_NORMAL:
    case ACL_HBM_MEM_P2P_NORMAL:
    case ACL_MEM_NORMAL:
    case ACL_MEM_P2P_NORMAL:
      return Query{false, kOnlyNormal};
    case ACL_HBM_MEM_HUGE1G:
    case ACL_HBM_MEM_P2P_HUGE1G:
    case ACL_MEM_HUGE1G:
    case ACL_MEM_P2P_HUGE1G:
      return Query{false, kOnlyGiant};
  }
  return Error::format(ErrorCode::kInvalidMemoryType, "attr is %d, which is no kind of memory",
                       static_cast<int>(attribute));
}

}  // namespace

aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t* free, size_t* total) {
  return guarded(US_CALL(attr, out(free), out(total)), [&]() -> Result<void> {
    US_TRY(require_pointer(free, "free"));
    US_TRY(require_pointer(total, "total"));
    US_TRY_ASSIGN(const Query query, query_argument(attr));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const ContextReference context, runtime->current_context());
    const ProductProfile& product = runtime->settings().product;
    if (query.asks_for(PageKind::kGiant) && !product.has(Feature::kGiantPages)) {
      return Error::format(ErrorCode::kNotInProduct, "product %s has no 1 GiB pages",
                           product.key.data());
    }
    runtime->sharing().settle();
    PoolFigures figures;
    // A device with HBM has no DDR; one without answers for HBM from its DDR (INFO-07).
    if (!query.ddr || product.technology == MemoryTechnology::kDdr) {
      figures = runtime->capacity().figures(context.device(), query.kinds);
    }
    *free = figures.free;
    *total = figures.total;
    return {};
  });
}

aclError aclrtPointerGetAttributes(const void* ptr, aclrtPtrAttributes* attributes) {
  return guarded(US_CALL(ptr, attributes), [&]() -> Result<void> {
    US_TRY(require_pointer(ptr, "ptr"));
    US_TRY(require_pointer(attributes, "attributes"));
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kPointerAttributes));
    memset(attributes, 0, sizeof *attributes);
    const std::optional<MappingView> found =
        runtime->address_space().translation().find(to_address(ptr));
    if (!found) {
      const bool host = runtime->host_memory().find(to_address(ptr)).has_value();
      attributes->location.type =
          host ? ACL_MEM_LOCATION_TYPE_HOST : ACL_MEM_LOCATION_TYPE_UNREGISTERED;
      if (host) attributes->pageSize = kNormalPage;
      return {};
    }
    attributes->location = published_location(found->location);
    attributes->pageSize = static_cast<uint32_t>(page_size(found->page_kind));
    return {};
  });
}
