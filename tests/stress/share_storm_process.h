// SPDX-License-Identifier: Apache-2.0
//
// One process of a share storm: allocates, exports, imports, maps, copies, frees and uses events in
// random order. Now and then it does what programs do that know nothing of the library: it opens
// and closes the ledger file, closes every descriptor, forks children that use the library or do
// not, and starts other programs. The bytes of an offer are written before it is exported, and from
// then on only with the same bytes again: whoever looks at them, however late, must find them, also
// when a copy was cut short.
#pragma once

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <list>
#include <random>
#include <string>
#include <vector>

#include "acl/acl_understudy.h"
#include "stress/share_storm.h"
#include "support/fork_safety.h"
#include "support/sanitizers.h"

namespace understudy_test::storm {

inline std::vector<uint64_t> words_of(uint32_t seed, size_t offset, size_t bytes) {
  std::vector<uint64_t> words(bytes / sizeof(uint64_t));
  for (size_t i = 0; i < words.size(); ++i) {
    words[i] = (uint64_t{seed} << 32) + offset + i * sizeof(uint64_t);
  }
  return words;
}

class Process {
 public:
  Process(Board& board, unsigned place, uint32_t start)
      : board_(board), place_(place), self_{getpid(), start}, random_(start * 2654435761U + place) {
    for (PublishedOffer& each : own_place().offers) each.publish({});
    own_place().is_careless.store(false);
    own_place().holder.store(self_);
    device_ = static_cast<int32_t>(random_() % kDevices);
    expect("aclrtSetDevice", aclrtSetDevice(device_));
  }

  void take_random_step() {
    if (random_() % 32 == 0) return step("something else", [&] { do_something_else(); });
    switch (random_() % 8) {
      case 0:
      case 1:
        return step("offer", [&] { offer_something(random_kind(), random_() % 2 == 0); });
      case 2:
        return step("withdraw", [&] { withdraw(random_() % kOffersEach); });
      case 3:
      case 4:
        return step("import", [&] { import_from(static_cast<unsigned>(random_() % kPlaces)); });
      case 5:
        return step("import of the anchor", [&] { import_from(kAnchor); });
      case 6:
        return step("look", [&] { look_at_everything(); });
      default:
        return step("give back", [&] {
          if (!held_.empty()) give_back(held_.begin());
        });
    }
  }

  // One offer in a free corner of its place, if there is one.
  void offer_something(Kind kind, bool open_to_all) {
    for (unsigned number = 0; number < kOffersEach; ++number) {
      if (own_[number].offer.kind == Kind::kNone) return offer(number, kind, open_to_all);
    }
  }
  void give_back_everything() {
    for (unsigned number = 0; number < kOffersEach; ++number) withdraw(number);
    while (!held_.empty()) give_back(held_.begin());
  }

 private:
  // Memory that this process sees: its own, or imported.
  struct Memory {
    Offer offer;
    aclrtDrvMemHandle block = nullptr;
    void* start = nullptr;
    aclrtEvent event = nullptr;
  };

  Place& own_place() { return board_.places[place_]; }

  template <typename Body>
  void step(const char* name, Body body) {
    if (place_ != kHealthy) return body();
    board_.healthy_step.store(name);
    const auto begin = std::chrono::steady_clock::now();
    body();
    const std::chrono::nanoseconds time = std::chrono::steady_clock::now() - begin;
    board_.healthy_longest =
        std::max(board_.healthy_longest.load(), static_cast<uint64_t>(time.count()));
    board_.healthy_steps.fetch_add(1);
  }

  bool expect(const char* what, aclError code) {
    if (code == ACL_SUCCESS) return true;
    if (own_place().is_careless.load()) return false;
    board_.note_failure("process %d at place %u: %s returned %d: %s", self_.process, place_, what,
                        code, recent_error().c_str());
    return false;
  }

  Kind random_kind() { return static_cast<Kind>(1 + random_() % 4); }

  // ---- What programs do besides ----

