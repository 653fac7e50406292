// SPDX-License-Identifier: Apache-2.0
#include "support/rule_test.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "support/conformance.h"

namespace understudy_test {

aclrtPhysicalMemProp block_property(aclrtMemAttr attribute, aclrtMemLocationType location,
                                    uint32_t id) {
  aclrtPhysicalMemProp property;
  memset(&property, 0, sizeof property);
  property.handleType = ACL_MEM_HANDLE_TYPE_NONE;
  property.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
  property.memAttr = attribute;
  property.location.type = location;
  property.location.id = id;
  return property;
}

aclrtDrvMemHandle create_block(size_t size, const aclrtPhysicalMemProp& property) {
  aclrtDrvMemHandle handle = nullptr;
  EXPECT_SUCCESS(aclrtMallocPhysical(&handle, size, &property, 0));
  EXPECT_NE(handle, nullptr);
  return handle;
}

void* reserve(size_t size, uint64_t flags, void* expected) {
  void* range = nullptr;
  EXPECT_SUCCESS(aclrtReserveMemAddress(&range, size, 0, expected, flags));
  EXPECT_NE(range, nullptr);
  return range;
}

size_t free_bytes(aclrtMemAttr attribute) {
  size_t free = 0;
  size_t total = 0;
  EXPECT_SUCCESS(aclrtGetMemInfo(attribute, &free, &total));
  return free;
}

namespace {

// A pipe moves one byte between the kernel and the address under test.
class ProbePipe {
 public:
  ProbePipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) abort();
  }
  ~ProbePipe() {
    close(ends_[0]);
    close(ends_[1]);
  }
  bool take_from(const void* address) { return write(ends_[1], address, 1) == 1; }
  bool put_to(void* address) { return read(ends_[0], address, 1) == 1; }

 private:
  std::array<int, 2> ends_;
};

}  // namespace

bool cpu_can_read(const void* address) {
  ProbePipe probe;
  return probe.take_from(address);
}

bool cpu_can_write(void* address) {
  ProbePipe probe;
  const char zero = 0;
  if (!probe.take_from(address) && !probe.take_from(&zero)) abort();
  return probe.put_to(address);
}

std::vector<uint8_t> pattern(size_t count, uint8_t seed) {
  std::vector<uint8_t> bytes(count);
  for (size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<uint8_t>(seed * 37 + i * 11 + (i >> 8) * 5 + (i >> 16) * 3);
  }
  return bytes;
}

void copy_in(void* device, const std::vector<uint8_t>& bytes) {
  EXPECT_SUCCESS(
      aclrtMemcpy(device, bytes.size(), bytes.data(), bytes.size(), ACL_MEMCPY_HOST_TO_DEVICE));
}

std::vector<uint8_t> copy_out(const void* device, size_t count) {
  std::vector<uint8_t> bytes(count);
  EXPECT_SUCCESS(aclrtMemcpy(bytes.data(), count, device, count, ACL_MEMCPY_DEVICE_TO_HOST));
  return bytes;
}

std::string recent_error() {
  const char* text = aclGetRecentErrMsg();
  return text == nullptr ? "" : text;
}

MemoryFigures memory_figures() {
  MemoryFigures figures;
  for (int attribute = 0; attribute <= 17; ++attribute) {
    size_t free = 0;
    size_t total = 0;
    if (aclrtGetMemInfo(static_cast<aclrtMemAttr>(attribute), &free, &total) != ACL_SUCCESS) {
      continue;
    }
    figures.values.push_back(free);
    figures.values.push_back(total);
  }
  (void)recent_error();
  EXPECT_FALSE(figures.values.empty());
  return figures;
}

namespace {

void add_failure(testing::TestPartResult::Type type, CallOutcome::Place place,
                 const std::string& text) {
  testing::internal::AssertHelper(type, place.file, place.line, text.c_str()) = testing::Message();
}

}  // namespace

void CallOutcome::tell(const std::string& note) const {
  add_failure(testing::TestPartResult::kNonFatalFailure, place_, note);
}

CallOutcome expect_success(aclError code, const char* call, CallOutcome::Kind failed,
                           CallOutcome::Place place) {
  if (code == ACL_SUCCESS) return {CallOutcome::Kind::kSuccess, place};
  add_failure(
      failed == CallOutcome::Kind::kFatalFailure ? testing::TestPartResult::kFatalFailure
                                                 : testing::TestPartResult::kNonFatalFailure,
      place, std::string(call) + " returned " + std::to_string(code) + "; text: " + recent_error());
  return {failed, place};
}

testing::AssertionResult fails_with(aclError expected, aclError actual, const char* call) {
  const std::string text = recent_error();
  if (is_recorded_difference(expected, actual, call)) return testing::AssertionSuccess();
  if (actual != expected) {
    return testing::AssertionFailure()
           << call << " returned " << actual << ", expected " << expected << "; text: " << text;
  }
  const std::string function(call, strcspn(call, "("));
  if (text.find(function) == std::string::npos && !may_lack_text()) {
    return testing::AssertionFailure()
           << call << " left a text that does not name it: \"" << text << "\"";
  }
  return testing::AssertionSuccess();
}

void expect_failure(aclError expected, aclError actual, const char* call,
                    CallOutcome::Place place) {
  const testing::AssertionResult result = fails_with(expected, actual, call);
  if (!result) add_failure(testing::TestPartResult::kNonFatalFailure, place, result.message());
}

}  // namespace understudy_test
