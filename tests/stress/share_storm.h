// SPDX-License-Identifier: Apache-2.0
//
// What the processes of a share storm know of each other: a board in shared memory on which each
// has a place for what it offers. Any of them may be killed at any instant, also while it writes
// there, so that a reader takes only what it saw unchanged.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <type_traits>

#include "rules/ipc_objects.h"

namespace understudy_test::storm {

inline constexpr unsigned kWorkers = 8;
// Behind those of the workers: a process that offers the same for all the time, and one that is
// never killed and must never notice anything.
inline constexpr unsigned kAnchor = kWorkers;
inline constexpr unsigned kHealthy = kWorkers + 1;
inline constexpr unsigned kPlaces = kWorkers + 2;
inline constexpr unsigned kOffersEach = 4;
inline constexpr unsigned kDevices = 2;

enum class Kind : uint32_t { kNone, kBlock, kSmallAllocation, kLargeAllocation, kEvent };

// Which process has a place: its id, and the number of its start, which is never used again.
struct Holder {
  int32_t process = 0;
  uint32_t start = 0;

  friend bool operator==(const Holder&, const Holder&) = default;
};
static_assert(std::atomic<Holder>::is_always_lock_free);

struct Offer {
  Kind kind = Kind::kNone;
  bool open_to_all = false;
  uint32_t seed = 0;  // of its bytes, which never change
  size_t size = 0;
  uint64_t token = 0;
  ipc::Key key{};
  aclrtIpcEventHandle event{};
  std::array<Holder, kPlaces> listed{};

  bool lists(Holder who) const {
    return open_to_all || std::find(listed.begin(), listed.end(), who) != listed.end();
  }
};

class PublishedOffer {
 public:
  void publish(const Offer& offer) {
    const uint32_t version = version_.load() | 1;
    version_.store(version);
    const Words words = std::bit_cast<Words>(offer);
    for (size_t i = 0; i < words.size(); ++i) words_[i].store(words[i]);
    version_.store(version + 1);
  }
  // Nothing if it is being written, or its writer was killed over it.
  std::optional<Offer> read() const {
    const uint32_t before = version_.load();
    Words words;
    for (size_t i = 0; i < words.size(); ++i) words[i] = words_[i].load();
    if (before % 2 != 0 || version_.load() != before) return std::nullopt;
    const Offer seen = std::bit_cast<Offer>(words);
    return seen.kind == Kind::kNone ? std::nullopt : std::optional(seen);
  }

 private:
  using Words = std::array<uint64_t, sizeof(Offer) / sizeof(uint64_t)>;
  static_assert(sizeof(Words) == sizeof(Offer) && std::is_trivially_copyable_v<Offer>);

  std::atomic<uint32_t> version_{0};
  std::array<std::atomic<uint64_t>, std::tuple_size_v<Words>> words_{};
};

struct Place {
  std::atomic<Holder> holder;
  // Its process has closed every descriptor: what it offers may be refused, but not be wrong.
  std::atomic<bool> is_careless{false};
  std::array<PublishedOffer, kOffersEach> offers;
};

struct Board {
  std::array<Place, kPlaces> places;
  std::atomic<bool> ends{false};
  // So that one who stands still is found, and where.
  std::atomic<uint64_t> healthy_steps{0};
  std::atomic<const char*> healthy_step{nullptr};  // of that process, for a debugger
  std::atomic<uint64_t> healthy_longest{0};        // nanoseconds of its longest step
  std::atomic<uint64_t> imports{0};                // of all, that succeeded
  std::atomic<uint64_t> refusals{0};

  static constexpr unsigned kTexts = 8;
  std::atomic<unsigned> failures{0};
  std::array<std::array<char, 800>, kTexts> texts;

  // Whoever finds something wrong may be killed before it can say so any other way.
  __attribute__((format(printf, 2, 3))) void note_failure(const char* format, ...) {
    const unsigned number = failures.fetch_add(1);
    if (number >= kTexts) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(texts[number].data(), texts[number].size(), format, arguments);
    va_end(arguments);
  }
};

// The board of this process, or of another one, which is found by the path.
class SharedBoard {
 public:
  SharedBoard() : file_(memfd_create("storm-board", MFD_CLOEXEC)) {
    if (file_ < 0 || ftruncate(file_, sizeof(Board)) != 0) abort();
    attach();
    new (board_) Board();
  }
  explicit SharedBoard(const std::string& path) : file_(open(path.c_str(), O_RDWR | O_CLOEXEC)) {
    if (file_ < 0) abort();
    attach();
  }
  ~SharedBoard() {
    munmap(board_, sizeof(Board));
    close(file_);
  }
  SharedBoard(const SharedBoard&) = delete;
  SharedBoard& operator=(const SharedBoard&) = delete;

  Board& operator*() const { return *board_; }
  Board* operator->() const { return board_; }
  std::string path() const {
    return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_);
  }

 private:
  void attach() {
    void* const start = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (start == MAP_FAILED) abort();
    board_ = static_cast<Board*>(start);
  }

  const int file_;
  Board* board_ = nullptr;
};

}  // namespace understudy_test::storm
