// SPDX-License-Identifier: Apache-2.0
//
// Functions of Python that wait on streams for their turn.
#pragma once

#include "acl/acl_base.h"
#include "python_api.h"

namespace understudy::python {

// Drops the functions of a stream whose tasks are dropped: they will never run. REQUIRES: the GIL.
void forget_callbacks_of(aclrtStream stream);
void forget_all_callbacks();

}  // namespace understudy::python
