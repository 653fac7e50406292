// SPDX-License-Identifier: Apache-2.0
//
// Every heap allocation of every function of the library fails once: see failing_allocations.h.
// This program has an operator new and a calloc of its own, which the library uses as well.
// Covers: SNAP-08, SNAP-09.
#include "regress/failing_allocations.h"

#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <set>

#include "regress/call_classes.h"

namespace understudy_test::failing {
namespace {

// ---- Which allocation fails ----

std::atomic<bool> is_armed{false};
std::atomic<Whose> whose_fails{Whose::kCaller};
std::atomic<int64_t> left{0};  // until it fails
unsigned armed_for = 0;        // 0: for none
thread_local bool is_caller = false;

// Where the library's code is, so that the C library's own allocations are left alone: it ends the
// process if it cannot register the destructor of a thread's variable.
struct Code {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  bool has(const void* address) const {
    const auto number = reinterpret_cast<uintptr_t>(address);
    return number >= begin && number < end;
  }
};
Code find_library() {
  Code library;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* result) {
        const std::string name = info->dlpi_name;
        if (name.find("libascendcl") == std::string::npos) return 0;
        auto& found = *static_cast<Code*>(result);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& part = info->dlpi_phdr[i];
          if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
          found.begin = info->dlpi_addr + part.p_vaddr;
          found.end = found.begin + part.p_memsz;
        }
        return 1;
      },
      &library);
  return library;
}
Code library_code;

// Told to the process that waits for a run.
struct RunReport {
  bool reached = false;
  bool waited = false;  // in a run with the process locked
  aclError usual_code = ACL_SUCCESS;
  int frames = 0;
  std::array<void*, 32> trace{};
};
RunReport* report = nullptr;  // in memory that both have

bool must_fail() {
  if (!is_armed.load(std::memory_order_relaxed)) return false;
  if (is_caller != (whose_fails.load() == Whose::kCaller)) return false;
  if (left.fetch_sub(1) != 1) return false;
  if (report != nullptr) {
    is_armed = false;  // what follows may allocate itself
    report->frames = backtrace(report->trace.data(), static_cast<int>(report->trace.size()));
  }
  return true;
}

