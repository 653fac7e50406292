// SPDX-License-Identifier: Apache-2.0
//
// Scenarios in which heap allocations of the library fail, one after the other.
//
//   US_SCENARIO(aclrtMalloc, Large) {                  // a function, and what is special
//     probe.call([&] { return aclrtMalloc(&probe.out<void*>(), 4 * kMiB, kHugeFirst); });
//     probe.after([&] { EXPECT_SUCCESS(aclrtFree(probe.out<void*>())); });
//   }
//
// The body runs in a process of its own, once for every allocation that the call makes: the n-th
// one of the calling thread fails, and in another round of runs the n-th one of the library's
// threads. The call may cope with it. If it does not, it answers 207001 and has changed nothing: no
// output, no object, no figure, and the same call succeeds afterwards. Whatever happened, all can
// be given back at the end. There is a scenario for every function that the library exports.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "acl/acl_understudy.h"
#include "support/locked_call.h"
#include "support/rule_test.h"

namespace understudy_test::failing {

// Whose allocations fail: those of the thread that makes the call, or those of all others.
enum class Whose : uint8_t { kCaller, kLibrary };

// The n-th allocation from now on fails, and no other. 0: none does.
void arm(Whose whose, unsigned n);
// Ends that. Whether there were so many.
bool disarm();

inline constexpr aclrtMemMallocPolicy kHugeFirst = ACL_MEM_MALLOC_HUGE_FIRST;
inline constexpr size_t kBlock = 2 * kMiB;

// What a process has, to compare before and after a call that failed.
struct Census {
  aclUnderstudyObjects objects{};
  MemoryFigures figures;
  uint32_t streams_left = 0;
  uint32_t events_left = 0;
};
Census take_census();
testing::AssertionResult is_same(const Census& before, const Census& after);

class Probe {
 public:
  Probe(Whose whose, unsigned n) : whose_(whose), n_(n) { outputs_.fill(std::byte{0xA5}); }

  // Room for what a call gives. Nothing of it may change if the call fails.
  template <typename T>
  T& out(size_t number = 0) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kRoom);
    return *reinterpret_cast<T*>(&outputs_[number * kRoom]);
  }
  // For what is written although the call fails, by its rules.
  void allow_outputs() { compares_outputs_ = false; }
  // For a call that the product, or the rules, always refuse.
  void expect_refusal(aclError code) { usual_code_ = code; }
  // For one that the rules let fail otherwise, too.
  void allow(aclError code) { allowed_.push_back(code); }
  // For calls whose failure cannot be repeated, or that have none.
  void expect_no_repetition() { repeats_ = false; }

  // For a call that another process makes: only the library's own threads are of interest.
  void only_library() { only_library_ = true; }
  // For a call that may give back, whatever it answers, what other processes have returned.
  void expect_returns() { compares_census_ = false; }

  // The call under test. Once in a body.
  template <typename Call>
  void call(Call body) {
    begin();
    if (is_locked_) {
      const LockedCall locked = call_while_locked(body);
      waited_ = locked.waited;
      return end(false, locked.code, body);
    }
    arm(whose_, whose_ == Whose::kCaller && only_library_ ? 0 : n_);
    const aclError code = body();
    if (whose_ == Whose::kLibrary) wait_for_library();
    const bool reached = disarm();  // before anything else allocates
    end(reached, code, body);
  }
  // Gives back what the call gave, if it succeeded in the end.
  template <typename Body>
  void after(Body body) {
    if (final_code_ == ACL_SUCCESS) body();
  }

  // Instead of failing allocations: the process is locked when the call is made.
  void lock_process() { is_locked_ = true; }
  bool waited() const { return waited_; }

  bool was_reached() const { return was_reached_; }
  aclError usual_code() const { return usual_code_; }

 private:
  static constexpr size_t kRoom = 4096;

  void begin();
  void end(bool reached, aclError code, const std::function<aclError()>& again);
  static void wait_for_library();

  const Whose whose_;
  const unsigned n_;
  std::array<std::byte, 8 * kRoom> outputs_;
  std::array<std::byte, 8 * kRoom> outputs_before_{};
  std::optional<Census> before_;
  // The second one if a thread cannot be started.
  std::vector<aclError> allowed_ = {ACL_ERROR_RT_MEMORY_ALLOCATION,
                                    ACL_ERROR_RT_RESOURCE_ALLOC_FAIL};
  bool compares_outputs_ = true;
  bool compares_census_ = true;
  bool repeats_ = true;
  bool only_library_ = false;
  aclError usual_code_ = ACL_SUCCESS;
  bool is_locked_ = false;
  bool waited_ = false;
  bool was_reached_ = false;
  aclError final_code_ = ACL_SUCCESS;
};

using Body = void (*)(Probe& probe);

struct Scenario {
  const char* function;
  const char* variant;
  Body body;
  bool binds_device;  // before the body, and resets it afterwards
  const char* product;

  std::string name() const { return std::string(function) + "_" + variant; }
};
void PrintTo(const Scenario& scenario, std::ostream* out);

std::vector<Scenario>& scenarios();

struct ScenarioRegistration {
  ScenarioRegistration(const char* function, const char* variant, Body body, bool binds_device,
                       const char* product) {
    scenarios().push_back({function, variant, body, binds_device, product});
  }
};

// What most calls need: a stream, events, device memory and page-locked host memory.
struct Stage {
  Stage();
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  static constexpr size_t kSize = 64 * kKiB;
  aclrtStream stream = nullptr;
  aclrtEvent event = nullptr;
  aclrtEvent later_event = nullptr;
  void* device = nullptr;
  void* other_device = nullptr;  // memory of the same device
  void* host = nullptr;
};

}  // namespace understudy_test::failing

#define US_SCENARIO_WITH(function, variant, binds, product)                                        \
  static void scenario_##function##_##variant(::understudy_test::failing::Probe&);                 \
  static const ::understudy_test::failing::ScenarioRegistration registered_##function##_##variant( \
      #function, #variant, scenario_##function##_##variant, binds, product);                       \
  static void scenario_##function##_##variant(                                                     \
      [[maybe_unused]] ::understudy_test::failing::Probe& probe)
// On the product that has most functions.
#define US_SCENARIO(function, variant) US_SCENARIO_WITH(function, variant, true, "a3")
#define US_SCENARIO_ON(product, function, variant) \
  US_SCENARIO_WITH(function, variant, true, product)
// The first call of a process.
#define US_FIRST_CALL(function, variant) US_SCENARIO_WITH(function, variant, false, "a3")
// One call on a stage that is called `on`.
#define US_ONE_CALL(function, ...)                               \
  US_SCENARIO(function, Call) {                                  \
    [[maybe_unused]] const ::understudy_test::failing::Stage on; \
    probe.call([&]() -> aclError { return __VA_ARGS__; });       \
  }