  void do_something_else() {
    const bool is_worker = place_ < kWorkers;
    const unsigned choices = !is_worker ? 1 : why_no_fork_of_threads() != nullptr ? 2 : 5;
    switch (random_() % choices) {
      case 0:
        return open_and_close_the_ledger();
      case 1:
        // Rarely: from then on it is of little use to the storm. To ThreadSanitizer, closing what
        // another thread reads is a race.
        if (random_() % 4 == 0 && !has_thread_sanitizer()) {
          own_place().is_careless.store(true);
          close_range(3, ~0U, 0);
        }
        return;
      case 2:
        return run_child([] { return 0; });
      case 3:
        return run_child([this] { return use_memory_of_its_own(); });
      default:
        return run_child([] {
          execl("/proc/self/exe", "storm", "--gtest_list_tests", "--gtest_filter=nothing", nullptr);
          return 1;
        });
    }
  }

  static void open_and_close_the_ledger() {
    const std::string path = std::string(aclUnderstudyRuntimeDirectory()) + "/ledger";
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file >= 0) close(file);
  }

  // In a child that ends with this process, if not before.
  template <typename Body>
  void run_child(Body body) {
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != self_.process) _exit(0);  // it ended before
      if (const int null = open("/dev/null", O_WRONLY); null >= 0) dup2(null, STDOUT_FILENO);
      _exit(body());
    }
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (child > 0 && status != 0) {
      board_.note_failure("a child of process %d ended with wait status %d", self_.process, status);
    }
  }

  int use_memory_of_its_own() {
    Memory memory;
    memory.offer.size = 2 * kMiB;
    memory.offer.seed = 77;
    if (!expect("aclrtSetDevice in a child", aclrtSetDevice(device_)) || !make_allocation(memory)) {
      return own_place().is_careless.load() ? 0 : 2;
    }
    write(memory);
    look_at(memory);
    return expect("aclrtFree in a child", aclrtFree(memory.start)) ? 0 : 3;
  }

  // ---- What it offers ----

  void offer(unsigned number, Kind kind, bool open_to_all) {
    Memory& memory = own_[number];
    memory.offer = {};
    memory.offer.open_to_all = open_to_all;
    memory.offer.seed = static_cast<uint32_t>(random_());
    memory.offer.size = kind == Kind::kSmallAllocation ? size_t{512} << random_() % 8
                                                       : 2 * kMiB * (1 + random_() % 2);
    const bool made = kind == Kind::kBlock   ? make_block(memory)
                      : kind == Kind::kEvent ? make_event(memory)
                                             : make_allocation(memory);
    if (!made) return;
    memory.offer.kind = kind;
    if (kind == Kind::kEvent) return own_place().offers[number].publish(memory.offer);
    write(memory);
    if (export_memory(memory)) own_place().offers[number].publish(memory.offer);
  }

  bool make_block(Memory& memory) {
    const aclrtPhysicalMemProp property = block_property(
        ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, static_cast<uint32_t>(device_));
    return expect("aclrtMallocPhysical",
                  aclrtMallocPhysical(&memory.block, memory.offer.size, &property, 0)) &&
           map(memory);
  }
  bool make_allocation(Memory& memory) {
    return expect("aclrtMalloc",
                  aclrtMalloc(&memory.start, memory.offer.size, ACL_MEM_MALLOC_HUGE_FIRST));
  }
  bool make_event(Memory& memory) {
    memory.offer.open_to_all = true;
    return expect("aclrtCreateEventExWithFlag",
                  aclrtCreateEventExWithFlag(&memory.event, ACL_EVENT_IPC)) &&
           expect("aclrtIpcGetEventHandle",
                  aclrtIpcGetEventHandle(memory.event, &memory.offer.event)) &&
           expect("aclrtRecordEvent", aclrtRecordEvent(memory.event, nullptr));
  }
  bool map(Memory& memory) {
    return expect("aclrtReserveMemAddress",
                  aclrtReserveMemAddress(&memory.start, memory.offer.size, 0, nullptr, 0)) &&
           expect("aclrtMapMem", aclrtMapMem(memory.start, memory.offer.size, 0, memory.block, 0));
  }

  bool export_memory(Memory& memory) {
    Offer& offer = memory.offer;
    if (offer.kind == Kind::kBlock) {
      if (!expect("aclrtMemExportToShareableHandle",
                  aclrtMemExportToShareableHandle(memory.block, ACL_MEM_HANDLE_TYPE_NONE,
                                                  offer.open_to_all ? 1 : 0, &offer.token))) {
        return false;
      }
    } else if (!expect("aclrtIpcMemGetExportKey",
                       aclrtIpcMemGetExportKey(memory.start, offer.size, offer.key.text.data(),
                                               offer.key.text.size(), offer.open_to_all ? 1 : 0))) {
      return false;
    }
    if (offer.open_to_all) return true;
    std::array<int32_t, kPlaces> ids{};
    for (unsigned i = 0; i < kPlaces; ++i) {
      // Chance leaves some out, who must be refused.
      if (random_() % 4 != 0) offer.listed[i] = board_.places[i].holder.load();
      ids[i] = offer.listed[i].process;
    }
    offer.listed[place_] = self_;
    ids[place_] = self_.process;
    return offer.kind == Kind::kBlock
               ? expect("aclrtMemSetPidToShareableHandle",
                        aclrtMemSetPidToShareableHandle(offer.token, ids.data(), ids.size()))
               : expect("aclrtIpcMemSetImportPid",
                        aclrtIpcMemSetImportPid(offer.key.get(), ids.data(), ids.size()));
  }

  void withdraw(unsigned number) {
    Memory& memory = own_[number];
    if (memory.offer.kind == Kind::kNone) return;
    look_at(memory);
    // Others may try to import it while it goes, or hear of it before.
    const bool tells_first = random_() % 2 == 0;
    if (tells_first) own_place().offers[number].publish({});
    if (memory.offer.kind == Kind::kBlock) {
      free_block(memory);
    } else if (memory.offer.kind == Kind::kEvent) {
      expect("aclrtDestroyEvent", aclrtDestroyEvent(memory.event));
    } else {
      if (random_() % 2 == 0) expect("aclrtIpcMemClose", aclrtIpcMemClose(memory.offer.key.get()));
      expect("aclrtFree", aclrtFree(memory.start));
    }
    if (!tells_first) own_place().offers[number].publish({});
    memory = {};
  }

  void free_block(Memory& memory) {
    const bool handle_first = random_() % 2 == 0;
    if (handle_first) expect("aclrtFreePhysical", aclrtFreePhysical(memory.block));
    expect("aclrtUnmapMem", aclrtUnmapMem(memory.start));
    if (!handle_first) expect("aclrtFreePhysical", aclrtFreePhysical(memory.block));
    expect("aclrtReleaseMemAddress", aclrtReleaseMemAddress(memory.start));
  }

  // ---- What it imports ----

  void import_from(unsigned place) {
    if (held_.size() >= kOffersEach) return give_back(held_.begin());
    if (place == place_) return;
    const std::optional<Offer> seen = board_.places[place].offers[random_() % kOffersEach].read();
    if (!seen || holds(*seen)) return;
    Memory memory{.offer = *seen};
    const bool is_block = seen->kind == Kind::kBlock;
    const aclError code =
        seen->kind == Kind::kEvent ? aclrtIpcOpenEventHandle(seen->event, &memory.event)
        : is_block                 ? aclrtMemImportFromShareableHandle(
                                         seen->token, static_cast<int32_t>(random_() % kDevices), &memory.block)
                   : aclrtIpcMemImportByKey(&memory.start, seen->key.get(), ipc::kPeerImport);
    judge_import(*seen, place, code);
    if (code != ACL_SUCCESS || (is_block && !map(memory))) return;
    look_at(memory);
    if (random_() % 2 == 0 && seen->kind != Kind::kEvent) write(memory);
    held_.push_back(memory);
  }

  // Who is listed gets it, as long as its exporter has neither withdrawn it nor died.
  void judge_import(const Offer& offer, unsigned place, aclError code) {
    const bool may = offer.lists(self_);
    const bool gone =
        place != kAnchor && (code == ACL_ERROR_RT_INVALID_HANDLE || offer.kind == Kind::kEvent ||
                             board_.places[place].is_careless.load());
    (code == ACL_SUCCESS ? board_.imports : board_.refusals).fetch_add(1);
    if (code == (may ? ACL_SUCCESS : ACL_ERROR_RT_NO_PERMISSION) || gone) {
      if (code != ACL_SUCCESS) (void)recent_error();
      return;
    }
    if (own_place().is_careless.load()) return;
    board_.note_failure(
        "process %d at place %u, %s, got %d for an import (kind %u) of place %u: %s", self_.process,
        place_, may ? "listed" : "not listed", code, static_cast<unsigned>(offer.kind), place,
        recent_error().c_str());
  }

  bool holds(const Offer& offer) const {
    return std::any_of(held_.begin(), held_.end(), [&](const Memory& each) {
      return each.offer.seed == offer.seed && each.offer.kind == offer.kind;
    });
  }

  void give_back(std::list<Memory>::iterator which) {
    look_at(*which);
    if (which->offer.kind == Kind::kBlock) {
      free_block(*which);
    } else if (which->offer.kind == Kind::kEvent) {
      expect("aclrtDestroyEvent", aclrtDestroyEvent(which->event));
    } else {
      expect("aclrtIpcMemClose", aclrtIpcMemClose(which->offer.key.get()));
    }
    held_.erase(which);
  }

  // ---- Bytes ----

  // Some at the beginning, some at the end.
  template <typename Body>
  static void for_ends(const Memory& memory, Body body) {
    const size_t piece = std::min<size_t>(memory.offer.size, 8 * kKiB);
    body(size_t{0}, piece);
    if (memory.offer.size > piece) body(memory.offer.size - piece, piece);
  }
  void write(const Memory& memory) {
    for_ends(memory, [&](size_t offset, size_t bytes) {
      const std::vector<uint64_t> words = words_of(memory.offer.seed, offset, bytes);
      expect("aclrtMemcpy into it", aclrtMemcpy(at(memory.start, offset), bytes, words.data(),
                                                bytes, ACL_MEMCPY_HOST_TO_DEVICE));
    });
  }
  void look_at(const Memory& memory) {
    if (memory.offer.kind == Kind::kEvent) return look_at_event(memory);
    for_ends(memory, [&](size_t offset, size_t bytes) {
      std::vector<uint64_t> seen(bytes / sizeof(uint64_t));
      if (!expect("aclrtMemcpy out of it", aclrtMemcpy(seen.data(), bytes, at(memory.start, offset),
                                                       bytes, ACL_MEMCPY_DEVICE_TO_HOST))) {
        return;
      }
      const std::vector<uint64_t> wanted = words_of(memory.offer.seed, offset, bytes);
      if (seen == wanted) return;
      const auto [first, second] = std::mismatch(seen.begin(), seen.end(), wanted.begin());
      board_.note_failure(
          "process %d at place %u sees wrong bytes (kind %u, size %zu) from %zu "
          "on: %016lx, not %016lx",
          self_.process, place_, static_cast<unsigned>(memory.offer.kind), memory.offer.size,
          offset + static_cast<size_t>(first - seen.begin()) * sizeof(uint64_t), *first, *second);
    });
  }
  void look_at_event(const Memory& memory) {
    aclrtEventRecordedStatus status{};
    const aclError code = aclrtQueryEventStatus(memory.event, &status);
    // A process may end before its stream gets to the record.
    const bool is_own = std::any_of(own_.begin(), own_.end(),
                                    [&](const Memory& each) { return each.event == memory.event; });
    if (code != ACL_ERROR_RT_IPC_ERROR || is_own) expect("aclrtQueryEventStatus", code);
  }
  void look_at_everything() {
    for (const Memory& memory : own_) {
      if (memory.offer.kind != Kind::kNone) look_at(memory);
    }
    for (const Memory& memory : held_) look_at(memory);
  }

  Board& board_;
  const unsigned place_;
  const Holder self_;
  std::mt19937 random_;
  int32_t device_ = 0;
  std::array<Memory, kOffersEach> own_;
  std::list<Memory> held_;
};

}  // namespace understudy_test::storm
