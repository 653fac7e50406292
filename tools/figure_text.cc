// SPDX-License-Identifier: Apache-2.0
#include "tools/figure_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "base/size_text.h"

namespace understudy::command {

namespace {

// "1.23", "12.3", "123": three digits, without zeros behind the point.
std::string three_digits(double value) {
  std::array<char, 64> text;
  const int places = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  snprintf(text.data(), text.size(), "%.*f", places, value);
  std::string cut = text.data();
  if (places > 0) {
    cut.erase(cut.find_last_not_of('0') + 1);
    if (cut.back() == '.') cut.pop_back();
  }
  return cut;
}

}  // namespace

std::string duration_cell(uint64_t nanoseconds) {
  const auto value = static_cast<double>(nanoseconds);
  if (nanoseconds == 0) return "-";
  if (nanoseconds < 1000) return std::to_string(nanoseconds) + " ns";
  if (value < 999.5e3) return three_digits(value / 1e3) + " us";
  if (value < 999.5e6) return three_digits(value / 1e6) + " ms";
  return three_digits(value / 1e9) + " s";
}

std::string count_cell(uint64_t count) { return count == 0 ? "-" : std::to_string(count); }

std::string byte_rate_cell(double bytes_per_second) {
  if (!(bytes_per_second >= 1)) return "-";
  const double most = 1e18;  // nothing is faster
  const auto bytes = static_cast<uint64_t>(std::min(bytes_per_second, most));
  return std::string(RoughSizeText(bytes).c_str()) + "/s";
}

std::string rate_cell(double per_second) {
  if (!(per_second > 0)) return "-";
  if (per_second < 999.5) return three_digits(per_second) + " /s";
  if (per_second < 999.5e3) return three_digits(per_second / 1e3) + " k/s";
  return three_digits(per_second / 1e6) + " M/s";
}

std::string share_cell(double share) {
  std::array<char, 32> text;
  const double percent = std::clamp(share, 0.0, 1e6) * 100;
  snprintf(text.data(), text.size(), percent > 0 && percent < 9.95 ? "%.1f %%" : "%.0f %%",
           percent);
  return text.data();
}

std::string counted(uint64_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

std::string moment_text(uint64_t wall_clock) {
  const auto seconds = static_cast<time_t>(wall_clock / 1'000'000'000);
  tm local = {};
  std::array<char, 64> text;
  if (localtime_r(&seconds, &local) == nullptr) return "an unknown moment";
  strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &local);
  return text.data();
}

}  // namespace understudy::command
