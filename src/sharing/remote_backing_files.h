// SPDX-License-Identifier: Apache-2.0
//
// The backing files of other processes that this one has attached to, each as long as there is a
// use of it. Of a backing file, only what was imported can be seen. Any thread may call anything.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "memory/extent_allocator.h"
#include "platform/memory_file.h"
#include "server/server.h"
#include "server/share_table.h"

namespace understudy {

// Which backing file of which process.
struct BackingFileName {
  ProcessTag owner;
  uint16_t number = 0;

  friend bool operator==(const BackingFileName&, const BackingFileName&) = default;
};

// What is needed to attach.
struct OpenedBackingFile {
  BackingFileRecord record;
  platform::MemoryFile file;
  platform::MemoryFile states;
};

class RemoteBackingFiles {
  struct Attached {
    BackingFileName name;
    std::unique_ptr<BackingFile> backing;
    unsigned uses = 0;
    std::map<uint64_t, unsigned> shown;  // how often, by offset
  };

 public:
  RemoteBackingFiles(const Server& server, HostBudget& budget) : server_(server), budget_(budget) {}

  // Keeps a backing file attached. Outlived by the RemoteBackingFiles it is of.
  class Use {
   public:
    Use() = default;
    Use(Use&& other) noexcept
        : files_(other.files_), attached_(std::exchange(other.attached_, nullptr)) {}
    Use& operator=(Use&& other) noexcept {
      std::swap(files_, other.files_);
      std::swap(attached_, other.attached_);
      return *this;
    }
    ~Use() {
      if (attached_ != nullptr) files_->end_use(*attached_);
    }

    bool valid() const { return attached_ != nullptr; }

   private:
    friend class RemoteBackingFiles;
    Use(RemoteBackingFiles& files, Attached& attached) : files_(&files), attached_(&attached) {}

    RemoteBackingFiles* files_ = nullptr;
    Attached* attached_ = nullptr;
  };

  // Not valid if it is not attached.
  Use use(const BackingFileName& name);
  // Attaches it, unless it is attached already.
  Result<Use> attach(const BackingFileName& name, OpenedBackingFile files);

  // Shows a part of a backing file, in whole granules, until it is hidden as often as it was shown.
  Result<Extent> show(const Use& use, uint64_t offset, uint64_t size);
  void hide(const Use& use, const Extent& extent) noexcept;

  // Give memory of a process that has ended back to the system: an extent that no process holds, or
  // all that is not among the held parts of its backing files.
  void discard(const Use& use, const Extent& extent);
  void discard_unheld(ProcessTag owner, std::span<const ShareTable::HeldPart> held);

  bool has_any(ProcessTag owner) const;

 private:
  Attached* find_locked(const BackingFileName& name) US_REQUIRES(mutex_);
  static void discard_between(BackingFile& backing, std::vector<ShareTable::HeldPart> held);
  void end_use(Attached& attached) noexcept;

  const Server& server_;
  HostBudget& budget_;
  mutable Mutex mutex_{LockRank::kRemoteBackingFiles};
  std::list<Attached> files_ US_GUARDED_BY(mutex_);
};

}  // namespace understudy
