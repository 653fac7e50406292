// SPDX-License-Identifier: Apache-2.0
//
// Half-precision numbers. Rules: HALF. Neither function can fail or needs the runtime.
#include "base/half.h"

#include "acl/acl_base.h"

float aclFloat16ToFloat(aclFloat16 value) { return understudy::half_to_float(value); }

aclFloat16 aclFloatToFloat16(float value) { return understudy::float_to_half(value); }
