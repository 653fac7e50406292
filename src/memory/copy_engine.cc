// SPDX-License-Identifier: Apache-2.0
#include "memory/copy_engine.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "platform/processor.h"

namespace understudy {

namespace {

enum Method : unsigned { kLibrary, kStreaming, kStringMove, kMethodCount };

#if defined(__x86_64__)

// Stores that do not bring the destination into the caches. Loads are prefetched by hand:
// beside such stores the processor's own prefetcher falls behind.
[[gnu::target("avx2")]] void move_streaming(char* to, const char* from, size_t count) {
  constexpr size_t kLine = 64;
  constexpr size_t kAhead = 16 * kLine;
  const size_t head = std::min(count, -reinterpret_cast<uintptr_t>(to) % kLine);
  memcpy(to, from, head);
  size_t at = head;
  for (; at + kLine <= count; at += kLine) {
    _mm_prefetch(from + at + kAhead, _MM_HINT_NTA);
    const auto* source = reinterpret_cast<const __m256i*>(from + at);
    auto* target = reinterpret_cast<__m256i*>(to + at);
    const __m256i first = _mm256_loadu_si256(source);
    const __m256i second = _mm256_loadu_si256(source + 1);
    _mm256_stream_si256(target, first);
    _mm256_stream_si256(target + 1, second);
  }
  // Such stores are in no order with others: the copy is not reported before they are seen.
  _mm_sfence();
  memcpy(to + at, from + at, count - at);
}

void move_string(char* to, const char* from, size_t count) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
}

bool has(Method method) { return method != kStreaming || platform::has_avx2(); }

uint64_t now() { return __rdtsc(); }

#else

void move_streaming(char* to, const char* from, size_t count) { memcpy(to, from, count); }
void move_string(char* to, const char* from, size_t count) { memcpy(to, from, count); }
bool has(Method method) { return method == kLibrary; }
uint64_t now() { return 0; }

#endif

void move(Method method, char* to, const char* from, size_t count) {
  switch (method) {
    case kStreaming:
      return move_streaming(to, from, count);
    case kStringMove:
      return move_string(to, from, count);
    case kLibrary:
    case kMethodCount:
      break;
  }
  memcpy(to, from, count);
}

}  // namespace

// A copy in steps, which several threads may take in turn.
class SteppedCopy {
 public:
  static_assert(CopyEngine::kMethods == kMethodCount);

  SteppedCopy(void* to, const void* from, size_t count, CopyEngine::MethodSelector& selector,
              const HelperPool* helpers = nullptr)
      : to_(static_cast<char*>(to)),
        from_(static_cast<const char*>(from)),
        count_(count),
        // No step is shorter than half of one: a short rest joins the last.
        steps_(std::max<size_t>(1, (count + kStep / 2) / kStep)),
        selector_(selector),
        helpers_(helpers) {}

  // Takes steps until none is left.
  void work() {
    while (take_step()) {
    }
  }
  // The same for a helper, which leaves when there are tasks for its thread.
  static void help(void* raw) {
    auto& copy = *static_cast<SteppedCopy*>(raw);
    while (!copy.helpers_->has_other_work() && copy.take_step()) {
    }
  }

 private:
  // Long enough that starting a method costs nothing, short enough to try all on one large copy.
  static constexpr size_t kStep = 4 * 1024 * 1024;

  bool take_step() {
    const size_t step = next_.fetch_add(1, std::memory_order_relaxed);
    if (step >= steps_) return false;
    const size_t begin = step * kStep;
    move_step(begin, (step + 1 == steps_ ? count_ : begin + kStep) - begin);
    return true;
  }

  void move_step(size_t at, size_t size) {
    const auto method = static_cast<Method>(
        selector_.choose([](unsigned each) { return has(static_cast<Method>(each)); }));
    const uint64_t begin = now();
    move(method, to_ + at, from_ + at, size);
    selector_.record_sample(method, now() - begin, size);
  }

  char* const to_;
  const char* const from_;
  const size_t count_;
  const size_t steps_;
  CopyEngine::MethodSelector& selector_;
  const HelperPool* const helpers_;
  std::atomic<size_t> next_{0};
};

unsigned CopyEngine::power_index(size_t count) {
  constexpr unsigned kFirstPower = std::countr_zero(kManyBytes);
  const auto power = static_cast<unsigned>(std::bit_width(count)) - 1;
  return std::clamp(power, kFirstPower, kFirstPower + kPowers - 1) - kFirstPower;
}

bool CopyEngine::may_choose(const void* destination, const void* source, size_t count) {
#if defined(__SANITIZE_THREAD__)
  // ThreadSanitizer sees the methods' loads and stores, which are the program's; see
  // byte_kernels.h.
  (void)destination, (void)source, (void)count;
  return false;
#else
  const auto distance =
      reinterpret_cast<uintptr_t>(destination) - reinterpret_cast<uintptr_t>(source);
  return distance >= count && -distance >= count;
#endif
}

void CopyEngine::copy_many(void* destination, const void* source, size_t count) {
  if (count == 0) return;  // the pointers may be null
  const unsigned power = power_index(count);
  HelperPool* const helpers =
      count >= kWorthHelp ? helper_pool_.load(std::memory_order_acquire) : nullptr;
  const unsigned most = helpers != nullptr ? helpers->most_helpers() : 0;
  if (most == 0) return SteppedCopy(destination, source, count, alone_[power]).work();

  const unsigned company = companies_[power].choose([](unsigned) { return true; });
  const uint64_t begin = now();
  SteppedCopy copy(destination, source, count,
                   company == kTogether ? together_[power] : alone_[power], helpers);
  std::array<WorkItem, HelperPool::kMostHelpers> items;
  const std::span<WorkItem> offered(items.data(), company == kTogether ? most : 0);
  for (WorkItem& item : offered) item = {SteppedCopy::help, &copy};
  helpers->offer(offered);
  copy.work();
  helpers->withdraw(offered);
  companies_[power].record_sample(company, now() - begin, count);
}

}  // namespace understudy
