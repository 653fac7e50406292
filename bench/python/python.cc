// SPDX-License-Identifier: Apache-2.0
//
// What does Python cost? The same calls from C and through the module, and copies of arrays. Each
// figure of Python's is one of a fresh interpreter.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "support/device.h"
#include "support/fail.h"
#include "support/measure.h"
#include "support/private_server.h"
#include "support/report.h"

namespace {

using namespace bench;

// What measure.py prints; nothing if it cannot measure that here.
std::optional<double> in_python(const std::string& what) {
  const std::string command = std::string(US_PYTHON) + " " + US_SCRIPT + " " + what;
  FILE* const output = popen(command.c_str(), "r");
  if (output == nullptr) fail("%s does not start", US_PYTHON);
  char text[64] = "";
  const bool is_there = fgets(text, sizeof text, output) != nullptr;
  if (pclose(output) != 0 || !is_there) fail("%s failed", command.c_str());
  char* end = nullptr;
  const double figure = strtod(text, &end);
  return end == text ? std::nullopt : std::optional(figure);
}

double python_or_fail(const std::string& what) {
  const std::optional<double> figure = in_python(what);
  if (!figure) fail("measure.py %s gave no figure", what.c_str());
  return *figure;
}

double one_of(unsigned count, void (*call)()) {
  const Stopwatch time;
  for (unsigned i = 0; i < count; ++i) call();
  return time.nanoseconds() / count;
}

void ask_device() {
  int32_t device = 0;
  check(aclrtGetDevice(&device));
}

void allocate_and_free() {
  void* block = nullptr;
  check(aclrtMalloc(&block, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
  check(aclrtFree(block));
}

// Milliseconds to copy memory of the program's to the device and back.
class RoundTrip {
 public:
  explicit RoundTrip(size_t size) : source_(size, 1), target_(size, 2) {
    check(aclrtMalloc(&device_, size, ACL_MEM_MALLOC_HUGE_FIRST));
    run();
  }
  ~RoundTrip() { check(aclrtFree(device_)); }

  // The best of a few, as in Python.
  double best() {
    double least = run();
    for (int i = 1; i < 3; ++i) least = std::min(least, run());
    return least;
  }

 private:
  double run() {
    const size_t size = source_.size();
    const Stopwatch time;
    check(aclrtMemcpy(device_, size, source_.data(), size, ACL_MEMCPY_HOST_TO_DEVICE));
    check(aclrtMemcpy(target_.data(), size, device_, size, ACL_MEMCPY_DEVICE_TO_HOST));
    return time.nanoseconds() / 1e6;
  }

  std::vector<char> source_;
  std::vector<char> target_;
  void* device_ = nullptr;
};

void compare_calls(const Report& report, const char* name, const char* what, void (*call)(),
                   Goal goal) {
  const unsigned count = report.full_or_smoke(1'000'000U, 1'000U);
  const std::string request = std::string(what) + " " + std::to_string(count);
  const std::vector<double> times =
      medians(report.full_or_smoke(7U, 1U),
              {[&] { return python_or_fail(request); }, [&] { return one_of(count, call); }});
  report.add({name, kNanoseconds, times[0], times[1], goal});
}

void compare_round_trips(const Report& report) {
  const size_t size = report.full_or_smoke(size_t{256} << 20, size_t{1} << 20);
  const std::string request = "round_trip " + std::to_string(size);
  if (!in_python(request)) {
    report.note("numpy is not installed: no copies of arrays");
    return;
  }
  RoundTrip in_c(size);
  const std::vector<double> times =
      medians(report.full_or_smoke(7U, 1U),
              {[&] { return python_or_fail(request); }, [&] { return in_c.best(); }});
  report.add({std::to_string(size >> 20) + " MiB array there and back",
              kMilliseconds,
              times[0],
              times[1],
              {.at_least_better = 0.95}});
}

}  // namespace

int main(int argc, char** argv) {
  const Report report("python", argc, argv);
  use_private_server();
  setenv("PYTHONPATH", US_MODULE_FOLDER, 1);
  const std::vector<double> imports =
      medians(report.full_or_smoke(21U, 1U), {[] { return python_or_fail("import"); }});
  report.add({"import acl", kMilliseconds, imports[0], {}, {.at_most = 15}});
  start_device();
  compare_calls(report, "get_device, and in C", "get_device", ask_device, {.at_most_above = 150});
  compare_calls(report, "malloc + free of 4 KiB, and in C", "malloc", allocate_and_free, {});
  compare_round_trips(report);
}
