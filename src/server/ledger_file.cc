// SPDX-License-Identifier: Apache-2.0
#include "server/ledger_file.h"

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>

#include "platform/fork_sentinel.h"
#include "platform/random_bytes.h"
#include "server/pool_word.h"
#include "server/slot_sockets.h"

namespace understudy {

namespace {

uint64_t check_of(const LedgerHeader& header) {
  // FNV-1a: a torn or foreign header has another one.
  uint64_t hash = 0xcbf29ce484222325;
  const auto* bytes = reinterpret_cast<const unsigned char*>(&header);
  for (size_t i = 0; i < offsetof(LedgerHeader, check); ++i) {
    hash = (hash ^ bytes[i]) * 0x100000001b3;
  }
  return hash;
}

}  // namespace

HeaderKind kind_of(const LedgerHeader& header) {
  if (header.magic != kLedgerMagic) return HeaderKind::kForeign;
  if (header.version != kLedgerVersion) return HeaderKind::kOtherVersion;
  const bool is_whole =
      header.header_bytes == sizeof(LedgerHeader) && header.check == check_of(header);
  return is_whole ? HeaderKind::kOwnVersion : HeaderKind::kForeign;
}

Result<platform::UnsharedFd> LedgerFile::open_in(const platform::PrivateDirectory& directory) {
  return directory.open_file("ledger");
}

Result<LedgerFile> LedgerFile::open(platform::PrivateDirectory directory) {
  US_TRY_ASSIGN(platform::UnsharedFd file, open_in(directory));
  US_TRY_ASSIGN(platform::SharedMapping mapping,
                platform::SharedMapping::of_file(file.get(), kLedgerBytes));
  return LedgerFile(std::move(directory), std::move(file), std::move(mapping));
}

Result<LedgerFile> LedgerFile::make_private() {
  US_TRY_ASSIGN(platform::SharedMapping mapping,
                platform::SharedMapping::without_file(kLedgerBytes));
  return LedgerFile(std::move(mapping));
}

LedgerFile::LedgerFile(platform::PrivateDirectory directory, platform::UnsharedFd file,
                       platform::SharedMapping mapping)
    : directory_(std::move(directory)),
      identity_(platform::identity_of_file(file.get())),
      mapping_(std::move(mapping)),
      descriptor_(std::move(file).release()) {}

LedgerFile::LedgerFile(LedgerFile&& other) noexcept
    : directory_(std::move(other.directory_)),
      identity_(other.identity_),
      mapping_(std::move(other.mapping_)),
      descriptor_(other.descriptor_.exchange(-1)) {}

LedgerFile::~LedgerFile() {
  const int last = descriptor_.load();
  if (last < 0) return;
  // One that the program closed is the program's.
  const bool is_ours = platform::identity_of_file(last) == identity_;
  platform::forget_for_fork_child(last);
  if (is_ours) const platform::UniqueFd closed(last);
}

std::string LedgerFile::path() const { return directory_ ? directory_->path() + "/ledger" : ""; }

int LedgerFile::descriptor() const {
  const int known = descriptor_.load();
  if (!directory_ || platform::identity_of_file(known) == identity_) return known;
  return reopen(known);
}

// By its path: the descriptor of the directory went the same way.
int LedgerFile::reopen(int lost) const {
  const Result<platform::PrivateDirectory> directory =
      platform::PrivateDirectory::open_or_make(directory_->path());
  if (!directory.ok()) return -1;
  Result<platform::UnsharedFd> file = open_in(directory.value());
  if (!file.ok() || platform::identity_of_file(file.value().get()) != identity_) return -1;
  if (descriptor_.compare_exchange_strong(lost, file.value().get())) {
    return std::move(file.value()).release();
  }
  return lost;  // another thread was faster
}

uint64_t LedgerFile::size() const {
  return directory_ ? platform::file_size(descriptor()) : mapping_.size();
}

bool LedgerFile::is_valid() const {
  const uint64_t size = this->size();
  if (size < sizeof(LedgerHeader)) return false;
  const LedgerHeader& header = this->header();
  if (kind_of(header) != HeaderKind::kOwnVersion) return false;
  const uint64_t slots = header.slots.load();
  return slots <= kProcessSlots && (slots == 0 || size >= kFiguresOffset);
}

Result<void> LedgerFile::begin(const ServerShape& shape) {
  if (directory_) {
    remove_slot_sockets(*directory_);
    US_TRY(platform::clear_file(descriptor()));
    US_TRY(back(0, kSlotsOffset));
  }
  auto* const header = new (mapping_.data()) LedgerHeader{};
  header->version = kLedgerVersion;
  header->header_bytes = sizeof(LedgerHeader);
  // Before what takes time: what a killed process leaves is known as a ledger by it. Nothing reads
  // a header without its check.
  header->magic = kLedgerMagic;
  header->shape = shape;
  for (unsigned pool = 0; pool < kPools; ++pool) {
    header->usable_pages[pool] = shape.usable_pages(pool);
  }
  header->usable_pages[kPools] = std::min(shape.host_window / kNormalPage, PoolWord::kMostUsed);
  header->server = {platform::random_number(), platform::random_number()};
  header->check = check_of(*header);
  return {};
}

Result<void> LedgerFile::back(uint64_t offset, uint64_t size) {
  if (!directory_) return {};
  return platform::back_file(descriptor(), offset, size);
}

Result<void> LedgerFile::back_slot(unsigned slot) {
  const auto back_uses = [&](unsigned first, unsigned count) {
    constexpr uint64_t kBytes = UseGroup::kSlots * sizeof(DeviceUse);
    const uint64_t group = kUsesOffset + slot / UseGroup::kSlots * sizeof(UseGroup);
    return back(group + first * kBytes, count * kBytes);
  };
  US_TRY(back(kSlotsOffset + slot * sizeof(ProcessSlot), sizeof(ProcessSlot)));
  US_TRY(back_uses(0, header().shape.devices));
  US_TRY(back_uses(kHostWindow, 1));
  return back(kFiguresOffset + slot * sizeof(ProcessFigures), sizeof(ProcessFigures));
}

bool LedgerFile::is_locked(uint64_t byte, uint64_t count) const {
  if (!directory_) return false;
  // A lock so far behind the end is one of the ledger's. Anything else may be the answer of another
  // file that has the number by now.
  const platform::ByteLockState seen = platform::byte_lock_state(descriptor_.load(), byte, count);
  return seen == platform::ByteLockState::kLocked ||
         platform::is_locked_by_other(descriptor(), byte, count);
}

std::optional<LedgerFile::ByteGuard> LedgerFile::lock(uint64_t byte, Deadline deadline) const {
  if (directory_ && !platform::lock_byte(descriptor(), byte, deadline)) return std::nullopt;
  return ByteGuard(*this, byte);
}

LedgerFile::ByteGuard::~ByteGuard() {
  if (file_ != nullptr && file_->directory_) platform::unlock_byte(file_->descriptor(), byte_);
}

Result<std::optional<platform::LifeLock>> LedgerFile::take_for_life(uint64_t byte) const {
  if (!directory_) return std::optional<platform::LifeLock>(std::in_place);
  US_TRY_ASSIGN(const platform::UnsharedFd own_opening, open_in(*directory_));
  return platform::LifeLock::try_take(own_opening, byte);
}

}  // namespace understudy