void* allocate(size_t size, size_t alignment) {
  if (must_fail()) return nullptr;
  if (alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) return malloc(size == 0 ? 1 : size);
  void* memory = nullptr;
  return posix_memalign(&memory, alignment, size) == 0 ? memory : nullptr;
}
void* allocate_or_throw(size_t size, size_t alignment = 1) {
  void* const memory = allocate(size, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void arm(Whose whose, unsigned n) {
  is_caller = true;
  whose_fails = whose;
  left = n;
  armed_for = n;
  is_armed = n != 0;
}

bool disarm() {
  is_armed = false;
  const bool was_armed = armed_for != 0;
  return was_armed && left.load() <= 0;
}

// ---- What a scenario sees ----

Census take_census() {
  Census census;
  EXPECT_SUCCESS(aclUnderstudyCountObjects(&census.objects));
  aclrtContext context = nullptr;
  if (aclrtGetCurrentContext(&context) == ACL_SUCCESS && context != nullptr) {
    census.figures = memory_figures();
    EXPECT_SUCCESS(aclrtGetStreamAvailableNum(&census.streams_left));
    EXPECT_SUCCESS(aclrtGetEventAvailNum(&census.events_left));
  }
  (void)recent_error();
  return census;
}

testing::AssertionResult is_same(const Census& before, const Census& after) {
  std::string what;
  const auto compare = [&](const char* name, uint64_t old_value, uint64_t new_value) {
    if (old_value == new_value) return;
    what += std::string(" ") + name + " from " + std::to_string(old_value) + " to " +
            std::to_string(new_value);
  };
  compare("deviceBytes", before.objects.deviceBytes, after.objects.deviceBytes);
  compare("allocations", before.objects.allocations, after.objects.allocations);
  compare("hostAllocations", before.objects.hostAllocations, after.objects.hostAllocations);
  compare("physicalHandles", before.objects.physicalHandles, after.objects.physicalHandles);
  compare("reservations", before.objects.reservations, after.objects.reservations);
  compare("mappings", before.objects.mappings, after.objects.mappings);
  compare("streams", before.objects.streams, after.objects.streams);
  compare("events", before.objects.events, after.objects.events);
  compare("notifies", before.objects.notifies, after.objects.notifies);
  compare("pools", before.objects.pools, after.objects.pools);
  compare("streams left", before.streams_left, after.streams_left);
  compare("events left", before.events_left, after.events_left);
  for (size_t i = 0; i < std::min(before.figures.values.size(), after.figures.values.size()); ++i) {
    compare("a memory figure", before.figures.values[i], after.figures.values[i]);
  }
  if (what.empty()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "changed:" << what;
}

void Probe::begin() {
  before_ = take_census();
  outputs_before_ = outputs_;
}

void Probe::end(bool reached, aclError code, const std::function<aclError()>& again) {
  was_reached_ = reached;
  final_code_ = code;
  if (n_ == 0) {
    EXPECT_EQ(code, usual_code_) << "with no failure at all: " << recent_error();
    return;
  }
  if (code == usual_code_) return;
  EXPECT_TRUE(reached) << "it failed by itself: " << code << " " << recent_error();
  EXPECT_TRUE(std::find(allowed_.begin(), allowed_.end(), code) != allowed_.end())
      << "code " << code << ": " << recent_error();
  if (whose_ == Whose::kLibrary) return;  // what had been done by then is not known
  EXPECT_TRUE(!compares_outputs_ || outputs_ == outputs_before_) << "an output was written";
  if (compares_census_) {
    EXPECT_TRUE(is_same(*before_, take_census()));
  }
  if (!repeats_) return;
  final_code_ = again();
  EXPECT_EQ(final_code_, usual_code_) << "the second time: " << recent_error();
}

void Probe::wait_for_library() {
  constexpr int32_t kPatience = 20'000;  // milliseconds
  EXPECT_NE(aclrtSynchronizeDeviceWithTimeout(kPatience), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  (void)recent_error();
}

std::vector<Scenario>& scenarios() {
  static auto& all = *new std::vector<Scenario>();
  return all;
}
void PrintTo(const Scenario& scenario, std::ostream* out) { *out << scenario.name(); }

Stage::Stage() {
  EXPECT_SUCCESS(aclrtCreateStream(&stream));
  EXPECT_SUCCESS(aclrtCreateEvent(&event));
  EXPECT_SUCCESS(aclrtCreateEvent(&later_event));
  EXPECT_SUCCESS(aclrtMalloc(&device, kSize, kHugeFirst));
  EXPECT_SUCCESS(aclrtMalloc(&other_device, kSize, kHugeFirst));
  EXPECT_SUCCESS(aclrtMallocHost(&host, kSize));
  memset(host, 1, kSize);
  EXPECT_SUCCESS(aclrtMemset(device, kSize, 2, kSize));
}
Stage::~Stage() {
  (void)aclrtSynchronizeStream(stream);  // its tasks may have failed
  EXPECT_SUCCESS(aclrtFreeHost(host));
  EXPECT_SUCCESS(aclrtFree(other_device));
  EXPECT_SUCCESS(aclrtFree(device));
  EXPECT_SUCCESS(aclrtDestroyEvent(later_event));
  EXPECT_SUCCESS(aclrtDestroyEvent(event));
  EXPECT_SUCCESS(aclrtDestroyStream(stream));
}

// ---- The runs ----

namespace {

// In a process of its own that has made no call yet.
void run(const Scenario& scenario, Probe& probe) {
  alarm(20);  // seconds; a call that waits for ever is ended
  std::optional<Census> before;
  if (scenario.binds_device) {
    ASSERT_SUCCESS(aclrtSetDevice(0));
    before = take_census();
  }
  scenario.body(probe);
  report->reached = probe.was_reached();
  report->waited = probe.waited();
  report->usual_code = probe.usual_code();
  if (scenario.binds_device) {
    // The body may have left another device current, or none.
    ASSERT_SUCCESS(aclrtSetDevice(0));
    EXPECT_TRUE(is_same(*before, take_census())) << "at the end";
    EXPECT_SUCCESS(aclrtResetDeviceForce(0));
  }
}

// Where the failure was, to be looked up with addr2line.
std::string trace_of(const RunReport& seen) {
  std::string text;
  for (int i = 0; i < seen.frames; ++i) {
    Dl_info found{};
    void* const address = seen.trace[static_cast<size_t>(i)];
    if (dladdr(address, &found) == 0 || found.dli_fname == nullptr) continue;
    const std::string file = found.dli_fname;
    if (file.find("libascendcl") == std::string::npos) continue;
    std::array<char, 32> offset{};
    snprintf(
        offset.data(), offset.size(), " +0x%zx",
        static_cast<size_t>(static_cast<char*>(address) - static_cast<char*>(found.dli_fbase)));
    text += offset.data();
  }
  return text;
}

// Also those of earlier runs, in the process that forks.
int failures_so_far() {
  return testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
}

// Whether there was an n-th allocation, and it is worth to go on.
bool has_allocation(const Scenario& scenario, Whose whose, unsigned n) {
  *report = RunReport{};
  fflush(stdout);
  fflush(stderr);
  const pid_t child = fork();
  if (child == 0) {
    const int before = failures_so_far();
    Probe probe(whose, n);
    run(scenario, probe);
    exit(failures_so_far() != before ? 1 : 0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  if (status == 0) return report->reached;
  ADD_FAILURE() << scenario.name() << ": "
                << (whose == Whose::kCaller ? "the calling thread" : "the library")
                << ", allocation " << n << ": the process ended with wait status " << status
                << (WIFSIGNALED(status) ? std::string(" (") + strsignal(WTERMSIG(status)) + ")"
                                        : std::string())
                << "; failed at libascendcl.so" << trace_of(*report);
  constexpr int kMostFailures = 8;
  static int failures = 0;
  const bool is_stuck = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
  return ++failures < kMostFailures && !is_stuck && (report->reached || WIFSIGNALED(status));
}

class ScenarioTest : public testing::Test {
 protected:
  void SetUp() override {
    void* const shared =
        mmap(nullptr, sizeof(RunReport), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(shared, MAP_FAILED);
    report = new (shared) RunReport();
    library_code = find_library();
    ASSERT_NE(library_code.begin, 0u);
    // The first use of backtrace loads a library.
    report->frames = backtrace(report->trace.data(), static_cast<int>(report->trace.size()));
  }
  void TearDown() override { munmap(std::exchange(report, nullptr), sizeof(RunReport)); }
};

class FailingAllocation : public ScenarioTest, public testing::WithParamInterface<Scenario> {};

INSTANTIATE_TEST_SUITE_P(, FailingAllocation, testing::ValuesIn(scenarios()),
                         [](const auto& parameter) { return parameter.param.name(); });

TEST_P(FailingAllocation, LeavesEverythingAsItWas) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam().product}, {"UNDERSTUDY_DEVICES", "2"},
                   {"UNDERSTUDY_MEMORY", "1G"});
  constexpr unsigned kMost = 1000;
  (void)has_allocation(GetParam(), Whose::kCaller, 0);
  if (HasFailure()) return;
  for (const Whose whose : {Whose::kCaller, Whose::kLibrary}) {
    if (whose == Whose::kLibrary && !GetParam().binds_device) break;
    unsigned n = 1;
    while (n < kMost && has_allocation(GetParam(), whose, n)) ++n;
    EXPECT_LT(n, kMost);
  }
}

// ---- That there is a scenario for every function, and that the mechanism works ----

// As the dynamic linker sees them.
std::set<std::string> exported_functions() {
  Dl_info found{};
  link_map* map = nullptr;
  EXPECT_NE(dladdr1(reinterpret_cast<void*>(&aclInit), &found, reinterpret_cast<void**>(&map),
                    RTLD_DL_LINKMAP),
            0);
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  const uint32_t* hash = nullptr;
  for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    const auto* const address = reinterpret_cast<const char*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(address);
    if (entry->d_tag == DT_STRTAB) names = address;
    if (entry->d_tag == DT_GNU_HASH) hash = reinterpret_cast<const uint32_t*>(address);
  }
  std::set<std::string> functions;
  if (symbols == nullptr || names == nullptr || hash == nullptr) {
    ADD_FAILURE() << found.dli_fname << " has no table of symbols";
    return functions;
  }
  // Buckets, first symbol, words of the filter, shift; then filter, buckets and chains.
  const uint32_t bucket_count = hash[0];
  const uint32_t first = hash[1];
  const auto* const buckets =
      reinterpret_cast<const uint32_t*>(reinterpret_cast<const ElfW(Addr)*>(hash + 4) + hash[2]);
  const uint32_t* const chains = buckets + bucket_count;
  for (uint32_t bucket = 0; bucket < bucket_count; ++bucket) {
    if (buckets[bucket] < first) continue;
    for (uint32_t at = buckets[bucket];; ++at) {
      const std::string name = names + symbols[at].st_name;
      if (name.starts_with("acl")) functions.insert(name);
      if ((chains[at - first] & 1) != 0) break;
    }
  }
  return functions;
}

// ---- Which functions the lock of a process holds ----

// What becomes of a call that is made while the process is locked.
bool waits_while_locked(const Scenario& scenario) {
  *report = RunReport{};
  fflush(stdout);
  fflush(stderr);
  const pid_t child = fork();
  if (child == 0) {
    const int before = failures_so_far();
    Probe probe(Whose::kCaller, 0);
    probe.lock_process();
    run(scenario, probe);
    exit(failures_so_far() != before ? 1 : 0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << scenario.name() << " while the process is locked";
  return report->waited;
}

// The functions of a product, in a few parts, so that no test takes long.
constexpr size_t kParts = 8;
struct CallPart {
  std::string product;
  size_t part;

  bool has(const Scenario& scenario) const {
    return scenario.product == product &&
           std::hash<std::string>()(scenario.function) % kParts == part;
  }
};

std::vector<CallPart> call_parts() {
  std::set<std::string> products;
  for (const Scenario& scenario : scenarios()) products.insert(scenario.product);
  std::vector<CallPart> parts;
  for (const std::string& product : products) {
    for (size_t part = 0; part < kParts; ++part) parts.push_back({product, part});
  }
  return parts;
}

class CallClasses : public ScenarioTest, public testing::WithParamInterface<CallPart> {};
INSTANTIATE_TEST_SUITE_P(, CallClasses, testing::ValuesIn(call_parts()), [](const auto& tested) {
  return "On" + tested.param.product + "_part" + std::to_string(tested.param.part);
});

TEST_P(CallClasses, SNAP_08_SNAP_09_EveryFunctionWaitsAsItsClassSays) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam().product}, {"UNDERSTUDY_DEVICES", "2"},
                   {"UNDERSTUDY_MEMORY", "1G"});
  std::set<std::string> tried;
  std::set<std::string> held;
  for (const Scenario& scenario : scenarios()) {
    const std::string name = scenario.function;
    // They change the state that this test needs; other tests see that they run.
    if (!GetParam().has(scenario) || name.starts_with("aclrtSnapShotProcess")) continue;
    tried.insert(name);
    if (waits_while_locked(scenario)) held.insert(name);
  }
  for (const std::string& name : tried) {
    EXPECT_EQ(held.contains(name), kHeldFunctions.contains(name)) << name;
  }
}

TEST(CallClassLists, SNAP_08_SNAP_09_EveryFunctionIsOfOneClass) {
  for (const std::string& name : exported_functions()) {
    EXPECT_TRUE(kHeldFunctions.contains(name) != kFreeFunctions.contains(name)) << name;
  }
}

TEST(FailingAllocations, ThereIsAScenarioForEveryFunction) {
  std::set<std::string> missing = exported_functions();
  EXPECT_GT(missing.size(), 200u);
  for (const Scenario& scenario : scenarios()) missing.erase(scenario.function);
  for (const std::string& name : missing) ADD_FAILURE() << name << " has none";
}

TEST(FailingAllocations, TheLibraryUsesTheOperatorOfThisProgram) {
  ASSERT_SUCCESS(aclInit(nullptr));
  arm(Whose::kCaller, 1);
  aclDataBuffer* const buffer = aclCreateDataBuffer(nullptr, 0);
  EXPECT_TRUE(disarm());
  EXPECT_EQ(buffer, nullptr);
  EXPECT_SUCCESS(aclFinalize());
}

}  // namespace
}  // namespace understudy_test::failing

// ---- The program's own operators; the library's allocations come here ----

// GCC takes the operators for its own when they are inlined.
using understudy_test::failing::allocate;
using understudy_test::failing::allocate_or_throw;

void* operator new(size_t size) { return allocate_or_throw(size); }
void* operator new[](size_t size) { return allocate_or_throw(size); }
void* operator new(size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<size_t>(alignment));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept { return allocate(size, 1); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return allocate(size, 1); }
void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(size, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept { free(memory); }
void operator delete[](void* memory) noexcept { free(memory); }
void operator delete(void* memory, size_t) noexcept { free(memory); }
void operator delete[](void* memory, size_t) noexcept { free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { free(memory); }

// Arrays that have to be zeroed come from here. glibc's function by its other name, so that it is
// there before anything else; or the one of a sanitizer, which is not asked for by name because
// that may allocate.
extern "C" void __asan_init() __attribute__((weak));        // NOLINT: the name is the sanitizer's
extern "C" void __tsan_init() __attribute__((weak));        // NOLINT
extern "C" void* __libc_calloc(size_t count, size_t size);  // NOLINT: the name is glibc's
extern "C" void* calloc(size_t count, size_t size) noexcept {
  using understudy_test::failing::library_code;
  if (library_code.has(__builtin_return_address(0)) && understudy_test::failing::must_fail()) {
    return nullptr;
  }
  if (&__asan_init == nullptr && &__tsan_init == nullptr) return __libc_calloc(count, size);
  static void* (*next)(size_t, size_t) = nullptr;
  static bool is_looking = false;
  if (next == nullptr && !is_looking) {
    is_looking = true;
    next = reinterpret_cast<decltype(next)>(dlsym(RTLD_NEXT, "calloc"));
    is_looking = false;
  }
  return next != nullptr ? next(count, size) : nullptr;
}
