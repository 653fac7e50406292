// SPDX-License-Identifier: Apache-2.0
#include "memory/backing_file.h"

#include <algorithm>

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
  for (const CommitState state :
       {CommitState::kSmallPages, CommitState::kCollapsed, CommitState::kPool}) {
    tell(state, -static_cast<int64_t>(count_of(state).load(std::memory_order_relaxed)));
  }
  budget_.give_back(backing().total());
  platform::vacate(alias_);
}

uint64_t BackingFile::alignment() const { return host_mapping_alignment(kind()); }

Result<void> BackingFile::commit(uint64_t offset, uint64_t size) {
  if (is_all_committed(offset, size)) return {};
  // A page of the file is the least that can be committed.
  const uint64_t unit = alignment() / kGranule;
  const uint64_t end = *align_up(end_granule(offset, size), unit);
  CommitWait others(states_);
  for (uint64_t at = align_down(first_granule(offset), unit); at < end;) {
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
    ScopeExit leave_cold([&] { publish(at, run_end, CommitState::kCold); });
    US_TRY_ASSIGN(const CommitState state, obtain_pages(at, run_end));
    leave_cold.dismiss();
    const uint64_t published = publish(at, run_end, state);
    count(state, published);
    // What another process has taken over meanwhile is on its account.
    if (const uint64_t lost = run_end - at - published; lost > 0)
      budget_.give_back(lost * kGranule);
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
  const bool from_pool = kind() != platform::FileKind::kShared;
  const auto source = from_pool ? HostBudget::Source::kPool : HostBudget::Source::kMachine;
  US_TRY(budget_.take(size, source));
  ScopeExit give_back([&] { budget_.give_back(size); });
  ScopeExit settle([&] { budget_.note_committed(size, source); });
  if (options_.numa_node) US_TRY(check_node(*options_.numa_node, size));

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
                   [&](uint64_t granule) { (void)file_.discard(granule * kGranule, kGranule); });
      return allocated.error();
    }
  }
  if (options_.poison == Poison::kOn) {
    change_bytes(first, end, [&](uint64_t granule) {
      fill_bytes(to_pointer(alias(granule * kGranule)), kPoisonByte, kGranule);
    });
  }
  give_back.dismiss();
  return state;
}

// Changes the bytes of claimed granules, but for those that another process has taken over and may
// have written to.
template <typename Change>
void BackingFile::change_bytes(uint64_t first, uint64_t end, Change change) {
  for (uint64_t at = first; at < end; ++at) {
    if (states_.begin_fill(at)) change(at);
  }
}

// Returns how many of the granules were still this process's to publish.
uint64_t BackingFile::publish(uint64_t first, uint64_t end, CommitState state) {
  uint64_t published = 0;
  // Back to front: a waiting thread starts at the front of a page and must find all of it.
  for (uint64_t at = end; at-- > first;) {
    if (states_.settle(at, state)) ++published;
  }
  return published;
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
    while (run_end < limit && is_committed(states_.at(run_end))) ++run_end;
    if (run_end == at) {
      ++at;
      continue;
    }
    if (!file_.discard(at * kGranule, (run_end - at) * kGranule).ok()) return;
    for (; at < run_end; ++at) {
      const CommitState before = states_.at(at);
      if (states_.decommit(at)) discount(before);
    }
  }
}

void BackingFile::count(CommitState state, uint64_t granules) {
  count_of(state).fetch_add(granules, std::memory_order_relaxed);
  tell(state, static_cast<int64_t>(granules));
}

void BackingFile::tell(CommitState state, int64_t granules) const {
  if (options_.figures == nullptr || granules == 0) return;
  auto kind = BackingKind::kHugetlb;
  if (state == CommitState::kSmallPages) kind = BackingKind::kSmallPages;
  if (state == CommitState::kCollapsed) kind = BackingKind::kCollapsed;
  options_.figures->add_backing(kind, granules * static_cast<int64_t>(kGranule));
}

void BackingFile::discount(CommitState state) {
  count_of(state).fetch_sub(1, std::memory_order_relaxed);
  tell(state, -1);
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
  for (uint64_t at = offset; at < offset + size;) {
    const uint64_t next = std::min(align_down(at, kGranule) + kGranule, offset + size);
    if (is_committed_at(at)) fill_bytes(to_pointer(alias(at)), fresh_byte(), next - at);
    at = next;
  }
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
    case CommitState::kPool:
      break;
  }
  return pool_;
}

HostBacking BackingFile::backing() const {
  HostBacking backing;
  backing.small_pages = small_.load(std::memory_order_relaxed) * kGranule;
  backing.collapsed = collapsed_.load(std::memory_order_relaxed) * kGranule;
  const uint64_t pool = pool_.load(std::memory_order_relaxed) * kGranule;
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
    if (is_committed_at(at)) warm += kGranule;
  }
  return warm;
}

}  // namespace understudy
