// SPDX-License-Identifier: Apache-2.0
//
// Half-precision numbers as the published helpers convert them: to float, the largest exponent is
// an ordinary one; to half, what is too large becomes the largest number. Rules: HALF.
#pragma once

#include <cstdint>

namespace understudy {

float half_to_float(uint16_t half);
// To the nearest one, to even in the middle, whatever the rounding mode of the thread is.
uint16_t float_to_half(float value);

}  // namespace understudy
