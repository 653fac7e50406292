// SPDX-License-Identifier: Apache-2.0
//
// A process of a test server with a capacity and a share table: what share tests look at.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "server/server.h"
#include "unit/test_server.h"

namespace understudy {

inline constexpr uint64_t kShareBytes = 4 * kMiB;

struct ShareRig {
  explicit ShareRig(const TestServer& server)
      : joined(server.join()),
        slots(joined->slots()),
        capacity(joined->capacity()),
        shares(joined->shares()) {}

  static ShareDescription description() {
    ShareDescription wanted;
    wanted.location = {LocationKind::kDevice, 0};
    wanted.size = kShareBytes;
    wanted.usable = kShareBytes;
    wanted.charged = kShareBytes;
    return wanted;
  }
  // Memory of this process that it shares.
  ShareToken add(const ShareDescription& wanted = description()) {
    EXPECT_TRUE(capacity.charge({0, wanted.page_kind, wanted.charged}));
    return value_of(shares.add(wanted));
  }
  bool hold(ShareToken token) { return value_of(shares.hold(token)); }
  std::optional<ShareView> find(ShareToken token) const { return value_of(shares.find(token)); }
  AfterDrop drop(ShareToken token) { return value_of(shares.drop(token.number())); }
  std::vector<uint32_t> take_returns() {
    std::vector<uint32_t> found(shares.returns().load());
    found.resize(value_of(shares.take_returns(found)));
    return found;
  }
  std::vector<ShareTable::HeldPart> held_parts(ProcessTag owner) {
    std::vector<ShareTable::HeldPart> found(value_of(shares.held_parts(owner, {})));
    EXPECT_EQ(value_of(shares.held_parts(owner, found)), found.size());
    return found;
  }
  bool has_returns() const { return shares.returns().load() != 0; }

  // Of all processes, on device 0.
  uint64_t used(PageKind kind = PageKind::kHuge) const {
    const PoolFigures figures = capacity.figures(0, kind);
    return figures.total - figures.free;
  }

  std::unique_ptr<Server> joined;
  ProcessSlots& slots;
  Capacity& capacity;
  ShareTable& shares;
};

}  // namespace understudy
