// SPDX-License-Identifier: Apache-2.0
//
// Figures for people: lengths of time, counts, rates and shares, in cells as wide as they need.
#pragma once

#include <cstdint>
#include <string>

namespace understudy::command {

// "12.3 us", by three or four digits; "-" for nothing.
std::string duration_cell(uint64_t nanoseconds);
// "12345678"; "-" for nothing.
std::string count_cell(uint64_t count);
// "1.25 GiB/s"; "-" for nothing.
std::string byte_rate_cell(double bytes_per_second);
// "5.12 M/s".
std::string rate_cell(double per_second);
// "12 %", "0.4 %".
std::string share_cell(double share);
// "1 call", "12 calls".
std::string counted(uint64_t count, const char* one, const char* many);
// "2025-11-18 20:24:05", local time, from nanoseconds since 1970.
std::string moment_text(uint64_t wall_clock);

}  // namespace understudy::command
