// SPDX-License-Identifier: Apache-2.0
//
// Names for places of a program and for devices, as all texts about recordings spell them.
#pragma once

#include <cstdint>
#include <string>

#include "tools/recording/recording.h"

namespace understudy::command {

// "fill at kv.cc:41 < main at kv.cc:80"; without a stack the function that was called, if it is
// known.
std::string place_name(const Recording& recording, uint32_t stack, uint32_t function);
// "device 0", "host".
std::string device_name(int32_t device);
// "stream 3"; "stream 3#2" if it is the second one with its index.
std::string stream_name(const RecordedStream& stream);

}  // namespace understudy::command
