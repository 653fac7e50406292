// SPDX-License-Identifier: Apache-2.0
//
// How a share is found by what a program has in its hands, and what it is told if there is none.
#pragma once

#include "base/deadline.h"
#include "base/result.h"
#include "server/server.h"

namespace understudy {

// By what a program names a share.
struct ShareName {
  ShareToken token;
  ShareKind kind = ShareKind::kNumber;
  bool is_whole = true;  // false: the token is right perhaps, the rest of the handle is not
};

// What a token is that opens nothing.
Error unknown_share();

// A share whose exporter lives. Waits for the ledger until the deadline.
Result<ShareView> find_share(const Server& server, const ShareTable& table, const ShareName& name,
                             Deadline deadline);

}  // namespace understudy
