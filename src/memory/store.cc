// SPDX-License-Identifier: Apache-2.0
#include "memory/store.h"

#include <algorithm>

#include "base/scope_exit.h"
#include "base/size_text.h"
#include "memory/byte_kernels.h"
#include "platform/address_window.h"
#include "platform/host_facts.h"
#include "platform/page_commit.h"
#include "platform/system_number.h"

namespace understudy {

namespace {

// Neighbouring cold granules are warmed together, but others wait for no more than this.
constexpr uint64_t kMaxRun = 64;

uint64_t first_granule(uint64_t offset) { return offset >> kGranuleShift; }
uint64_t end_granule(uint64_t offset, uint64_t size) {
  return (offset + size + kGranule - 1) >> kGranuleShift;
}

// Memory bound to a full node would end in the kernel's hands, however much other nodes have.
Result<void> check_node(unsigned node, uint64_t size) {
  constexpr uint64_t kReserve = 64 * kMiB;
  const uint64_t available = platform::available_memory_on_node(node);
  if (available >= kReserve && available - kReserve >= size) return {};
  return Error::format(ErrorCode::kOutOfMemory, "NUMA node %u has no %s to spare", node,
                       SizeText(size).c_str());
}

uint64_t window_alignment(platform::FileKind kind) {
  return kind == platform::FileKind::kHugetlb1G ? kGiantPage : kHugePage;
}

}  // namespace

Result<std::unique_ptr<Store>> Store::create(const StoreOptions& options, uint64_t size,
                                             HostBudget& budget) {
  US_TRY_ASSIGN(platform::MemoryFile file,
                platform::MemoryFile::create(options.kind, options.name, size));
  US_TRY_ASSIGN(GranuleStates states,
                GranuleStates::make(options.name, size / kGranule, options.ledger));
  US_TRY_ASSIGN(const VirtualRange alias,
                platform::map_whole_file(file, window_alignment(options.kind)));
  ScopeExit undo([&] { platform::vacate(alias); });
  if (options.numa_node) US_TRY(platform::bind_to_numa_node(alias, *options.numa_node));
  std::unique_ptr<Store> store(
      new Store(options, std::move(file), std::move(states), alias, budget));
  undo.dismiss();
  return store;
}

Result<std::unique_ptr<Store>> Store::attach(const StoreOptions& options, platform::MemoryFile file,
                                             platform::MemoryFile states_file, HostBudget& budget) {
  const uint64_t size = file.size();
  US_TRY_ASSIGN(GranuleStates states,
                GranuleStates::attach(std::move(states_file), size / kGranule, options.ledger));
  US_TRY_ASSIGN(const VirtualRange alias,
                platform::occupy_anywhere(size, window_alignment(options.kind)));
  return std::unique_ptr<Store>(
      new Store(options, std::move(file), std::move(states), alias, budget));
}

Store::Store(const StoreOptions& options, platform::MemoryFile file, GranuleStates states,
             VirtualRange alias, HostBudget& budget)
    : options_(options),
      file_(std::move(file)),
      alias_(alias),
      budget_(budget),
      states_(std::move(states)),
      collapse_works_(options.collapse) {}

Store::~Store() {
  budget_.give_back(backing().total());
  platform::vacate(alias_);
}

uint64_t Store::alignment() const { return window_alignment(kind()); }

Result<void> Store::warm(uint64_t offset, uint64_t size) {
  if (is_all_warm(offset, size)) return {};
  // A page of the file is the least that can be committed.
  const uint64_t unit = alignment() / kGranule;
  const uint64_t end = *align_up(end_granule(offset, size), unit);
  for (uint64_t at = align_down(first_granule(offset), unit); at < end;) {
    if (is_warm(states_.at(at))) {
      ++at;
      continue;
    }
    const uint64_t run_end = claim_run(at, end);
    if (run_end == at) {
      states_.wait(at);
      continue;
    }
    const Result<GranuleState> result = commit(at, run_end);
    publish(at, run_end, result.ok() ? result.value() : GranuleState::kCold);
    if (!result.ok()) return result.error();
    at = run_end;
  }
  return {};
}

// Turns cold granules from `first` on to warming, and returns where that ended.
uint64_t Store::claim_run(uint64_t first, uint64_t end) {
  // The granules of a giant page are committed together, so they are claimed together: whoever has
  // the first one gets the others, since nobody starts in their middle.
  const uint64_t unit = alignment() / kGranule;
  const uint64_t limit = std::min(end, first + std::max(kMaxRun, unit));
  uint64_t at = first;
  while (at < limit && states_.claim(at)) ++at;
  return at;
}

Result<GranuleState> Store::commit(uint64_t first, uint64_t end) {
  const uint64_t offset = first * kGranule;
  const uint64_t size = (end - first) * kGranule;
  const bool from_pool = kind() != platform::FileKind::kShared;
  const auto source = from_pool ? HostBudget::Source::kPool : HostBudget::Source::kMachine;
  US_TRY(budget_.take(size, source));
  ScopeExit give_back([&] { budget_.give_back(size); });
  ScopeExit settle([&] { budget_.note_committed(size, source); });
  if (options_.numa_node) US_TRY(check_node(*options_.numa_node, size));

  GranuleState state = from_pool ? GranuleState::kPool : GranuleState::kSmallPages;
  if (!from_pool && collapse_works_.load(std::memory_order_relaxed)) {
    const Result<void> collapsed = platform::commit_collapsed({alias(offset), size});
    if (collapsed.ok()) {
      state = GranuleState::kCollapsed;
    } else if (platform::means_impossible(collapsed.error())) {
      // This kernel or this process never gets them; asking again would only waste time.
      collapse_works_.store(false, std::memory_order_relaxed);
    }
  }
  if (state != GranuleState::kCollapsed) {
    if (Result<void> allocated = file_.allocate(offset, size); !allocated.ok()) {
      (void)file_.discard(offset, size);
      return allocated.error();
    }
  }
  if (options_.poison == Poison::kOn) {
    fill_bytes(to_pointer(alias(offset)), kPoisonByte, size);
  }
  give_back.dismiss();
  return state;
}

void Store::publish(uint64_t first, uint64_t end, GranuleState state) {
  if (is_warm(state)) count_of(state).fetch_add(end - first, std::memory_order_relaxed);
  // Back to front: whoever waits starts at the front of a page and must find all of it.
  for (uint64_t at = end; at-- > first;) states_.settle(at, state);
}

Result<void> Store::set_aside(uint64_t offset, uint64_t size) {
  if (kind() == platform::FileKind::kShared || warm_bytes_in(offset, size) == size) return {};
  return file_.set_aside(offset, size);
}

void Store::chill(uint64_t offset, uint64_t size) {
  const uint64_t end = end_granule(offset, size);
  for (uint64_t at = first_granule(offset); at < end;) {
    uint64_t run_end = at;
    while (run_end < end && is_warm(states_.at(run_end))) ++run_end;
    if (run_end == at) {
      ++at;
      continue;
    }
    if (!file_.discard(at * kGranule, (run_end - at) * kGranule).ok()) return;
    for (; at < run_end; ++at) {
      const GranuleState before = states_.at(at);
      if (states_.chill(at)) discount(before);
    }
  }
}

void Store::discount(GranuleState state) {
  count_of(state).fetch_sub(1, std::memory_order_relaxed);
  budget_.give_back(kGranule);
}

Result<void> Store::show(uint64_t offset, uint64_t size) {
  return platform::place_file({alias(offset), size}, file_, offset,
                              platform::CpuAccess::kReadWrite);
}

void Store::hide(uint64_t offset, uint64_t size) {
  for (uint64_t at = first_granule(offset); at < end_granule(offset, size); ++at) {
    const GranuleState state = states_.at(at);
    if (states_.disown(at)) discount(state);
  }
  // Where map entries run out it stays visible, to no harm but for this process's own mistakes.
  (void)platform::cover({alias(offset), size});
}

void Store::refresh(uint64_t offset, uint64_t size) {
  for (uint64_t at = offset; at < offset + size;) {
    const uint64_t next = std::min(align_down(at, kGranule) + kGranule, offset + size);
    if (is_warm_at(at)) fill_bytes(to_pointer(alias(at)), fresh_byte(), next - at);
    at = next;
  }
}

std::atomic<uint64_t>& Store::count_of(GranuleState state) {
  switch (state) {
    case GranuleState::kSmallPages:
      return small_;
    case GranuleState::kCollapsed:
      return collapsed_;
    case GranuleState::kCold:
    case GranuleState::kWarming:
    case GranuleState::kPool:
      break;
  }
  return pool_;
}

HostBacking Store::backing() const {
  HostBacking backing;
  backing.small_pages = small_.load(std::memory_order_relaxed) * kGranule;
  backing.collapsed = collapsed_.load(std::memory_order_relaxed) * kGranule;
  const uint64_t pool = pool_.load(std::memory_order_relaxed) * kGranule;
  (kind() == platform::FileKind::kHugetlb1G ? backing.pool_1g : backing.pool_2m) = pool;
  return backing;
}

bool Store::is_all_warm(uint64_t offset, uint64_t size) const {
  const uint64_t end = end_granule(offset, size);
  for (uint64_t at = first_granule(offset); at < end; ++at) {
    if (!is_warm(states_.at(at))) return false;
  }
  return true;
}

uint64_t Store::warm_bytes_in(uint64_t offset, uint64_t size) const {
  uint64_t warm = 0;
  for (uint64_t at = offset; at < offset + size; at += kGranule) {
    if (is_warm_at(at)) warm += kGranule;
  }
  return warm;
}

}  // namespace understudy
