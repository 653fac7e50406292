// SPDX-License-Identifier: Apache-2.0
#include "sharing/remote_backing_files.h"

#include <algorithm>

namespace understudy {

RemoteBackingFiles::Attached* RemoteBackingFiles::find_locked(const BackingFileName& name) {
  for (Attached& each : files_) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

bool RemoteBackingFiles::has_any(ProcessTag owner) const {
  MutexLock lock(mutex_);
  return std::any_of(files_.begin(), files_.end(),
                     [&](const Attached& each) { return each.name.owner == owner; });
}

RemoteBackingFiles::Use RemoteBackingFiles::use(const BackingFileName& name) {
  MutexLock lock(mutex_);
  Attached* const attached = find_locked(name);
  if (attached == nullptr) return {};
  ++attached->uses;
  return {*this, *attached};
}

Result<RemoteBackingFiles::Use> RemoteBackingFiles::attach(const BackingFileName& name,
                                                           OpenedBackingFile files) {
  MutexLock lock(mutex_);
  Attached* attached = find_locked(name);
  if (attached == nullptr) {
    const BackingFileOptions options{
        .kind = static_cast<platform::FileKind>(files.record.file_kind),
        .name = "understudy-import",
        .collapse = true,
        .poison = files.record.fresh_byte == 0 ? Poison::kOff : Poison::kOn,
        .numa_node = std::nullopt,
        .slots = &server_.slots(),
        .figures = &server_.figures()};
    US_TRY_ASSIGN(
        std::unique_ptr<BackingFile> backing,
        BackingFile::attach(options, std::move(files.file), std::move(files.states), budget_));
    attached = &files_.emplace_back(Attached{name, std::move(backing), 0, {}});
  }
  ++attached->uses;
  return Use(*this, *attached);
}

void RemoteBackingFiles::end_use(Attached& attached) noexcept {
  MutexLock lock(mutex_);
  if (--attached.uses > 0) return;
  files_.remove_if([&](const Attached& each) { return &each == &attached; });
}

Result<Extent> RemoteBackingFiles::show(const Use& use, uint64_t offset, uint64_t size) {
  const uint64_t first = align_down(offset, kGranule);
  const uint64_t bytes = *align_up(offset + size, kGranule) - first;
  MutexLock lock(mutex_);
  Attached& attached = *use.attached_;
  BackingFile& backing = *attached.backing;
  unsigned& times = attached.shown[first];
  if (times == 0) {
    if (Result<void> shown = backing.show(first, bytes); !shown.ok()) {
      attached.shown.erase(first);
      return shown.error();
    }
  }
  ++times;
  return Extent{&backing, first, bytes};
}

void RemoteBackingFiles::hide(const Use& use, const Extent& extent) noexcept {
  MutexLock lock(mutex_);
  Attached& attached = *use.attached_;
  const auto shown = attached.shown.find(extent.offset);
  if (--shown->second > 0) return;
  attached.backing->hide(extent.offset, extent.size);
  attached.shown.erase(shown);
}

void RemoteBackingFiles::discard(const Use& use, const Extent& extent) {
  MutexLock lock(mutex_);
  use.attached_->backing->decommit(extent.offset, extent.size);
}

void RemoteBackingFiles::discard_unheld(ProcessTag owner,
                                        std::span<const ShareTable::HeldPart> held) {
  MutexLock lock(mutex_);
  for (const Attached& each : files_) {
    if (each.name.owner != owner) continue;
    std::vector<ShareTable::HeldPart> parts;
    for (const ShareTable::HeldPart& part : held) {
      if (part.backing == each.name.number) parts.push_back(part);
    }
    discard_between(*each.backing, std::move(parts));
  }
}

// From one held part to the next, in whole pages of the file.
void RemoteBackingFiles::discard_between(BackingFile& backing,
                                         std::vector<ShareTable::HeldPart> held) {
  std::sort(held.begin(), held.end(),
            [](const auto& a, const auto& b) { return a.offset < b.offset; });
  held.push_back({0, backing.size(), 0});
  uint64_t from = 0;
  for (const ShareTable::HeldPart& part : held) {
    const uint64_t until = align_down(part.offset, backing.alignment());
    if (until > from) backing.decommit(from, until - from);
    from = std::max(from, *align_up(part.offset + part.size, backing.alignment()));
  }
}

}  // namespace understudy
