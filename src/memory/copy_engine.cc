// SPDX-License-Identifier: Apache-2.0
#include "memory/copy_engine.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace understudy {

namespace {

enum Method : unsigned { kLibrary, kStreaming, kStringMove, kMethods };

#if defined(__x86_64__)

// Stores that do not bring the destination into the caches. Loads are prefetched by hand: beside
// such stores the processor's own prefetcher falls behind.
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
  // Such stores are in no order with others: nobody may hear of the copy before they are seen.
  _mm_sfence();
  memcpy(to + at, from + at, count - at);
}

void move_string(char* to, const char* from, size_t count) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
}

bool has(Method method) { return method != kStreaming || __builtin_cpu_supports("avx2"); }

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
    case kMethods:
      break;
  }
  memcpy(to, from, count);
}

// What is known of copies of about one size. Threads may lose each other's updates: it is an
// estimate, and every choice is right.
class Experience {
 public:
  Method choose() {
    const uint32_t turn = turns_.fetch_add(1, std::memory_order_relaxed);
    const auto another = static_cast<Method>(turn % kMethods);
    // Circumstances change, other programs and other buffers: sometimes look again.
    if ((turn < kTrials || turn % kRetry == 0) && has(another)) return another;
    Method best = kLibrary;
    for (const Method method : {kStreaming, kStringMove}) {
      if (has(method) && cost(method) < cost(best)) best = method;
    }
    return best;
  }

  // It took `ticks` to move `count` bytes.
  void learn(Method method, uint64_t ticks, size_t count) {
    const uint64_t measured = std::min<uint64_t>(ticks * kScale / count, kUnknown);
    const uint64_t known = cost(method);
    uint64_t updated = std::min(measured, known);
    if (turns_.load(std::memory_order_relaxed) > kTrials) {
      // Very bad news are a neighbour's doing, or the first touch of a page.
      const uint64_t believed = std::min(measured, 2 * known);
      updated = (3 * known + believed) / 4;
    }
    costs_[method].store(static_cast<uint32_t>(updated), std::memory_order_relaxed);
  }

 private:
  static constexpr uint32_t kTrials = 3 * kMethods;  // at first: each way three times
  static constexpr uint32_t kRetry = 256;
  static_assert(kRetry % kMethods != 0);    // so that each way gets its turn
  static constexpr uint64_t kScale = 1024;  // a tick may move many bytes
  static constexpr uint32_t kUnknown = UINT32_MAX / 2;

  uint64_t cost(Method method) const { return costs_[method].load(std::memory_order_relaxed); }

  std::atomic<uint32_t> turns_{0};
  std::array<std::atomic<uint32_t>, kMethods> costs_ = {kUnknown, kUnknown, kUnknown};
};

// By the power of two of the size of the whole copy, which decides what is in the caches.
constexpr unsigned kFirstPower = std::countr_zero(kManyBytes);
constexpr unsigned kPowers = 24;
constinit std::array<Experience, kPowers> experiences;

Experience& experience_with(size_t count) {
  const auto power = static_cast<unsigned>(std::bit_width(count)) - 1;
  return experiences[std::clamp(power, kFirstPower, kFirstPower + kPowers - 1) - kFirstPower];
}

}  // namespace

void move_many_bytes(void* destination, const void* source, size_t count) {
  // Long enough that starting a way costs nothing, short enough to try all on one large copy.
  constexpr size_t kStep = 4 * 1024 * 1024;
  auto* to = static_cast<char*>(destination);
  const auto* from = static_cast<const char*>(source);
  Experience& experience = experience_with(count);
  for (size_t done = 0; done < count;) {
    // No step is shorter than half of one: a short rest joins the last.
    const size_t left = count - done;
    const size_t step = left < kStep + kStep / 2 ? left : kStep;
    const Method method = experience.choose();
    const uint64_t begin = now();
    move(method, to + done, from + done, step);
    experience.learn(method, now() - begin, step);
    done += step;
  }
}

}  // namespace understudy
