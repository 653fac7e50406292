// SPDX-License-Identifier: Apache-2.0
#include "memory/backing_file.h"

#include <algorithm>
#include <bit>

#include "base/scope_exit.h"
#include "base/size_text.h"
#include "memory/byte_kernels.h"
#include "platform/address_window.h"
#include "platform/host_facts.h"
#include "platform/log.h"
#include "platform/page_commit.h"
#include "platform/system_number.h"

namespace understudy {

namespace {

// Neighbouring cold granules are committed together, but others wait for no more than this.
constexpr uint64_t kMaxRun = 64;

// The same for granules that go back to the host: meanwhile the kernel lets no other thread get
// pages of the file.
constexpr uint64_t kMaxDiscard = 2;

// So many parts have host memory at most before all of the granule gets it, and so often are they
// used: then the granule is worth its 2 MiB.
constexpr int kMostParts = kPartsPerGranule / 4;
constexpr uint32_t kMostUses = 64;

uint64_t first_granule(uint64_t offset) { return offset >> kGranuleShift; }
uint64_t end_granule(uint64_t offset, uint64_t size) {
  return (offset + size + kGranule - 1) >> kGranuleShift;
}

uint64_t bytes_of(GranuleParts parts) {
  return static_cast<uint64_t>(std::popcount(parts)) * kPartBytes;
}

// Calls act(first, count) for each run of neighbouring parts.
template <typename Act>
void for_each_run(GranuleParts parts, Act act) {
  for (unsigned first = 0; parts != 0;) {
    const auto skip = static_cast<unsigned>(std::countr_zero(parts));
    parts >>= skip;
    first += skip;
    const auto count = static_cast<unsigned>(std::countr_one(parts));
    act(first, count);
    if (count == kPartsPerGranule) return;
    parts >>= count;
    first += count;
  }
}

// The parts that a range within a granule touches.
GranuleParts parts_of(uint64_t offset, uint64_t size) {
  const uint64_t first = offset % kGranule / kPartBytes;
  const uint64_t last = (offset + size - 1) % kGranule / kPartBytes;
  return kAllParts >> (kPartsPerGranule - 1 - last) & kAllParts << first;
}

// Memory bound to a full node would end in the kernel's hands, however much other nodes have.
Result<void> check_node(unsigned node, uint64_t size) {
  constexpr uint64_t kReserve = 64 * kMiB;
  const uint64_t available = platform::available_memory_on_node(node);
  if (available >= kReserve && available - kReserve >= size) return {};
  return Error::format(ErrorCode::kOutOfMemory, "NUMA node %u has no %s to spare", node,
                       SizeText(size).c_str());
}

uint64_t host_mapping_alignment(platform::FileKind kind) {
  return kind == platform::FileKind::kHugetlb1G ? kGiantPage : kHugePage;
}

}  // namespace

Result<std::unique_ptr<BackingFile>> BackingFile::create(const BackingFileOptions& options,
                                                         uint64_t size, HostBudget& budget) {
  US_TRY_ASSIGN(platform::MemoryFile file,
                platform::MemoryFile::create(options.kind, options.name, size));
  US_TRY_ASSIGN(CommitStates states,
                CommitStates::make(options.name, size / kGranule, options.slots));
  US_TRY_ASSIGN(const VirtualRange alias,
                platform::map_whole_file(file, host_mapping_alignment(options.kind)));
  ScopeExit undo([&] { platform::vacate(alias); });
  if (options.numa_node) US_TRY(platform::bind_to_numa_node(alias, *options.numa_node));
  std::unique_ptr<BackingFile> backing(
      new BackingFile(options, std::move(file), std::move(states), alias, budget));
  undo.dismiss();
  if (options.kind == platform::FileKind::kShared) backing->own_parts_.emplace(size / kGranule);
  return backing;
}

Result<std::unique_ptr<BackingFile>> BackingFile::attach(const BackingFileOptions& options,
                                                         platform::MemoryFile file,
                                                         platform::MemoryFile states_file,
                                                         HostBudget& budget) {
  const uint64_t size = file.size();
  US_TRY_ASSIGN(CommitStates states,
                CommitStates::attach(std::move(states_file), size / kGranule, options.slots));
  US_TRY_ASSIGN(const VirtualRange alias,
                platform::occupy_anywhere(size, host_mapping_alignment(options.kind)));
  return std::unique_ptr<BackingFile>(
      new BackingFile(options, std::move(file), std::move(states), alias, budget));
}

BackingFile::BackingFile(const BackingFileOptions& options, platform::MemoryFile file,
                         CommitStates states, VirtualRange alias, HostBudget& budget)
    : options_(options),
      file_(std::move(file)),
      alias_(alias),
      budget_(budget),
      states_(std::move(states)),
      collapse_works_(options.collapse) {}

BackingFile::~BackingFile() {
  budget_.give_back(backing().total());
  for (const CommitState state :
       {CommitState::kSmallPages, CommitState::kCollapsed, CommitState::kPool}) {
    count(state, -static_cast<int64_t>(count_of(state).load(std::memory_order_relaxed)));
  }
  platform::vacate(alias_);
}

uint64_t BackingFile::alignment() const { return host_mapping_alignment(kind()); }

Result<void> BackingFile::commit(uint64_t offset, uint64_t size) {
  if (is_all_committed(offset, size)) return {};
  const uint64_t first = first_granule(offset);
  if (const GranuleParts asked = few_parts_of(offset, size); asked != 0) {
    if (is_worth_all(first, asked)) {
      Result<void> all = commit_granules(first, first + 1);
      if (all.ok() || has_parts(first, asked)) return {};
      // Where the host has no memory for all of it, it may have some for what is asked. Another
      // process is not waited for twice.
      if (all.error().code() != ErrorCode::kOutOfMemory) return all;
    }
    return commit_parts(first, asked);
  }
  // A page of the file is the least that can be committed.
  const uint64_t unit = alignment() / kGranule;
  return commit_granules(align_down(first, unit), *align_up(end_granule(offset, size), unit));
}

// The parts that a range touches, where they may be committed by themselves; else 0.
GranuleParts BackingFile::few_parts_of(uint64_t offset, uint64_t size) const {
  if (!own_parts_ || size == 0 || end_granule(offset, size) != first_granule(offset) + 1) return 0;
  const GranuleParts parts = parts_of(offset, size);
  return std::popcount(parts) <= kMostParts ? parts : 0;
}

void BackingFile::note_read(uint64_t offset) {
  const uint64_t granule = first_granule(offset);
  if (own_parts_ && is_used_often(granule)) (void)commit_granules(granule, granule + 1);
}

// Who uses parts has to ask for them each time. Not while another process or thread is at the
// granule: who has what is needed waits for no one.
bool BackingFile::is_used_often(uint64_t granule) {
  if (states_.at(granule) != CommitState::kPartial) return false;
  std::atomic<uint32_t>& uses = (*own_parts_)[granule].uses;
  return uses.fetch_add(1, std::memory_order_relaxed) % kMostUses == kMostUses - 1;
}

bool BackingFile::is_worth_all(uint64_t granule, GranuleParts asked) {
  const GranuleParts known = states_.parts(granule);
  if (std::popcount(asked | known) > kMostParts) return true;
  return (asked & ~known) == 0 && is_used_often(granule);
}

Result<void> BackingFile::commit_parts(uint64_t granule, GranuleParts parts) {
  CommitWait others(states_);
  while (!has_parts(granule, parts)) {
    if (claim_run(granule, granule + 1, others.stalled()) == granule) {
      US_TRY(others.wait(granule));
      continue;
    }
    // Also where there is no memory to find out how much there is, and where another process has
    // taken the granule over: then it is that one's, and waited for.
    const ScopeExit end([&] { leave(granule, granule + 1); });
    US_TRY(obtain_parts(granule, parts & ~states_.parts(granule)));
  }
  return {};
}

// For a granule that is claimed.
Result<void> BackingFile::obtain_parts(uint64_t granule, GranuleParts parts) {
  constexpr auto kSource = HostBudget::Source::kMachine;
  const uint64_t size = bytes_of(parts);
  US_TRY(budget_.take(size, kSource));
  ScopeExit give_back([&] { budget_.give_back(size); });
  const ScopeExit settle([&] { budget_.note_committed(size, kSource); });
  if (options_.numa_node) US_TRY(check_node(*options_.numa_node, size));

  const uint64_t start = granule * kGranule;
  Result<void> allocated;
  for_each_run(parts, [&](unsigned first, unsigned count) {
    if (!allocated.ok()) return;
    const uint64_t offset = start + first * kPartBytes;
    allocated = platform::commit_small({alias(offset), count * kPartBytes});
    if (!allocated.ok() && platform::means_impossible(allocated.error())) {
      allocated = file_.allocate(offset, count * kPartBytes);
    }
  });
  if (!states_.begin_fill(granule)) return {};
  for_each_run(parts, [&](unsigned first, unsigned count) {
    const uint64_t offset = start + first * kPartBytes;
    if (!allocated.ok()) {
      (void)file_.discard(offset, count * kPartBytes);
    } else if (options_.poison == Poison::kOn) {
      fill_bytes(to_pointer(alias(offset)), kPoisonByte, count * kPartBytes);
    }
  });
  US_TRY(allocated);
  states_.add_parts(granule, parts);
  (*own_parts_)[granule].parts.fetch_or(parts, std::memory_order_relaxed);
  count(CommitState::kSmallPages, static_cast<int64_t>(size));
  give_back.dismiss();
  return {};
}

Result<void> BackingFile::commit_granules(uint64_t first, uint64_t end) {
  CommitWait others(states_);
  for (uint64_t at = first; at < end;) {
    if (is_committed(states_.at(at))) {
      ++at;
      continue;
    }
    const uint64_t run_end = claim_run(at, end, others.stalled());
    if (run_end == at) {
      US_TRY(others.wait(at));
      continue;
    }
    // Also where there is no memory to find out how much there is.
    ScopeExit leave_as_it_was([&] { leave(at, run_end); });
    US_TRY_ASSIGN(const CommitState state, obtain_pages(at, run_end));
    leave_as_it_was.dismiss();
    publish(at, run_end, state);
    at = run_end;
  }
  return {};
}

// Turns cold granules from `first` on to committing, and those that a stalled process was at.
// Returns where that ended.
uint64_t BackingFile::claim_run(uint64_t first, uint64_t end,
                                std::optional<ShortProcessTag> stalled) {
  // The granules of a giant page are committed together, so they are claimed together: the thread
  // that has the first one gets the others, since no thread starts in their middle.
  const uint64_t unit = alignment() / kGranule;
  const uint64_t limit = std::min(end, first + std::max(kMaxRun, unit));
  uint64_t at = first;
  while (at < limit && (states_.claim(at) || (stalled && states_.take_over(at, *stalled)))) {
    ++at;
  }
  return at;
}

Result<CommitState> BackingFile::obtain_pages(uint64_t first, uint64_t end) {
  const uint64_t offset = first * kGranule;
  const uint64_t size = (end - first) * kGranule;
  const uint64_t missing = size - own_part_bytes(first, end);
  const bool from_pool = kind() != platform::FileKind::kShared;
  const auto source = from_pool ? HostBudget::Source::kPool : HostBudget::Source::kMachine;
  US_TRY(budget_.take(missing, source));
  ScopeExit give_back([&] { budget_.give_back(missing); });
  ScopeExit settle([&] { budget_.note_committed(missing, source); });
  if (options_.numa_node) US_TRY(check_node(*options_.numa_node, missing));

  CommitState state = from_pool ? CommitState::kPool : CommitState::kSmallPages;
  if (!from_pool && collapse_works_.load(std::memory_order_relaxed)) {
    const Result<void> collapsed = platform::commit_collapsed({alias(offset), size});
    if (collapsed.ok()) {
      state = CommitState::kCollapsed;
    } else if (platform::means_impossible(collapsed.error())) {
      // This kernel or this process never gets them; asking again would only waste time.
      if (collapse_works_.exchange(false, std::memory_order_relaxed)) {
        platform::log_note("%s; 4 KiB pages are used", collapsed.error().text());
      }
    }
  }
  if (state != CommitState::kCollapsed) {
    if (Result<void> allocated = file_.allocate(offset, size); !allocated.ok()) {
      change_bytes(first, end,
                   [&](uint64_t at, uint64_t bytes) { (void)file_.discard(at, bytes); });
      return allocated.error();
    }
  }
  if (options_.poison == Poison::kOn) {
    change_bytes(first, end, [&](uint64_t at, uint64_t bytes) {
      fill_bytes(to_pointer(alias(at)), kPoisonByte, bytes);
    });
  }
  give_back.dismiss();
  return state;
}

// Changes the bytes of claimed granules, but for those of parts that had host memory before, and
// for granules that another process has taken over and may have written to.
template <typename Change>
void BackingFile::change_bytes(uint64_t first, uint64_t end, Change change) {
  for (uint64_t at = first; at < end; ++at) {
    if (!states_.begin_fill(at)) continue;
    for_each_run(~states_.parts(at), [&](unsigned part, unsigned count) {
      change(at * kGranule + part * kPartBytes, count * kPartBytes);
    });
  }
}

// Claimed granules are as they were, but for parts that were added.
void BackingFile::leave(uint64_t first, uint64_t end) {
  for (uint64_t at = end; at-- > first;) {
    states_.settle(at, states_.parts(at) != 0 ? CommitState::kPartial : CommitState::kCold);
  }
}

void BackingFile::publish(uint64_t first, uint64_t end, CommitState state) {
  // Back to front: a waiting thread starts at the front of a page and must find all of it.
  for (uint64_t at = end; at-- > first;) {
    const uint64_t missing = kGranule - own_part_bytes(at, at + 1);
    if (!states_.settle(at, state)) {
      // What another process has taken over meanwhile is on its account.
      budget_.give_back(missing);
      continue;
    }
    discount_parts(at);
    count(state, kGranule);
  }
}

uint64_t BackingFile::own_part_bytes(uint64_t first, uint64_t end) const {
  uint64_t bytes = 0;
  for (uint64_t at = first; own_parts_ && at < end; ++at) {
    bytes += bytes_of((*own_parts_)[at].parts.load(std::memory_order_relaxed));
  }
  return bytes;
}

uint64_t BackingFile::discount_parts(uint64_t granule) {
  if (!own_parts_) return 0;
  OwnParts& own = (*own_parts_)[granule];
  // Most granules never had parts, and an entry costs memory once it is written.
  if (own.parts.load(std::memory_order_relaxed) == 0) return 0;
  own.uses.store(0, std::memory_order_relaxed);
  const uint64_t bytes = bytes_of(own.parts.exchange(0, std::memory_order_relaxed));
  count(CommitState::kSmallPages, -static_cast<int64_t>(bytes));
  return bytes;
}

Result<void> BackingFile::set_aside(uint64_t offset, uint64_t size) {
  if (kind() == platform::FileKind::kShared || committed_bytes_in(offset, size) == size) return {};
  return file_.set_aside(offset, size);
}

void BackingFile::decommit(uint64_t offset, uint64_t size) {
  const uint64_t portion = std::max(kMaxDiscard, alignment() / kGranule);
  const uint64_t end = end_granule(offset, size);
  for (uint64_t at = first_granule(offset); at < end;) {
    const uint64_t limit = std::min(end, at + portion);
    uint64_t run_end = at;
    while (run_end < limit && !is_cold(run_end)) ++run_end;
    if (run_end == at) {
      ++at;
      continue;
    }
    if (!file_.discard(at * kGranule, (run_end - at) * kGranule).ok()) return;
    for (; at < run_end; ++at) {
      const CommitState before = states_.at(at);
      if (states_.decommit(at)) discount(before);
      budget_.give_back(discount_parts(at));
    }
  }
}

uint64_t BackingFile::decommit_partial(uint64_t offset, uint64_t size) {
  uint64_t bytes = 0;
  for (uint64_t at = offset; at < offset + size; at += kGranule) {
    const CommitState state = state_at(at);
    if (state == CommitState::kCold || is_committed(state)) continue;
    const uint64_t before = committed_bytes_in(at, kGranule);
    decommit(at, kGranule);
    bytes += before - committed_bytes_in(at, kGranule);
  }
  return bytes;
}

void BackingFile::count(CommitState state, int64_t bytes) {
  if (bytes == 0) return;
  count_of(state).fetch_add(static_cast<uint64_t>(bytes), std::memory_order_relaxed);
  if (options_.figures == nullptr) return;
  auto kind = BackingKind::kHugetlb;
  if (state == CommitState::kSmallPages) kind = BackingKind::kSmallPages;
  if (state == CommitState::kCollapsed) kind = BackingKind::kCollapsed;
  options_.figures->add_backing(kind, bytes);
}

void BackingFile::discount(CommitState state) {
  count(state, -static_cast<int64_t>(kGranule));
  budget_.give_back(kGranule);
}

Result<void> BackingFile::show(uint64_t offset, uint64_t size) {
  return platform::place_file({alias(offset), size}, file_, offset,
                              platform::CpuAccess::kReadWrite);
}

void BackingFile::hide(uint64_t offset, uint64_t size) {
  for (uint64_t at = first_granule(offset); at < end_granule(offset, size); ++at) {
    const CommitState state = states_.at(at);
    if (states_.disown(at)) discount(state);
  }
  // Where map entries run out it stays visible, to no harm but for this process's own mistakes.
  (void)platform::cover({alias(offset), size});
}

void BackingFile::refill(uint64_t offset, uint64_t size) {
  for (uint64_t done = 0; done < size;) {
    const Run run = run_at(offset + done, size - done);
    if (run.is_committed) fill_bytes(to_pointer(alias(offset + done)), fresh_byte(), run.size);
    done += run.size;
  }
}

// To where that may change.
BackingFile::Run BackingFile::run_in_granule(uint64_t offset) const {
  const uint64_t to_granule_end = kGranule - offset % kGranule;
  if (is_committed_at(offset)) return {to_granule_end, true};
  const GranuleParts parts = states_.parts(first_granule(offset));
  if (parts == 0) return {to_granule_end, false};
  const bool is_there = (parts & parts_of(offset, 1)) != 0;
  return {kPartBytes - offset % kPartBytes, is_there};
}

BackingFile::Run BackingFile::run_at(uint64_t offset, uint64_t limit) const {
  Run run = run_in_granule(offset);
  while (run.size < limit) {
    const Run next = run_in_granule(offset + run.size);
    if (next.is_committed != run.is_committed) return run;
    run.size += next.size;
  }
  return {limit, run.is_committed};
}

std::atomic<uint64_t>& BackingFile::count_of(CommitState state) {
  switch (state) {
    case CommitState::kSmallPages:
      return small_;
    case CommitState::kCollapsed:
      return collapsed_;
    case CommitState::kCold:
    case CommitState::kCommitting:
    case CommitState::kFilling:
    case CommitState::kPartial:
    case CommitState::kPool:
      break;
  }
  return pool_;
}

HostBacking BackingFile::backing() const {
  HostBacking backing;
  backing.small_pages = small_.load(std::memory_order_relaxed);
  backing.collapsed = collapsed_.load(std::memory_order_relaxed);
  const uint64_t pool = pool_.load(std::memory_order_relaxed);
  (kind() == platform::FileKind::kHugetlb1G ? backing.pool_1g : backing.pool_2m) = pool;
  return backing;
}

bool BackingFile::is_all_committed(uint64_t offset, uint64_t size) const {
  const uint64_t end = end_granule(offset, size);
  for (uint64_t at = first_granule(offset); at < end; ++at) {
    if (!is_committed(states_.at(at))) return false;
  }
  return true;
}

uint64_t BackingFile::committed_bytes_in(uint64_t offset, uint64_t size) const {
  uint64_t warm = 0;
  for (uint64_t at = offset; at < offset + size; at += kGranule) {
    warm += is_committed_at(at) ? kGranule : bytes_of(states_.parts(first_granule(at)));
  }
  return warm;
}

}  // namespace understudy
